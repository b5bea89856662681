//! From a configuration to a running process, and to its end.
use crate::config::{BrokerSettings, Config, NamesrvSettings, Role};
use crate::error::{FileError, RunError};
use namesrv::NameServer;
use rt::sync::CancellationToken;
use rt::time::timeout;
use server::BrokerServer;
use std::net::IpAddr;
use std::path::Path;
use tracing::{info, warn};

/// Runs a process of that role until `shutdown` is cancelled, then stops it in order. Returns early only with the error that ended it.
pub async fn run(role: Role, config: Config, shutdown: CancellationToken) -> Result<(), RunError> {
    match role {
        Role::NameServer => name_server(config.namesrv()?, shutdown).await,
        Role::Broker => broker(config.broker()?, shutdown).await,
    }
}

async fn broker(settings: BrokerSettings, shutdown: CancellationToken) -> Result<(), RunError> {
    tell_without_effect(&settings.without_effect);
    let mut node = settings.node;
    if !settings.own_address_known && !node.advertised.ip().is_unspecified() {
        let seen = own_address(&node.name_servers, &node.remoting_client).await?;
        if let Some(ip) = seen {
            info!(%ip, "brokerIP1 taken from the connection to the name server");
            if node.ha_advertised.ip() == node.advertised.ip() {
                node.ha_advertised.set_ip(ip);
            }
            node.advertised.set_ip(ip);
        }
    }
    let started = rt::select! {
        () = shutdown.cancelled() => return Ok(()),
        started = BrokerServer::start(settings.cluster, node, &shutdown) => started,
    };
    Ok(started?.run().await?)
}

async fn name_server(settings: NamesrvSettings, shutdown: CancellationToken) -> Result<(), RunError> {
    tell_without_effect(&settings.without_effect);
    let server = NameServer::start(settings.node, &shutdown).await?;
    shutdown.cancelled().await;
    server.shutdown().await;
    Ok(())
}

/// This host's address as a name server sees it. Without name servers only this host's own clients can be meant.
async fn own_address(name_servers: &[String], limits: &remoting::ClientConfig) -> Result<Option<IpAddr>, RunError> {
    let mut failed = None;
    for name_server in name_servers {
        match timeout(limits.connect_max, connect(name_server)).await {
            Ok(Ok(ip)) => return Ok(Some(ip)),
            Ok(Err(error)) => failed = Some((name_server, error)),
            Err(_) => failed = Some((name_server, std::io::ErrorKind::TimedOut.into())),
        }
    }
    match failed {
        None => Ok(None),
        Some((namesrv, source)) => Err(RunError::OwnAddress { namesrv: namesrv.clone(), source }),
    }
}

async fn connect(name_server: &str) -> std::io::Result<IpAddr> {
    let addresses = rt::net::lookup_host(name_server).await?;
    let first = addresses.first().copied().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    let stream = rt::net::TcpStream::connect(first).await?;
    Ok(stream.local_addr()?.ip())
}

fn tell_without_effect(keys: &[String]) {
    if !keys.is_empty() {
        warn!(keys = keys.join(" "), "settings without effect here");
    }
}

/// Reads the file of `-c`. RocketMQ writes Latin-1; what is UTF-8 is read as UTF-8.
pub async fn read_config(path: &Path) -> Result<Config, FileError> {
    let bytes = rt::fs::read(path).await.map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(latin) => latin.into_bytes().into_iter().map(char::from).collect(),
    };
    Config::parse(&text).map_err(|source| FileError::Parse { path: path.to_owned(), source })
}
