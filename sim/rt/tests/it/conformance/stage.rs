//! Where a behaviour is played: two nodes of a world, or this machine's loopback and a directory of its own.
use rt::task::JoinHandle;
use rt::time::{Duration, sleep, timeout};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;

/// What a behaviour is given. It runs on the client's node.
pub struct Stage {
    pub server_ip: IpAddr,
    directory: PathBuf,
    #[cfg(madsim)]
    server: rt::world::NodeId,
    #[cfg(not(madsim))]
    _temporary: tempfile::TempDir,
}

impl Stage {
    /// An address of the server with any free port.
    pub fn any_port(&self) -> SocketAddr {
        SocketAddr::new(self.server_ip, 0)
    }

    /// A path below the behaviour's own directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Runs a task on the server's node.
    pub fn on_server<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        #[cfg(madsim)]
        return rt::world::spawn_on(self.server, future);
        #[cfg(not(madsim))]
        return rt::task::spawn(future);
    }
}

/// Waits until `condition` gives something, looking again every millisecond, for at most ten seconds.
pub async fn until<T, F: Future<Output = Option<T>>>(mut condition: impl FnMut() -> F) -> T {
    for _ in 0..10_000 {
        if let Some(value) = condition().await {
            return value;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("what was waited for did not come");
}

const PATIENCE: Duration = Duration::from_secs(120);

/// A behaviour, boxed: a world compiled once for all of them, not once for each.
type Behaviour = Box<dyn FnOnce(Stage) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Plays a behaviour.
pub fn run<F>(behaviour: impl FnOnce(Stage) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    play(Box::new(|stage| Box::pin(behaviour(stage))));
}

#[cfg(madsim)]
fn play(behaviour: Behaviour) {
    rt::world::run_test(|| async {
        let server = rt::world::add_node("server");
        let client = rt::world::add_node("client");
        let stage = Stage { server_ip: rt::world::ip(server), directory: PathBuf::from("/work"), server };
        let played = rt::world::spawn_on(client, async move {
            rt::fs::create_dir("/work").unwrap();
            timeout(PATIENCE, behaviour(stage)).await.expect("the behaviour ends");
            rt::world::disk::check_invariants(rt::world::current_node());
            rt::world::network::check_invariants();
        });
        played.await.unwrap();
    });
}

#[cfg(not(madsim))]
fn play(behaviour: Behaviour) {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().to_owned();
    let stage = Stage { server_ip: [127, 0, 0, 1].into(), directory, _temporary: temporary };
    rt::block_on(async { timeout(PATIENCE, behaviour(stage)).await.expect("the behaviour ends") }).unwrap();
}
