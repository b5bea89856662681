//! One client id: what its producers and consumers share. Connections, routes, heartbeats, scheduled work, and the requests that
//! brokers send to clients.
use crate::config::ClientConfig;
use crate::consumer::core::Core;
use crate::error::{CallError, StartError};
use crate::name_servers::NameServers;
use crate::routes::Routes;
use crate::transaction::TransactionListener;
use protocol::body::{HeartbeatData, ProducerData};
use protocol::message::UniqueKeyMaker;
use protocol::{Command, StoredMessage};
use rt::rand::{RngCore, Stream};
use rt::sync::{CancellationToken, oneshot};
use rt::task::TaskGroup;
use rt::time::{Instant, sleep};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

mod membership;
mod pushes;
mod routing;

/// The group under which a client hands messages back by sending them; part of every heartbeat, as in the Java client.
pub(crate) const INNER_PRODUCER_GROUP: &str = "CLIENT_INNER_PRODUCER";

/// Delay of the first route refresh and of the first heartbeat round after the start.
const FIRST_REFRESH: Duration = Duration::from_millis(10);
const FIRST_HEARTBEAT: Duration = Duration::from_secs(1);

/// A client of a cluster. Clones are the same client. Work in the background ends with [`shutdown`](Self::shutdown), with the parent
/// token, or with the last clone (producers and consumers hold one).
#[derive(Clone)]
pub struct ClientInstance(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    config: ClientConfig,
    client_id: String,
    remoting: remoting::Client,
    state: Mutex<State>,
    keys: UniqueKeyMaker,
    keys_made: AtomicU32,
    entropy: Mutex<Stream>,
    /// One refresh of routes at a time, so that an older answer never replaces a newer one.
    refreshing: rt::sync::Mutex<()>,
    origin: Instant,
    tasks: TaskGroup,
}

struct State {
    name_servers: NameServers,
    routes: Routes,
    producers: BTreeSet<String>,
    /// Who knows of the transactions of a producer group.
    transactions: BTreeMap<String, Arc<dyn TransactionListener>>,
    /// Calls that wait for the reply to their request, by the request's id.
    replies: BTreeMap<String, oneshot::Sender<StoredMessage>>,
    /// Topics that were sent to.
    published: BTreeSet<String>,
    consumers: BTreeMap<String, Weak<Core>>,
    /// Brokers to which a heartbeat is under way.
    beating: BTreeSet<String>,
}

impl ClientInstance {
    /// Starts a client. It connects when it has something to say.
    ///
    /// # Errors
    /// None at present; what is wrong with name servers shows at the first call.
    pub fn start(config: ClientConfig, parent: &CancellationToken) -> Result<ClientInstance, StartError> {
        let mut entropy = rt::rand::stream("client.choice");
        let tasks = TaskGroup::child_of(parent);
        let limits =
            remoting::ClientConfig { connect_max: config.connect_timeout, ..remoting::ClientConfig::standard() };
        let inner = Arc::new_cyclic(|inner: &Weak<Inner>| {
            let pushes = Arc::new(pushes::Pushes::new(inner.clone()));
            let state = State {
                name_servers: NameServers::new(config.name_servers.clone(), draw(&mut entropy)),
                routes: Routes::default(),
                producers: BTreeSet::from([INNER_PRODUCER_GROUP.to_owned()]),
                transactions: BTreeMap::new(),
                replies: BTreeMap::new(),
                published: BTreeSet::new(),
                consumers: BTreeMap::new(),
                beating: BTreeSet::new(),
            };
            let salt = entropy.next_u32();
            Inner {
                client_id: config.client_id(),
                remoting: remoting::Client::new(limits, Some(pushes), tasks.token()),
                state: Mutex::new(state),
                keys: UniqueKeyMaker::new(config.client_ip, config.process_id, salt),
                keys_made: AtomicU32::new(0),
                entropy: Mutex::new(entropy),
                refreshing: rt::sync::Mutex::new(()),
                origin: Instant::now(),
                tasks,
                config,
            }
        });
        let instance = ClientInstance(inner);
        instance.schedule();
        Ok(instance)
    }

    /// How brokers know this client.
    pub fn client_id(&self) -> &str {
        &self.0.client_id
    }

    /// Puts another list of name servers in place. One that is no longer listed is not asked again.
    pub fn update_name_servers(&self, name_servers: Vec<String>) {
        let draw = self.draw();
        let gone = self.state().name_servers.replace(name_servers, draw);
        for addr in gone {
            self.0.remoting.close(&addr);
        }
    }

    /// Ends the work in the background and closes all connections. Shut producers and consumers down before, so that brokers know.
    pub async fn shutdown(&self) {
        self.0.tasks.shutdown().await;
        self.0.remoting.shutdown().await;
    }

    fn schedule(&self) {
        let config = &self.0.config;
        self.every(FIRST_REFRESH, config.poll_name_server_interval, |client| async move {
            client.refresh_all_routes().await
        });
        self.every(
            FIRST_HEARTBEAT,
            config.heartbeat_broker_interval,
            |client| async move { client.heartbeat_all().await },
        );
    }

    /// Runs `work` after `first` and then with pauses of `interval`, until the instance ends or nobody holds it any more.
    fn every<F: Future<Output = ()> + Send>(
        &self,
        first: Duration,
        interval: Duration,
        work: impl Fn(ClientInstance) -> F + Send + Sync + 'static,
    ) {
        let (inner, ended) = (Arc::downgrade(&self.0), self.0.tasks.token().clone());
        self.0.tasks.spawn(async move {
            let mut pause = first;
            loop {
                rt::select! {
                    () = ended.cancelled() => return,
                    () = sleep(if rt::buggify!("client.period_early") { pause / 10 } else { pause }) => {}
                }
                let Some(inner) = inner.upgrade() else { return };
                rt::select! {
                    () = ended.cancelled() => return,
                    () = work(ClientInstance(inner)) => {}
                }
                pause = interval;
            }
        });
    }

    pub(crate) fn config(&self) -> &ClientConfig {
        &self.0.config
    }

    /// Cancelled when the instance ends.
    pub(crate) fn ended(&self) -> &CancellationToken {
        self.0.tasks.token()
    }

    /// Time since the instance was started: the `now` of the cores.
    pub(crate) fn now(&self) -> Duration {
        self.0.origin.elapsed()
    }

    /// Does something in the background, until the instance ends.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended().clone();
        self.0.tasks.spawn(async move {
            rt::select! {
                () = ended.cancelled() => {}
                () = work => {}
            }
        });
    }

    pub(crate) fn unique_key(&self) -> String {
        let count = self.0.keys_made.fetch_add(1, Ordering::Relaxed);
        self.0.keys.make(rt::time::unix_ms(), u16::try_from(count & 0xFFFF).expect("masked to 16 bits"))
    }

    /// A random number.
    pub(crate) fn draw(&self) -> usize {
        draw(&mut self.0.entropy.lock().expect("no code that can panic runs under this lock"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no code that can panic runs under this lock")
    }
}

fn draw(entropy: &mut Stream) -> usize {
    usize::try_from(entropy.next_u32()).unwrap_or(0)
}

/// Requests.
impl ClientInstance {
    pub(crate) fn await_reply(&self, id: &str, reply: oneshot::Sender<StoredMessage>) {
        self.state().replies.insert(id.to_owned(), reply);
    }

    /// Nobody waits for it any more; tells who did.
    pub(crate) fn forget_reply(&self, id: &str) -> Option<oneshot::Sender<StoredMessage>> {
        self.state().replies.remove(id)
    }

    /// Asks and waits for the answer, whatever its code.
    pub(crate) async fn call(&self, addr: &str, request: Command, limit: Duration) -> Result<Command, CallError> {
        Ok(self.0.remoting.request(addr, request, limit).await?)
    }

    /// Tells without waiting for an answer.
    pub(crate) async fn tell(&self, addr: &str, mut request: Command, limit: Duration) -> Result<(), CallError> {
        request.mark_oneway();
        Ok(self.0.remoting.oneway(addr, request, limit).await?)
    }
}

impl State {
    fn live_consumers(&self) -> Vec<Arc<Core>> {
        self.consumers.values().filter_map(Weak::upgrade).collect()
    }

    fn used_topics(&self) -> BTreeSet<String> {
        let subscribed = self.live_consumers().into_iter().flat_map(|core| core.topics());
        self.published.iter().cloned().chain(subscribed).collect()
    }

    fn heartbeat(&self, client_id: &str) -> HeartbeatData {
        HeartbeatData {
            client_id: client_id.to_owned(),
            producer_data_set: self.producers.iter().map(|group| ProducerData { group_name: group.clone() }).collect(),
            consumer_data_set: self.live_consumers().iter().map(|core| core.heartbeat()).collect(),
            ..HeartbeatData::default()
        }
    }
}
