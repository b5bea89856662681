use crate::config::ConnectionLimits;
use crate::error::{Fate, RemotingError};
use crate::pending::{Lost, Pending};
use crate::queue::{Gone, Purpose, Queued, WriteQueue};
use bytes::Bytes;
use protocol::Command;
use rt::sync::{CancellationToken, OwnedSemaphorePermit, Semaphore, mpsc};
use rt::time::{Duration, Instant, sleep_until};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Names one connection for the life of the process: the listening port (0 for a client's) and a running number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    pub(crate) fn new(port: u16, number: u64) -> ConnectionId {
        assert!(number < 1 << 48);
        ConnectionId(u64::from(port) << 48 | number)
    }

    /// The identity as a number.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0 >> 48, self.0 & ((1 << 48) - 1))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How much one [`Server`](crate::Server) or [`Client`](crate::Client) asks at a time, over all its connections.
#[derive(Debug)]
pub(crate) struct CallLimits {
    requests: Arc<Semaphore>,
    requests_max: u32,
    oneways: Arc<Semaphore>,
    oneways_max: u32,
    oneway_wait_max: Duration,
}

impl CallLimits {
    pub(crate) fn new(requests_max: u32, oneways_max: u32, oneway_wait_max: Duration) -> Arc<CallLimits> {
        assert!(requests_max > 0);
        assert!(oneways_max > 0);
        Arc::new(CallLimits {
            requests: Arc::new(Semaphore::new(requests_max as usize)),
            requests_max,
            oneways: Arc::new(Semaphore::new(oneways_max as usize)),
            oneways_max,
            oneway_wait_max,
        })
    }
}

/// Counters of one connection, for admin commands and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Requests of this side that wait for a response.
    pub pending: usize,
    /// Responses that came when nobody waited for them any longer.
    pub late_responses: u64,
    /// Bytes queued to be written.
    pub write_queue_bytes: usize,
}

/// One connection. Clones name the same connection; the last clone's end does not close it.
#[derive(Clone)]
pub struct Connection(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    id: ConnectionId,
    peer: SocketAddr,
    local: SocketAddr,
    pub(crate) limits: ConnectionLimits,
    calls: Arc<CallLimits>,
    pending: Mutex<Pending>,
    queue: WriteQueue,
    opened: Instant,
    /// Microseconds from `opened` to the last byte read.
    read_us: AtomicU64,
    /// Microseconds from `opened` to the last byte written.
    written_us: AtomicU64,
    /// Asks the driver to end the connection in order.
    pub(crate) drain: CancellationToken,
    /// Asks the driver to end the connection at once.
    pub(crate) kill: CancellationToken,
    /// The connection has ended and refuses every call.
    closed: CancellationToken,
}

impl Connection {
    /// The handle, and what its driver writes.
    pub(crate) fn new(
        id: ConnectionId,
        (local, peer): (SocketAddr, SocketAddr),
        limits: ConnectionLimits,
        calls: Arc<CallLimits>,
        drain: CancellationToken,
    ) -> (Connection, mpsc::Receiver<Queued>) {
        let (queue, frames) = WriteQueue::new(limits.write_queue_frames_max, limits.write_queue_bytes_max);
        let shared = Shared {
            id,
            peer,
            local,
            limits,
            calls,
            pending: Mutex::default(),
            queue,
            opened: Instant::now(),
            read_us: AtomicU64::new(0),
            written_us: AtomicU64::new(0),
            drain,
            kill: CancellationToken::new(),
            closed: CancellationToken::new(),
        };
        (Connection(Arc::new(shared)), frames)
    }

    /// Its identity in this process.
    pub fn id(&self) -> ConnectionId {
        self.0.id
    }

    /// The peer's socket address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }

    /// This side's socket address.
    pub fn local_addr(&self) -> SocketAddr {
        self.0.local
    }

    /// True once every call fails with [`RemotingError::Closed`].
    pub fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    /// Returns when the connection has ended.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Asks for an orderly end: requests being served are answered, what is queued is written, then the socket is closed.
    pub fn close(&self) {
        self.0.drain.cancel();
    }

    /// Ends the connection at once; what is queued is lost.
    pub fn abort(&self) {
        self.0.kill.cancel();
    }

    /// Counters.
    pub fn stats(&self) -> ConnectionStats {
        let pending = self.pending();
        ConnectionStats {
            pending: pending.len(),
            late_responses: pending.late_responses(),
            write_queue_bytes: self.0.queue.bytes(),
        }
    }

    /// Panics if the response table contradicts itself.
    pub fn check_invariants(&self) {
        self.pending().check_invariants();
    }

    /// Asks the peer and waits for its response, at most `timeout`. The opaque is chosen here.
    ///
    /// # Errors
    /// See [`RemotingError`]; [`RemotingError::fate`] tells whether the peer may have seen the request.
    pub async fn request(&self, command: Command, timeout: Duration) -> Result<Command, RemotingError> {
        let mut command = command;
        self.request_until(&mut command, timeout, Instant::now() + timeout).await
    }

    pub(crate) async fn request_until(
        &self,
        command: &mut Command,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Command, RemotingError> {
        assert!(!command.is_response());
        assert!(!command.is_oneway());
        let calls = &self.0.calls;
        let _permit = acquire(&calls.requests, calls.requests_max, deadline).await?;
        let Some((opaque, mut answer)) = self.pending().open() else { return Err(self.closed_error(Fate::NotSent)) };
        let mut call = OpenCall { connection: self, opaque: Some(opaque) };
        command.opaque = opaque;
        let frame = self.encode(command)?;
        let answered = async {
            match self.0.queue.push(frame, Purpose::Request(opaque)).await {
                Ok(()) => (&mut answer).await.unwrap_or(Err(Lost(Fate::MaybeSent))),
                Err(Gone) => Err(Lost(Fate::NotSent)),
            }
        };
        let answered = rt::select! {
            answered = answered => Some(answered),
            () = sleep_until(deadline) => None,
        };
        match answered {
            Some(Ok(response)) => Ok(response),
            Some(Err(Lost(fate))) => Err(self.closed_error(fate)),
            None => match call.forget() {
                Some(fate) => Err(RemotingError::Timeout { addr: self.0.peer.to_string(), after: timeout, fate }),
                // The call ended in this very moment.
                None => match answer.try_recv() {
                    Ok(Ok(response)) => Ok(response),
                    Ok(Err(Lost(fate))) => Err(self.closed_error(fate)),
                    Err(_) => Err(self.closed_error(Fate::MaybeSent)),
                },
            },
        }
    }

    /// Tells the peer something that is not answered. `Ok`: it is queued; it is lost if the connection ends before it is written.
    ///
    /// # Errors
    /// Nothing was sent: no room in the configured time, or the connection has ended, or the frame is too large.
    pub async fn send_oneway(&self, command: Command) -> Result<(), RemotingError> {
        let wait = self.0.calls.oneway_wait_max;
        let mut command = command;
        self.oneway_until(&mut command, wait, Instant::now() + wait).await
    }

    pub(crate) async fn oneway_until(
        &self,
        command: &mut Command,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<(), RemotingError> {
        assert!(!command.is_response());
        command.mark_oneway();
        let calls = &self.0.calls;
        let permit = acquire(&calls.oneways, calls.oneways_max, deadline).await?;
        if self.is_closed() {
            return Err(self.closed_error(Fate::NotSent));
        }
        command.opaque = self.pending().take_opaque();
        let frame = self.encode(command)?;
        rt::select! {
            queued = self.0.queue.push(frame, Purpose::Oneway { _place: permit }) => queued.map_err(|Gone| self.closed_error(Fate::NotSent)),
            () = sleep_until(deadline) => {
                Err(RemotingError::Timeout { addr: self.0.peer.to_string(), after: timeout, fate: Fate::NotSent })
            }
        }
    }

    /// Queues a response. The connection's end is no error here: the peer that asked is gone.
    pub(crate) async fn respond(&self, frame: Bytes) {
        let _ = self.0.queue.push(frame, Purpose::Response).await;
    }

    /// Queues a response if there is room now.
    pub(crate) fn try_respond(&self, frame: Bytes) -> bool {
        self.0.queue.try_push(frame, Purpose::Response)
    }

    pub(crate) fn encode(&self, command: &Command) -> Result<Bytes, RemotingError> {
        let frame = command.to_bytes();
        let limit = self.0.limits.frame_bytes_max;
        if frame.len() > limit {
            return Err(RemotingError::FrameTooLarge { bytes: frame.len(), limit });
        }
        Ok(frame)
    }

    /// Fails every call of this side, now and from now on.
    pub(crate) fn refuse_calls(&self) {
        self.pending().close();
    }

    /// The end: every call fails, every waiter for room or for the end wakes.
    pub(crate) fn mark_closed(&self) {
        self.refuse_calls();
        self.0.queue.close();
        self.0.closed.cancel();
    }

    /// Notes that bytes were read.
    pub(crate) fn touch_read(&self) {
        self.0.read_us.store(self.age_us(), Ordering::Relaxed);
    }

    /// Notes that bytes were written.
    pub(crate) fn touch_written(&self) {
        self.0.written_us.store(self.age_us(), Ordering::Relaxed);
    }

    fn age_us(&self) -> u64 {
        u64::try_from(self.0.opened.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// When the last byte was read.
    pub(crate) fn last_read(&self) -> Instant {
        self.0.opened + Duration::from_micros(self.0.read_us.load(Ordering::Relaxed))
    }

    /// When the last byte was read or written.
    pub(crate) fn last_activity(&self) -> Instant {
        let written = self.0.opened + Duration::from_micros(self.0.written_us.load(Ordering::Relaxed));
        self.last_read().max(written)
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.pending.lock().expect("no code that can panic runs under this lock")
    }

    fn closed_error(&self, fate: Fate) -> RemotingError {
        RemotingError::Closed { addr: self.0.peer.to_string(), fate }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({} {} -> {})", self.0.id, self.0.local, self.0.peer)
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Connection) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Connection {}

/// Takes a call out of the table however its caller ends, dropped at a wait included.
struct OpenCall<'a> {
    connection: &'a Connection,
    opaque: Option<i32>,
}

impl OpenCall<'_> {
    fn forget(&mut self) -> Option<Fate> {
        self.opaque.take().and_then(|opaque| self.connection.pending().forget(opaque))
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

async fn acquire(
    semaphore: &Arc<Semaphore>,
    limit: u32,
    deadline: Instant,
) -> Result<OwnedSemaphorePermit, RemotingError> {
    rt::select! {
        permit = Arc::clone(semaphore).acquire_owned() => Ok(permit.expect("call limits are never closed")),
        () = sleep_until(deadline) => Err(RemotingError::TooManyRequests { limit }),
    }
}
