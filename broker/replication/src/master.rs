//! The master's shell: accepts slaves, feeds each connection's core, and lets callers wait for copies.
use crate::acks::{AckTable, ConnectionNumber, Identity, KnownSlave, WaitKey};
use crate::config::HaMasterConfig;
use crate::error::{HaError, ReplicationWaitError, StreamFault};
use crate::master_core::{Action, LogView, MasterCore};
use crate::wire::put_frame;
use bytes::BytesMut;
use protocol::PhysicalOffset;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{OwnedReadHalf, OwnedWriteHalf, TcpListener, TcpStream};
use rt::sync::{CancellationToken, Notify, cancelled};
use rt::task::TaskGroup;
use rt::time::{Duration, Instant, sleep, sleep_until, timeout as within};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use store::Store;
use tracing::{info, warn};

/// After a failed accept: long enough not to spin, short enough not to be noticed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Announcements whose stream is not accepted yet; older ones are forgotten.
const ANNOUNCEMENTS_MAX: usize = 256;
/// Reports are 8 bytes and few.
const READ_BYTES: usize = 512;
/// How late a task may go on on a busy machine, in simulation.
const LATE: Duration = Duration::from_millis(10);

/// One slave connection, for admin commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlaveState {
    /// The slave's end of the connection.
    pub addr: SocketAddr,
    /// What the slave is counted by: its announced name, or its host.
    pub identity: String,
    /// How far it holds the log; `None` before its first report.
    pub acked: Option<PhysicalOffset>,
    /// First byte sent on this connection.
    pub transfer_from: Option<PhysicalOffset>,
    /// Log bytes sent on this connection.
    pub transferred_bytes: u64,
    /// Bytes from `acked` to the master's readable end.
    pub behind_bytes: u64,
    /// Less than the configured gap behind.
    pub in_sync: bool,
}

/// A running HA master. Dropping it ends every slave connection.
#[derive(Debug)]
pub struct HaMaster {
    local_addr: SocketAddr,
    shared: Arc<Shared>,
    acceptor: TaskGroup,
    connections: Arc<TaskGroup>,
}

#[derive(Debug)]
struct Shared {
    config: HaMasterConfig,
    store: Arc<Store>,
    begun: Instant,
    state: Mutex<State>,
    stop: CancellationToken,
    /// Cancelled when slaves may come in.
    open: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    acks: AckTable,
    streams: BTreeMap<ConnectionNumber, Arc<Stream>>,
    /// Slaves that said which stream is theirs before it was accepted, oldest first.
    announced: Vec<(SocketAddr, String)>,
    accepted: ConnectionNumber,
}

/// One slave connection.
#[derive(Debug)]
struct Stream {
    number: ConnectionNumber,
    addr: SocketAddr,
    begun: Instant,
    core: Mutex<MasterCore>,
    /// The first report has come.
    begin: Notify,
    /// A newer connection of the same slave stands.
    replaced: CancellationToken,
}

impl HaMaster {
    /// Listens for slaves and serves them from `store` until `parent` is cancelled or [`shutdown`](Self::shutdown).
    ///
    /// # Errors
    /// The port cannot be listened on.
    pub async fn start(
        config: HaMasterConfig,
        store: Arc<Store>,
        parent: &CancellationToken,
    ) -> Result<HaMaster, HaError> {
        let master = HaMaster::bind(config, store, parent).await?;
        master.open();
        Ok(master)
    }

    /// Takes the port and turns every slave away until [`open`](Self::open): the log may still become longer otherwise than by appends.
    ///
    /// # Errors
    /// The port cannot be listened on.
    pub async fn bind(
        config: HaMasterConfig,
        store: Arc<Store>,
        parent: &CancellationToken,
    ) -> Result<HaMaster, HaError> {
        assert!(config.batch_bytes > 0);
        assert!(config.slaves_max > 0);
        let addr = config.listen;
        let listener = TcpListener::bind(addr).await.map_err(|source| HaError::Bind { addr, source })?;
        let local_addr = listener.local_addr().map_err(|source| HaError::Bind { addr, source })?;
        let acceptor = TaskGroup::child_of(parent);
        let connections = Arc::new(TaskGroup::child_of(parent));
        let stop = connections.token().clone();
        let begun = Instant::now();
        let open = CancellationToken::new();
        let shared = Arc::new(Shared { config, store, begun, state: Mutex::default(), stop, open });
        acceptor.spawn(accept(Arc::clone(&shared), Arc::clone(&connections), listener, acceptor.token().clone()));
        Ok(HaMaster { local_addr, shared, acceptor, connections })
    }

    /// Lets slaves in from now on.
    pub fn open(&self) {
        self.shared.open.cancel();
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Waits until `copies` slaves, the master not counted, hold the log up to `end`, at most `timeout`. They hold it in their page cache; a
    /// slave counts once however many connections it has.
    ///
    /// # Errors
    /// The time is over or HA is shut down; the copies may still come.
    pub async fn wait_replicated(
        &self,
        end: PhysicalOffset,
        copies: usize,
        timeout: Duration,
    ) -> Result<(), ReplicationWaitError> {
        let Some((key, woken)) = self.shared.lock().acks.wait(end, copies) else { return Ok(()) };
        let _waiting = Waiting { shared: &self.shared, key };
        rt::select! {
            () = self.shared.stop.cancelled() => Err(ReplicationWaitError::Stopped),
            result = within(timeout, woken) => match result {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(ReplicationWaitError::Stopped),
                Err(_) => {
                    let holding = self.shared.lock().acks.holding(end);
                    Err(ReplicationWaitError::Timeout { end, copies, holding, after: timeout })
                }
            },
        }
    }

    /// The slave connections that stand, oldest first.
    pub fn slaves(&self) -> Vec<SlaveState> {
        let log_end = self.shared.store.confirm_end();
        let state = self.shared.lock();
        state.streams.values().map(|stream| self.slave_state(&state, stream, log_end)).collect()
    }

    /// The first place of the log that a slave still needs which is connected, or was not long ago; `None`: no slave needs any.
    pub fn needed_from(&self) -> Option<PhysicalOffset> {
        let state = self.shared.lock();
        let away = state.acks.least_away(self.shared.begun.elapsed(), self.shared.config.away_max);
        let connected = state.streams.values().filter_map(|stream| {
            let core = stream.core();
            // An empty slave is sent the last segment only.
            core.acked().max(core.start())
        });
        connected.chain(away).min()
    }

    /// The slaves whose part of the log stays: connected, or away for not too long.
    pub fn known_slaves(&self) -> BTreeMap<String, KnownSlave> {
        self.shared.lock().acks.known(self.shared.begun.elapsed(), self.shared.config.away_max)
    }

    /// Takes over what [`known_slaves`](Self::known_slaves) said in an earlier life. To be called before [`open`](Self::open).
    pub fn remember_slaves(&self, known: BTreeMap<String, KnownSlave>) {
        self.shared.lock().acks.remember_known(known);
    }

    /// Slaves, each once, that are less than the configured gap behind the master's readable end.
    pub fn in_sync_slaves(&self) -> usize {
        let log_end = self.shared.store.confirm_end();
        self.shared.lock().acks.within(log_end, self.shared.config.gap_not_in_sync)
    }

    /// A slave says that the HA connection from `addr` is its own. Older connections of the same name are closed: they are dead.
    pub fn announce(&self, addr: SocketAddr, slave_id: &str) {
        let mut state = self.shared.lock();
        let stream = state.streams.values().rev().find(|stream| stream.addr == addr).cloned();
        if let Some(stream) = stream {
            return state.announce(&stream, slave_id);
        }
        state.announced.retain(|(other, _)| *other != addr);
        if state.announced.len() == ANNOUNCEMENTS_MAX {
            state.announced.remove(0);
        }
        state.announced.push((addr, slave_id.to_owned()));
    }

    /// Closes the port and every connection; waiting callers get [`ReplicationWaitError::Stopped`].
    pub async fn shutdown(&self) {
        self.acceptor.shutdown().await;
        self.connections.shutdown().await;
        self.shared.lock().acks.stop();
    }

    /// Panics if the tables contradict each other.
    pub fn check_invariants(&self) {
        let state = self.shared.lock();
        state.acks.check_invariants();
        for (number, stream) in &state.streams {
            assert!(state.acks.identity(*number).is_some());
            stream.core().check_invariants();
        }
    }

    fn slave_state(&self, state: &State, stream: &Stream, log_end: PhysicalOffset) -> SlaveState {
        let core = stream.core();
        let behind = log_end - core.acked().unwrap_or(PhysicalOffset::ZERO);
        let behind_bytes = u64::try_from(behind).unwrap_or(0);
        SlaveState {
            addr: stream.addr,
            identity: state.acks.identity(stream.number).map(ToString::to_string).unwrap_or_default(),
            acked: core.acked(),
            transfer_from: core.start(),
            transferred_bytes: core.transferred(),
            behind_bytes,
            in_sync: core.acked().is_some() && behind_bytes < self.shared.config.gap_not_in_sync,
        }
    }
}

/// Takes a waiting caller out of the table however it ends.
struct Waiting<'a> {
    shared: &'a Shared,
    key: WaitKey,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.lock().acks.forget(self.key);
    }
}

impl State {
    fn announce(&mut self, stream: &Stream, slave_id: &str) {
        for older in self.acks.announce(stream.number, slave_id) {
            if let Some(older) = self.streams.get(&older) {
                rt::probe!("replication.slave_connected_twice");
                older.replaced.cancel();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code that can panic runs under this lock")
    }

    fn log_view(&self) -> LogView {
        let readable_end = self.store.confirm_end();
        LogView {
            min: self.store.log_min(),
            readable_end,
            last_segment_start: self.store.last_segment_start().min(readable_end),
        }
    }

    /// Enters a new connection; `None`: there are too many.
    fn enter(&self, addr: SocketAddr) -> Option<Arc<Stream>> {
        let mut state = self.lock();
        if state.streams.len() >= self.config.slaves_max {
            return None;
        }
        state.accepted += 1;
        let stream = Arc::new(Stream {
            number: state.accepted,
            addr,
            begun: Instant::now(),
            core: Mutex::new(MasterCore::new(self.config.heartbeat_interval, self.config.housekeeping)),
            begin: Notify::new(),
            replaced: CancellationToken::new(),
        });
        state.acks.connect(stream.number, Identity::Host(addr.ip()));
        state.streams.insert(stream.number, Arc::clone(&stream));
        if let Some(index) = state.announced.iter().position(|(announced, _)| *announced == addr) {
            let (_, id) = state.announced.remove(index);
            state.announce(&stream, &id);
        }
        Some(stream)
    }

    fn leave(&self, stream: &Stream) {
        let mut state = self.lock();
        state.streams.remove(&stream.number);
        state.acks.disconnect(stream.number, self.begun.elapsed());
    }

    /// Serves one slave to the end of its connection.
    async fn serve(self: Arc<Self>, stream: Arc<Stream>, socket: TcpStream) {
        info!(slave = %stream.addr, "slave connected");
        let (read, write) = socket.into_split();
        let fault = rt::select! {
            () = cancelled(&self.stop) => StreamFault::Stopped,
            () = cancelled(&stream.replaced) => StreamFault::Replaced,
            fault = self.reports(&stream, read) => fault,
            fault = self.transfers(&stream, write) => fault,
        };
        self.leave(&stream);
        match fault {
            StreamFault::Stopped | StreamFault::Closed | StreamFault::Io(_) | StreamFault::Replaced => {
                info!(slave = %stream.addr, %fault, "slave disconnected");
            }
            StreamFault::BeyondLog { .. } => {
                rt::probe!("replication.longer_slave_refused");
                warn!(slave = %stream.addr, %fault, "slave refused");
            }
            _ => warn!(slave = %stream.addr, %fault, "slave disconnected"),
        }
    }

    async fn reports(&self, stream: &Stream, mut read: OwnedReadHalf) -> StreamFault {
        let mut buffer = [0; READ_BYTES];
        loop {
            let silent_at = stream.begun + stream.core().silent_at();
            let room = if rt::buggify!("replication.report_in_pieces") { 3 } else { READ_BYTES };
            let count = rt::select! {
                count = read.read(&mut buffer[..room]) => count,
                () = sleep_until(silent_at) => match stream.core().check_silence(stream.now()) {
                    Ok(()) => continue,
                    Err(fault) => return fault,
                },
            };
            let bytes = match count {
                Ok(0) => return StreamFault::Closed,
                Ok(count) => &buffer[..count],
                Err(error) => return error.into(),
            };
            let view = self.log_view();
            let acked = {
                let mut core = stream.core();
                core.received(stream.now(), bytes, view)
            };
            match acked {
                Ok(Some(end)) => {
                    rt::dawdle!("replication.acknowledgement_late", LATE);
                    self.lock().acks.acknowledge(stream.number, end);
                    stream.begin.notify_one();
                }
                Ok(None) => {}
                Err(fault) => return fault,
            }
        }
    }

    async fn transfers(&self, stream: &Stream, mut write: OwnedWriteHalf) -> StreamFault {
        let mut ends = self.store.ends();
        let mut frame = BytesMut::new();
        loop {
            // Seen before the log's end is read, so that growth from here on wakes the wait below.
            ends.mark_unchanged();
            let action = stream.core().action(stream.now(), self.store.confirm_end());
            match action {
                Action::AwaitReport => stream.begin.notified().await,
                Action::Wait { until } => rt::select! {
                    changed = ends.changed() => if changed.is_err() { return StreamFault::Stopped },
                    () = sleep_until(stream.begun + until) => {}
                },
                Action::Heartbeat { at } => {
                    if let Err(fault) = self.send(stream, &mut write, &mut frame, at, &[]).await {
                        return fault;
                    }
                }
                Action::Transfer { from } => {
                    rt::dawdle!("replication.transfer_late", LATE);
                    let body = match self.store.read_log(from, self.config.batch_bytes).await {
                        Ok(body) => body,
                        Err(error) => return error.into(),
                    };
                    // The end fell back between the two reads: only a truncation does that, and then the log is not ours to send.
                    if body.is_empty() {
                        return StreamFault::Stopped;
                    }
                    if let Err(fault) = self.send(stream, &mut write, &mut frame, from, &body).await {
                        return fault;
                    }
                }
            }
        }
    }

    async fn send(
        &self,
        stream: &Stream,
        write: &mut OwnedWriteHalf,
        frame: &mut BytesMut,
        at: PhysicalOffset,
        body: &[u8],
    ) -> Result<(), StreamFault> {
        frame.clear();
        put_frame(frame, at, body);
        stream.core().sending(stream.now(), body.len());
        write.write_all(frame).await?;
        Ok(())
    }
}

impl Stream {
    fn core(&self) -> MutexGuard<'_, MasterCore> {
        self.core.lock().expect("no code that can panic runs under this lock")
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }
}

async fn accept(shared: Arc<Shared>, connections: Arc<TaskGroup>, listener: TcpListener, stop: CancellationToken) {
    loop {
        let accepted = rt::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((_, addr)) if !shared.open.is_cancelled() => {
                info!(slave = %addr, "slave turned away: the log is not known to be whole yet");
            }
            Ok((socket, addr)) => {
                if let Err(error) = socket.set_nodelay(true) {
                    info!(slave = %addr, %error, "slave lost before it was served");
                    continue;
                }
                match shared.enter(addr) {
                    Some(stream) => {
                        connections.spawn(Arc::clone(&shared).serve(stream, socket));
                    }
                    None => warn!(slave = %addr, limit = shared.config.slaves_max, "slave refused: too many"),
                }
            }
            Err(error) => {
                warn!(%error, "accept failed");
                rt::select! { () = stop.cancelled() => return, () = sleep(ACCEPT_PAUSE) => {} }
            }
        }
    }
}
