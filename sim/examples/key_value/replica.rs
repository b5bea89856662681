//! The server: remembers the newest value of each key, on the disk before it says so.

use super::log::Log;
use super::wire::{Reply, Request, Versioned, receive, send};
use rt::net::{TcpListener, TcpStream};
use rt::task::TaskGroup;
use rt::time::timeout;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Where every replica listens.
pub const PORT: u16 = 7_000;
/// A client that says nothing for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// One copy of the store.
#[derive(Debug)]
struct Replica {
    /// None after a write or a sync has failed: nobody knows what is on the disk then, so nothing is stored until a restart.
    log: rt::sync::Mutex<Option<Log>>,
    /// What is on the disk. Of another lock, so that a load does not wait for a sync.
    newest: Mutex<BTreeMap<String, Versioned>>,
}

/// Runs a replica; returns only if it cannot start or cannot listen.
pub async fn serve() -> io::Result<Infallible> {
    let mut newest = BTreeMap::new();
    // A record is only written if it is newer than those before it: the last one of a key is the newest.
    let log = Log::recover(|key, versioned| drop(newest.insert(key, versioned))).await?;
    let replica = Arc::new(Replica { log: rt::sync::Mutex::new(Some(log)), newest: Mutex::new(newest) });
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], PORT))).await?;
    let clients = TaskGroup::default();
    loop {
        let (stream, client) = listener.accept().await?;
        let replica = Arc::clone(&replica);
        clients.spawn(async move {
            if let Err(error) = talk(stream, &replica).await {
                tracing::debug!(%client, %error, "no answer");
            }
        });
    }
}

/// One question, one answer.
async fn talk(mut stream: TcpStream, replica: &Replica) -> io::Result<()> {
    let reply = match timeout(SILENCE_MAX, receive(&mut stream)).await?? {
        Request::Load { key } => Reply::Loaded(replica.load(&key)),
        Request::Store { key, versioned } => {
            replica.store(key, versioned).await?;
            Reply::Stored
        }
    };
    send(&mut stream, &reply).await
}

impl Replica {
    fn load(&self, key: &str) -> Versioned {
        self.newest().get(key).cloned().unwrap_or_default()
    }

    async fn store(&self, key: String, versioned: Versioned) -> io::Result<()> {
        let mut log = self.log.lock().await;
        if self.load(&key).version >= versioned.version {
            return Ok(());
        }
        let mut writable = log.take().ok_or_else(|| io::Error::other("the log has failed"))?;
        writable.append(&key, &versioned).await?;
        *log = Some(writable);
        self.newest().insert(key, versioned);
        Ok(())
    }

    fn newest(&self) -> MutexGuard<'_, BTreeMap<String, Versioned>> {
        self.newest.lock().expect("no code that can panic runs under this lock")
    }
}
