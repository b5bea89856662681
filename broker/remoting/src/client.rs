use crate::config::ClientConfig;
use crate::connection::{CallLimits, Connection, ConnectionId};
use crate::driver::Driver;
use crate::error::{ConnectReason, Fate, RemotingError};
use crate::handler::Handler;
use protocol::Command;
use rt::net::{TcpStream, lookup_host};
use rt::sync::{CancellationToken, watch};
use rt::task::TaskGroup;
use rt::time::{Duration, Instant, sleep, sleep_until, timeout as within};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::{debug, info};

/// How often a standing connection's name is looked up again.
const LOOKUP_EVERY: Duration = Duration::from_secs(30);

/// Asks peers by address. One connection per address text, opened on first use and shared by all callers; an attempt to connect is shared
/// as well. Clones share everything. Dropping the last clone ends every connection at once.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    config: ClientConfig,
    calls: Arc<CallLimits>,
    handler: Option<Arc<dyn Handler>>,
    slots: Arc<Slots>,
    /// Connects and drives: one task a slot.
    tasks: TaskGroup,
    requests: Arc<TaskGroup>,
}

/// What stands or is being opened, by address text.
#[derive(Default)]
struct Slots(Mutex<SlotTable>);

#[derive(Default)]
struct SlotTable {
    by_addr: BTreeMap<String, Slot>,
    attempts: u64,
    late_responses: u64,
}

#[derive(Clone)]
struct Slot {
    attempt: u64,
    state: watch::Receiver<SlotState>,
}

#[derive(Clone, Debug)]
enum SlotState {
    Connecting,
    Open(Connection),
    Failed(ConnectReason),
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }

    /// Forgets the slot of this attempt. A newer one under the same address stays.
    fn remove(&self, addr: &str, attempt: u64) {
        let mut table = self.lock();
        if table.by_addr.get(addr).is_some_and(|slot| slot.attempt == attempt) {
            table.by_addr.remove(addr);
        }
    }
}

impl Client {
    /// A client without connections. `handler` serves what peers ask over them; without one their requests are answered with
    /// REQUEST_CODE_NOT_SUPPORTED. Cancelling `parent` shuts the client down.
    pub fn new(config: ClientConfig, handler: Option<Arc<dyn Handler>>, parent: &CancellationToken) -> Client {
        config.connection.check();
        assert!(config.connections_max > 0);
        assert!(!config.connect_max.is_zero());
        Client(Arc::new(Inner {
            calls: CallLimits::new(config.requests_max, config.oneways_max, config.oneway_wait_max),
            config,
            handler,
            slots: Arc::default(),
            tasks: TaskGroup::child_of(parent),
            // Requests being served outlive the cancellation: the drain waits for them.
            requests: Arc::new(TaskGroup::child_of(&CancellationToken::new())),
        }))
    }

    /// Asks `addr` (`host:port`) and waits for the response; connecting counts into `timeout`. After a time-out during which the peer sent
    /// nothing at all, the connection is given up and its other calls fail; the next call opens a new one. If a standing connection turns out to be closed
    /// before a byte of the request was written, the request goes out once more on a new connection.
    ///
    /// # Errors
    /// See [`RemotingError`]; [`RemotingError::fate`] tells whether the peer may have seen the request.
    pub async fn request(&self, addr: &str, command: Command, timeout: Duration) -> Result<Command, RemotingError> {
        let (mut command, deadline) = (command, Instant::now() + timeout);
        match self.request_once(addr, &mut command, timeout, deadline).await {
            Err(RemotingError::Closed { fate: Fate::NotSent, .. }) => {
                rt::probe!("remoting.request_repeated_on_new_connection");
                self.request_once(addr, &mut command, timeout, deadline).await
            }
            result => result,
        }
    }

    async fn request_once(
        &self,
        addr: &str,
        command: &mut Command,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Command, RemotingError> {
        let connection = self.connection(addr, timeout, deadline).await?;
        let begun = Instant::now();
        let result = connection.request_until(command, timeout, deadline).await;
        // Nothing at all has come while this call waited: the peer may be gone without a word, and TCP would go on trying for many minutes, or
        // pause for two after the network is back. A new connection finds out at once.
        if matches!(result, Err(RemotingError::Timeout { .. }))
            && begun.elapsed() >= self.0.config.silence_min
            && connection.last_read() <= begun
        {
            rt::probe!("remoting.silent_connection_given_up");
            debug!(addr, "connection given up: the peer is silent");
            connection.abort();
        }
        result
    }

    /// Tells `addr` something that is not answered. `Ok`: it is queued; it is lost if the connection ends before it is written.
    ///
    /// # Errors
    /// Nothing was sent.
    pub async fn oneway(&self, addr: &str, command: Command, timeout: Duration) -> Result<(), RemotingError> {
        let (mut command, deadline) = (command, Instant::now() + timeout);
        let connection = self.connection(addr, timeout, deadline).await?;
        match connection.oneway_until(&mut command, timeout, deadline).await {
            Err(RemotingError::Closed { .. }) => {
                let connection = self.connection(addr, timeout, deadline).await?;
                connection.oneway_until(&mut command, timeout, deadline).await
            }
            result => result,
        }
    }

    /// Opens a connection to `addr` if none stands.
    ///
    /// # Errors
    /// Connect failed, time-out, or shut down.
    pub async fn connect(&self, addr: &str, timeout: Duration) -> Result<Connection, RemotingError> {
        self.connection(addr, timeout, Instant::now() + timeout).await
    }

    /// The connection that stands to `addr`, if one does.
    pub fn connected(&self, addr: &str) -> Option<Connection> {
        let table = self.0.slots.lock();
        let slot = table.by_addr.get(addr)?;
        match &*slot.state.borrow() {
            SlotState::Open(connection) if !connection.is_closed() => Some(connection.clone()),
            _ => None,
        }
    }

    /// Closes the connection to `addr` in order, if one stands.
    pub fn close(&self, addr: &str) {
        if let Some(connection) = self.connected(addr) {
            connection.close();
        }
    }

    /// Responses that came too late, on all connections of this client that have ended or stand.
    pub fn late_responses(&self) -> u64 {
        let table = self.0.slots.lock();
        let standing = table.by_addr.values().map(|slot| match &*slot.state.borrow() {
            SlotState::Open(connection) if !connection.is_closed() => connection.stats().late_responses,
            _ => 0,
        });
        table.late_responses + standing.sum::<u64>()
    }

    /// Refuses new calls, fails those that wait, writes what is queued, closes every connection.
    pub async fn shutdown(&self) {
        self.0.tasks.shutdown().await;
    }

    async fn connection(&self, addr: &str, timeout: Duration, deadline: Instant) -> Result<Connection, RemotingError> {
        let mut slot = self.slot(addr)?;
        let state = rt::select! {
            state = slot.state.wait_for(|state| !matches!(state, SlotState::Connecting)) => state.map(|state| state.clone()),
            () = sleep_until(deadline) => {
                return Err(RemotingError::Timeout { addr: addr.to_owned(), after: timeout, fate: Fate::NotSent });
            }
        };
        match state {
            Ok(SlotState::Open(connection)) => Ok(connection),
            Ok(SlotState::Failed(reason)) => Err(RemotingError::Connect { addr: addr.to_owned(), reason }),
            // The attempt's task was ended by the shutdown.
            Ok(SlotState::Connecting) | Err(_) => Err(RemotingError::ShutDown),
        }
    }

    /// The slot of `addr` that stands or is being opened, else a new one.
    fn slot(&self, addr: &str) -> Result<Slot, RemotingError> {
        let inner = &self.0;
        let mut table = inner.slots.lock();
        if inner.tasks.token().is_cancelled() {
            return Err(RemotingError::ShutDown);
        }
        if let Some(slot) = table.by_addr.get(addr) {
            let usable = match &*slot.state.borrow() {
                SlotState::Connecting => true,
                SlotState::Open(connection) => !connection.is_closed() && !connection.0.drain.is_cancelled(),
                SlotState::Failed(_) => false,
            };
            if usable {
                return Ok(slot.clone());
            }
        } else if table.by_addr.len() >= inner.config.connections_max {
            return Err(RemotingError::TooManyConnections { limit: inner.config.connections_max });
        }
        table.attempts += 1;
        let (publish, state) = watch::channel(SlotState::Connecting);
        let slot = Slot { attempt: table.attempts, state };
        table.by_addr.insert(addr.to_owned(), slot.clone());
        inner.tasks.spawn(self.attempt(addr.to_owned(), slot.attempt, publish).run());
        Ok(slot)
    }

    fn attempt(&self, addr: String, number: u64, publish: watch::Sender<SlotState>) -> Attempt {
        Attempt {
            addr,
            number,
            config: self.0.config.clone(),
            calls: Arc::clone(&self.0.calls),
            handler: self.0.handler.clone(),
            slots: Arc::clone(&self.0.slots),
            requests: Arc::clone(&self.0.requests),
            stop: self.0.tasks.token().clone(),
            publish,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("slots", &self.0.slots.lock().by_addr.len()).finish_non_exhaustive()
    }
}

/// The task of one slot: connects, publishes the result, drives the connection to its end, leaves the table.
struct Attempt {
    addr: String,
    number: u64,
    config: ClientConfig,
    calls: Arc<CallLimits>,
    handler: Option<Arc<dyn Handler>>,
    slots: Arc<Slots>,
    requests: Arc<TaskGroup>,
    stop: CancellationToken,
    publish: watch::Sender<SlotState>,
}

impl Attempt {
    async fn run(self) {
        let connect_max = self.config.connect_max;
        let connected = rt::select! {
            () = self.stop.cancelled() => return,
            connected = within(connect_max, connect(&self.addr)) => {
                connected.unwrap_or(Err(ConnectReason::Timeout(connect_max)))
            }
        };
        match connected {
            Ok((stream, local, peer)) => self.drive(stream, local, peer).await,
            Err(reason) => {
                debug!(addr = self.addr, %reason, "connect failed");
                self.slots.remove(&self.addr, self.number);
                self.publish.send_replace(SlotState::Failed(reason));
            }
        }
    }

    async fn drive(self, stream: TcpStream, local: SocketAddr, peer: SocketAddr) {
        let (connection, frames) = Connection::new(
            ConnectionId::new(0, self.number),
            (local, peer),
            self.config.connection.clone(),
            self.calls,
            self.stop.child_token(),
        );
        self.publish.send_replace(SlotState::Open(connection.clone()));
        let mut driven = pin!(Driver::new(connection.clone(), frames, self.handler, self.requests).run(stream));
        rt::select! {
            () = &mut driven => {}
            () = moved(&self.addr, peer) => {
                rt::probe!("remoting.name_moved");
                info!(addr = self.addr, %peer, "the name means another machine, connection given up");
                connection.close();
                driven.await;
            }
        }
        self.slots.lock().late_responses += connection.stats().late_responses;
        self.slots.remove(&self.addr, self.number);
    }
}

/// Returns when the name does not mean the peer any more: a resolver that was behind would else bind this side to the wrong machine for as
/// long as that lives. A name that cannot be resolved says nothing about the peer.
async fn moved(addr: &str, peer: SocketAddr) {
    if addr.parse::<SocketAddr>().is_ok() {
        return std::future::pending().await;
    }
    loop {
        sleep(LOOKUP_EVERY).await;
        if lookup_host(addr).await.is_ok_and(|now| !now.is_empty() && !now.contains(&peer)) {
            return;
        }
    }
}

/// Tries the addresses of the name in the resolver's order.
async fn connect(addr: &str) -> Result<(TcpStream, SocketAddr, SocketAddr), ConnectReason> {
    let candidates = match addr.parse::<SocketAddr>() {
        Ok(addr) => vec![addr],
        Err(_) => lookup_host(addr).await.map_err(|error| ConnectReason::Resolve(error.kind()))?,
    };
    let mut failure = ConnectReason::Resolve(io::ErrorKind::NotFound);
    for candidate in candidates {
        match open(candidate).await {
            Ok(connected) => return Ok(connected),
            Err(error) => failure = ConnectReason::Io(error.kind()),
        }
    }
    Err(failure)
}

async fn open(addr: SocketAddr) -> io::Result<(TcpStream, SocketAddr, SocketAddr)> {
    rt::dawdle!("remoting.connect_late", Duration::from_millis(50));
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (local, peer) = (stream.local_addr()?, stream.peer_addr()?);
    Ok((stream, local, peer))
}
