//! The nodes of a run, and the servers on them: each boots through [`broker::run`], as in production.

use crate::disk_losses::STORE_REPLACED;
use crate::evidence::{POWER_LOST, PROCESS_ENDED, STARTED, SYNC_FAILED};
use crate::invariant::i14_no_end_without_a_cause::GAVE_UP;
use crate::node_config;
use crate::operation::Recorder;
use crate::plan::{Cluster, Flush, Plan};
use crate::transactions::has_transactions;
use broker::{Config, Role, RunError};
use rt::sync::CancellationToken;
use rt::world::{CrashKind, NodeId};
use server::ServerError;
use sim::desk::Desk;
use sim::leak::LeakCheck;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use store::StoreError;

/// A supervisor starts a server again that long after it gave up.
const RESTART_AFTER: Duration = Duration::from_secs(5);

/// A server that was asked to stop and has returned has given everything back within that.
const STOPPED_WITHIN: Duration = Duration::from_secs(1);

/// The plan's configuration, and those that an operator may change a broker to and back: a [`CAREFUL`] one, whose promises are no weaker
/// than the plan's, [`APACHES`] and an [`IMPATIENT`] one.
pub const CONFIGURATIONS: &[&str] = &["usual", CAREFUL, APACHES, IMPATIENT];
/// Synchronous flush, and reads at the slave the other way round.
pub const CAREFUL: &str = "careful";
/// A master that returns asks nobody for what it lost (`hotfireRecoverFromSlave` off). Judges do not know of it: they take the plan at its word,
/// so it is for plans that promise no more than that.
pub const APACHES: &str = "apaches";
/// A master waits for its slaves no longer than [`SLAVE_TIMEOUT`] (`slaveTimeout`): with RocketMQ's 3 s, which is also the producer's
/// `sendMsgTimeout`, the answer that a message has no copy comes when its producer has just given up.
pub const IMPATIENT: &str = "impatient";
/// `slaveTimeout` of an [`IMPATIENT`] master.
pub const SLAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// Every node by name, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    nodes: BTreeMap<String, NodeId>,
    addresses: BTreeMap<String, IpAddr>,
    /// Where a broker listens, by node name: asked for with each request of the observer.
    broker_addresses: BTreeMap<String, String>,
}

impl Machines {
    /// Adds a node for each server and client of the plan; nothing runs on them yet. Ends of nodes go to the history.
    pub fn add(plan: &Plan, recorder: &Recorder) -> Machines {
        let clients = plan.clients.consumer_names().into_iter().map(|(name, _)| name);
        let names = plan.cluster.names().into_iter().chain(plan.cluster.brokers());
        let mut machines = Machines::default();
        let mut by_node = BTreeMap::new();
        for name in names.chain(plan.clients.producer_names()).chain(clients) {
            let node = rt::world::add_node(&name);
            let address = rt::world::ip(node);
            machines.addresses.insert(name.clone(), address);
            machines.broker_addresses.insert(name.clone(), format!("{address}:{}", node_config::BROKER_PORT));
            by_node.insert(node, name.clone());
            machines.nodes.insert(name, node);
        }
        let recorder = recorder.clone();
        rt::world::on_node_end(move |end| {
            let event = if end.kind == CrashKind::Power { POWER_LOST } else { PROCESS_ENDED };
            if let Some(name) = by_node.get(&end.node) {
                recorder.node(name, event);
            }
        });
        machines
    }

    /// The node of that name.
    ///
    /// # Panics
    /// If the plan has no such node.
    pub fn node(&self, name: &str) -> NodeId {
        *self.nodes.get(name).unwrap_or_else(|| panic!("the plan has no node {name:?}"))
    }

    /// Addresses by node name.
    pub fn addresses(&self) -> &BTreeMap<String, IpAddr> {
        &self.addresses
    }

    /// `host:port` of a broker node.
    pub fn broker_address(&self, name: &str) -> &str {
        &self.broker_addresses[name]
    }

    /// What starts a server node with one of its [`CONFIGURATIONS`], now and after each of its ends.
    pub fn server_boot(
        &self,
        plan: &Plan,
        name: &str,
        recorder: &Recorder,
        desk: &Desk,
    ) -> impl Fn(&str) + Send + Sync + 'static + use<> {
        let leaks = LeakCheck::new(desk, STOPPED_WITHIN);
        let (role, texts) = self.server_configurations(plan, name);
        let configs = texts.map(|text| Config::parse(&text).expect("the text is made here"));
        assert_eq!(configs.len(), CONFIGURATIONS.len());
        let is_slave = role == Role::Broker && node_config::identity(&plan.cluster, name).1 > 0;
        let (node, name, recorder) = (self.node(name), name.to_owned(), recorder.clone());
        move |configuration| {
            let which =
                CONFIGURATIONS.iter().position(|name| *name == configuration).expect("the nemesis knows these only");
            let config = configs[which].clone();
            // Dropping the handle leaves the task to its node.
            drop(leaks.spawn_on(node, supervise(role, config, name.clone(), is_slave, recorder.clone())));
        }
    }

    /// In the order of [`CONFIGURATIONS`].
    fn server_configurations(&self, plan: &Plan, name: &str) -> (Role, [String; 4]) {
        if plan.cluster.names().iter().any(|server| server == name) {
            return (Role::NameServer, std::array::from_fn(|_| node_config::name_server()));
        }
        let name_servers = node_config::name_server_list(plan, &self.addresses);
        let usual = &plan.cluster;
        let careful = Cluster { flush: Flush::Sync, slave_read: !usual.slave_read, ..usual.clone() };
        let apaches = Cluster { recover_from_slave: false, ..usual.clone() };
        let more = if has_transactions(plan) { node_config::short_checks() } else { String::new() };
        let text = |cluster| node_config::broker(cluster, name, &name_servers, &self.addresses) + &more;
        let impatient = format!("{}slaveTimeout={}\n", text(usual), SLAVE_TIMEOUT.as_millis());
        (Role::Broker, [text(usual), text(&careful), text(&apaches), impatient])
    }
}

fn failed_syncs(node: NodeId) -> u64 {
    rt::world::disk::effects(node).syncs_failed
}

/// Whether the server refused what it found on its disk: no start will help.
fn is_damage(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Broker(
            ServerError::Table { .. } | ServerError::Store(StoreError::Damaged { .. } | StoreError::LogLost { .. })
        )
    )
}

fn empty(directory: &Path) -> io::Result<()> {
    for path in rt::fs::read_dir(directory)? {
        if rt::fs::metadata(&path)?.is_dir {
            empty(&path)?;
            rt::fs::remove_dir(&path)?;
        } else {
            rt::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Runs the server until it is asked to stop; one that gives up is started again, as by a service manager. The store of a slave that is
/// damaged is emptied, as by an operator: it is a copy.
async fn supervise(role: Role, config: Config, name: String, is_slave: bool, recorder: Recorder) {
    let node = rt::world::current_node();
    loop {
        recorder.node(&name, STARTED);
        let before = failed_syncs(node);
        let shutdown = CancellationToken::new();
        let asked = shutdown.clone();
        let asking = rt::task::spawn(async move {
            if rt::signal::termination().await.is_ok() {
                asked.cancel();
            }
        });
        let result = broker::run(role, config.clone(), shutdown).await;
        asking.abort();
        recorder.node(&name, PROCESS_ENDED);
        let Err(error) = result else { return };
        tracing::warn!(%error, "server gave up");
        recorder.node(&name, &format!("{GAVE_UP}{error}"));
        if failed_syncs(node) > before {
            recorder.node(&name, SYNC_FAILED);
        }
        if is_slave && is_damage(&error) {
            match empty(Path::new(node_config::STORE)) {
                Ok(()) => recorder.node(&name, STORE_REPLACED),
                // The disk may fail just now; the next start refuses what is left, and the operator tries again.
                Err(error) => tracing::warn!(%error, "damaged store not emptied"),
            }
        }
        rt::time::sleep(RESTART_AFTER).await;
    }
}
