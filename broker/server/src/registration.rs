//! Telling every name server that this broker is there and which topics it has.
//!
//! Each name server is asked on its own and for no longer than the time-out, so that one that is down delays no other.
use crate::broker::Broker;
use crate::topics::perm;
use protocol::body::{DataVersion, RegisterBrokerBody, TopicConfigSerializeWrapper};
use protocol::frame::Command;
use protocol::header::{RegisterBrokerRequest, RegisterBrokerResponse, UnregisterBrokerRequest};
use protocol::{RequestCode, ResponseCode};
use rt::sync::mpsc;
use rt::task::TaskGroup;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info, warn};

/// Pause after a name server could not be told.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Registers with all name servers and takes over what they say of the master. Returns when each has answered or timed out; true if
/// all know this broker now, and a slave knows its master.
pub(crate) async fn register(broker: &Broker) -> bool {
    let command = request(broker);
    let answers = ask_all(broker, &command, broker.config.timing.register_timeout).await;
    let (mut master, mut all) = (None, true);
    for (name_server, answer) in answers {
        match answer {
            Ok(header) => {
                debug!(%name_server, "registered");
                master = master.or_else(|| Some((header.master_addr?, header.ha_server_addr)));
            }
            Err(reason) => {
                all = false;
                warn!(%name_server, reason, "registration failed");
            }
        }
    }
    if broker.is_slave() {
        follow(broker, master).await;
        // A slave that was here first asks again soon: until it knows its master, sends that wait for a copy wait in vain.
        all &= broker.master().is_some();
    }
    all
}

/// A slave goes where the name servers see the master. When none sees one it keeps the last: the master may be there all the same,
/// and trying costs nothing.
async fn follow(broker: &Broker, master: Option<(String, Option<String>)>) {
    let Some((remoting, ha)) = master else { return };
    let Some(ha) = broker.config.ha_master.clone().or(ha).filter(|ha| !ha.is_empty()) else { return };
    if broker.master().as_deref() != Some(&remoting) {
        info!(master = %remoting, %ha, "master found");
        broker.set_master(Some(remoting.clone()));
        broker.master_found.notify_one();
    }
    broker.replicas.follow(&ha, Some(remoting)).await;
}

/// Takes leave of all name servers.
pub(crate) async fn unregister(broker: &Broker) {
    let header = UnregisterBrokerRequest {
        broker_name: broker.cluster.broker_name.clone(),
        broker_addr: broker.advertised().to_string(),
        cluster_name: broker.cluster.cluster_name.clone(),
        broker_id: broker.config.broker_id,
    };
    let command = Command::request(RequestCode::UnregisterBroker, &header);
    for (name_server, answer) in ask_all(broker, &command, broker.config.timing.unregister_timeout).await {
        if let Err(reason) = answer {
            warn!(%name_server, reason, "unregistration failed");
        }
    }
}

/// Asks all name servers at once; answers in their order of the configuration.
async fn ask_all(
    broker: &Broker,
    command: &Command,
    timeout: Duration,
) -> Vec<(String, Result<RegisterBrokerResponse, String>)> {
    let tasks = TaskGroup::child_of(broker.background.token());
    let (sender, mut answers) = mpsc::channel(broker.config.name_servers.len().max(1));
    for (at, name_server) in broker.config.name_servers.iter().cloned().enumerate() {
        let (client, command, sender) = (broker.client.clone(), command.clone(), sender.clone());
        tasks.spawn(async move {
            rt::dawdle!("server.registration_late", Duration::from_millis(200));
            let answer = match client.request(&name_server, command, timeout).await {
                Ok(reply) if reply.response_code() == Some(ResponseCode::Success) => {
                    reply.header::<RegisterBrokerResponse>().map_err(|error| error.to_string())
                }
                Ok(reply) => Err(format!("code {}: {}", reply.code, reply.remark.unwrap_or_default())),
                Err(error) => Err(error.to_string()),
            };
            // Nobody listens any more only if the broker is being torn down.
            let _ = sender.send((at, name_server, answer)).await;
        });
    }
    drop(sender);
    let mut all = Vec::new();
    while let Some(answer) = answers.recv().await {
        all.push(answer);
    }
    all.sort_by_key(|(at, ..)| *at);
    all.into_iter().map(|(_, name_server, answer)| (name_server, answer)).collect()
}

fn request(broker: &Broker) -> Command {
    let header = RegisterBrokerRequest {
        broker_name: broker.cluster.broker_name.clone(),
        broker_addr: broker.advertised().to_string(),
        cluster_name: broker.cluster.cluster_name.clone(),
        ha_server_addr: broker.ha_advertised().to_string(),
        broker_id: broker.config.broker_id,
        heartbeat_timeout_millis: None,
        enable_acting_master: None,
        compressed: false,
        body_crc32: 0,
        zone_name: None,
    };
    let mut text = broker.topics().text();
    let allowed = broker.config.permission & perm::READ_WRITE;
    if allowed != perm::READ_WRITE {
        // What the broker as a whole does not allow, no topic of it allows.
        text.topic_config_table.values_mut().for_each(|topic| topic.perm &= broker.config.permission);
    }
    let body = RegisterBrokerBody {
        filter_server_list: Vec::new(),
        topic_config_serialize_wrapper: TopicConfigSerializeWrapper {
            data_version: text.data_version,
            mapping_data_version: Some(DataVersion::default()),
            topic_config_table: text.topic_config_table,
            topic_queue_mapping_detail_map: Some(Default::default()),
            topic_queue_mapping_info_map: Some(Default::default()),
        },
    };
    Command::request(RequestCode::RegisterBroker, &header)
        .with_body(protocol::json::to_vec(&body).expect("tables have plain values"))
}

/// Registers each period and whenever the topics change, until `broker` closes; sooner after a failure.
pub(crate) async fn run(broker: Arc<Broker>, mut registered: bool) {
    let usual = broker.config.timing.register_period;
    loop {
        let period = if rt::buggify!("server.registration_early") { usual / 10 } else { usual };
        rt::select! {
            () = broker.closing.cancelled() => return,
            () = rt::time::sleep(if registered { period } else { period.min(RETRY_PAUSE) }) => {}
            () = broker.topics_changed.notified() => {}
        }
        rt::select! {
            () = broker.closing.cancelled() => return,
            all = register(&broker) => registered = all,
        }
    }
}
