//! The one task that reads and writes a connection's socket, starts its requests' tasks, and ends it.
use crate::connection::Connection;
use crate::error::CloseReason;
use crate::handler::{Handler, Lane};
use crate::queue::{Purpose, Queued};
use bytes::{BufMut, Bytes, BytesMut};
use protocol::{Command, ExtFields, Flag, FrameError, FrameLimits, Language, ResponseCode, Serialization, VERSION};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{OwnedReadHalf, OwnedWriteHalf, TcpStream};
use rt::sync::{CancellationToken, OwnedSemaphorePermit, Semaphore, cancelled, mpsc};
use rt::task::TaskGroup;
use rt::time::{Duration, Instant, sleep, sleep_until};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tracing::{debug, warn};

/// Room made for one read: a TCP receive window's worth costs few system calls and little memory.
const READ_BYTES: usize = 16 * 1024;
/// Frames written together at most.
const FRAMES_MAX: usize = 256;
/// Less than the two words that begin a frame.
const FEW_BYTES: usize = 5;
/// How late a task may run on a busy machine, in simulation.
const LATE: Duration = Duration::from_millis(10);
/// Small frames are copied together up to this size before a write.
const WRITE_BYTES: usize = 64 * 1024;
/// Apache's remark for a request that finds no thread.
const OVERLOAD: &str = "[OVERLOAD]system busy, start flow control for a while";

/// Drives one connection from its first byte to its end.
pub(crate) struct Driver {
    connection: Connection,
    frames: mpsc::Receiver<Queued>,
    handler: Option<Arc<dyn Handler>>,
    requests: Arc<TaskGroup>,
    in_flight: InFlight,
}

/// The peer's requests being served.
#[derive(Clone)]
struct InFlight {
    prompt: Arc<Semaphore>,
    held: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// A served request's place; dropping it makes room for the next.
type Place = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Driver {
    pub(crate) fn new(
        connection: Connection,
        frames: mpsc::Receiver<Queued>,
        handler: Option<Arc<dyn Handler>>,
        requests: Arc<TaskGroup>,
    ) -> Driver {
        let limits = &connection.0.limits;
        let in_flight = InFlight {
            prompt: Arc::new(Semaphore::new(limits.prompt_in_flight_max as usize)),
            held: Arc::new(Semaphore::new(limits.held_in_flight_max as usize)),
            bytes: Arc::new(Semaphore::new(limits.in_flight_bytes_max)),
        };
        Driver { connection, frames, handler, requests, in_flight }
    }

    pub(crate) async fn run(self, stream: TcpStream) {
        let (connection, handler) = (self.connection.clone(), self.handler.clone());
        if let Some(handler) = &handler {
            handler.connection_opened(&connection);
        }
        // Fails the calls even if this task is aborted.
        let ending = Ending(connection.clone());
        let reason = self.pump(stream).await;
        drop(ending);
        match &reason {
            CloseReason::Peer | CloseReason::Local | CloseReason::Idle | CloseReason::Io(_) => {
                debug!(id = %connection.id(), peer = %connection.peer_addr(), %reason, "connection closed");
            }
            CloseReason::Frame(_) | CloseReason::Tls | CloseReason::ProxyProtocol => {
                warn!(id = %connection.id(), peer = %connection.peer_addr(), %reason, "connection closed");
            }
        }
        if let Some(handler) = &handler {
            handler.connection_closed(&connection);
        }
    }

    /// Reads and writes until one of both ends the connection.
    async fn pump(self, stream: TcpStream) -> CloseReason {
        let Driver { connection, frames, handler, requests, in_flight } = self;
        let (read, write) = stream.into_split();
        let finish = CancellationToken::new();
        let mut writer = pin!(Writer { connection: &connection, frames, write }.run(&finish));
        let reader = Reader { connection: &connection, handler, requests: &requests, in_flight: &in_flight };
        rt::select! {
            () = cancelled(&connection.0.kill) => return CloseReason::Local,
            () = cancelled(&connection.0.drain) => {}
            reason = reader.run(read) => return reason,
            reason = &mut writer => return reason,
            () = idle(&connection) => return CloseReason::Idle,
        }
        // Responses are no longer read, so no call of this side can end well.
        connection.refuse_calls();
        rt::select! {
            () = connection.0.kill.cancelled() => {}
            reason = &mut writer => return reason,
            () = in_flight.none(&connection, &finish) => {}
            () = sleep(connection.0.limits.drain_max) => rt::probe!("remoting.drain_gave_up"),
        }
        CloseReason::Local
    }
}

/// Ends the calls of the connection however its task ends.
struct Ending(Connection);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.mark_closed();
    }
}

/// Returns when nothing has been read or written for the configured time.
async fn idle(connection: &Connection) {
    loop {
        let deadline = connection.last_activity() + connection.0.limits.idle_max;
        if Instant::now() >= deadline {
            return;
        }
        sleep_until(deadline).await;
    }
}

impl InFlight {
    /// A place in the prompt lane: waits, and so stops the reading, until there is one.
    async fn prompt(&self, bytes: u32) -> Place {
        let place = Arc::clone(&self.prompt).acquire_owned().await;
        let share = Arc::clone(&self.bytes).acquire_many_owned(bytes).await;
        const OPEN: &str = "in-flight limits are never closed";
        (place.expect(OPEN), share.expect(OPEN))
    }

    /// A place in the held lane, if there is one now.
    fn held(&self, bytes: u32) -> Option<Place> {
        let place = Arc::clone(&self.held).try_acquire_owned().ok()?;
        let share = Arc::clone(&self.bytes).try_acquire_many_owned(bytes).ok()?;
        Some((place, share))
    }

    /// Waits until nothing is being served, then lets the writer finish; its end is waited for elsewhere.
    async fn none(&self, connection: &Connection, finish: &CancellationToken) {
        let limits = &connection.0.limits;
        let _all = self.prompt.acquire_many(limits.prompt_in_flight_max).await;
        let _held = self.held.acquire_many(limits.held_in_flight_max).await;
        finish.cancel();
        std::future::pending().await
    }
}

struct Reader<'a> {
    connection: &'a Connection,
    handler: Option<Arc<dyn Handler>>,
    requests: &'a TaskGroup,
    in_flight: &'a InFlight,
}

impl Reader<'_> {
    async fn run(self, mut read: OwnedReadHalf) -> CloseReason {
        let limit = u32::try_from(self.connection.0.limits.frame_bytes_max).expect("checked with the configuration");
        let limits = FrameLimits { frame_bytes_max: limit };
        // With the first frame's bytes still in front there is to be room for another read.
        let mut buffer = BytesMut::with_capacity(2 * READ_BYTES);
        let mut first = true;
        loop {
            buffer.reserve(READ_BYTES);
            let room = if rt::buggify!("remoting.read_few_bytes") { FEW_BYTES } else { READ_BYTES };
            match read.read_buf(&mut (&mut buffer).limit(room)).await {
                Ok(0) => return CloseReason::Peer,
                Ok(_) => self.connection.touch_read(),
                Err(error) => return CloseReason::Io(error.kind()),
            }
            rt::dawdle!("remoting.read_late", LATE);
            if first {
                first = false;
                if let Some(reason) = foreign(&buffer) {
                    return reason;
                }
            }
            if let Err(error) = self.take_frames(&mut buffer, limits).await {
                return CloseReason::Frame(error);
            }
        }
    }

    async fn take_frames(&self, buffer: &mut BytesMut, limits: FrameLimits) -> Result<(), FrameError> {
        loop {
            let before = buffer.len();
            let Some(command) = Command::decode(buffer, limits)? else { return Ok(()) };
            self.dispatch(command, before - buffer.len()).await;
        }
    }

    async fn dispatch(&self, command: Command, bytes: usize) {
        if command.is_response() {
            self.connection.pending().answer(command);
            return;
        }
        let Some(handler) = &self.handler else {
            let remark = format!(" request type {} not supported", command.code);
            return self.refuse(&command, ResponseCode::RequestCodeNotSupported, &remark).await;
        };
        let share = bytes.min(self.connection.0.limits.in_flight_bytes_max);
        let share = u32::try_from(share).expect("checked with the configuration");
        let lane = handler.lane(&command);
        let place = match lane {
            Lane::Prompt => self.in_flight.prompt(share).await,
            Lane::Held => match self.in_flight.held(share) {
                Some(place) => place,
                None => {
                    rt::probe!("remoting.held_lane_full");
                    return self.refuse(&command, ResponseCode::SystemBusy, OVERLOAD).await;
                }
            },
        };
        self.requests.spawn(serve(self.connection.clone(), Arc::clone(handler), command, lane, place));
    }

    /// Answers without the handler; waiting for room in the write queue stops the reading.
    async fn refuse(&self, request: &Command, code: ResponseCode, remark: &str) {
        if !request.is_oneway()
            && let Ok(frame) = self.connection.encode(&Command::reply(request, code).with_remark(remark))
        {
            self.connection.respond(frame).await;
        }
    }
}

/// The first bytes of protocols that Apache's server understands beside its own. A frame within the limits begins with a byte below 2.
fn foreign(first_bytes: &[u8]) -> Option<CloseReason> {
    match first_bytes.first()? {
        0x16 => Some(CloseReason::Tls),
        b'P' | 0x0D => Some(CloseReason::ProxyProtocol),
        _ => None,
    }
}

/// One request's task.
async fn serve(connection: Connection, handler: Arc<dyn Handler>, request: Command, lane: Lane, place: Place) {
    let oneway = request.is_oneway();
    let asked = Asked { opaque: request.opaque, serialization: request.serialization };
    let mut unanswered = Unanswered { connection: &connection, asked, armed: !oneway };
    rt::dawdle!("remoting.request_late", LATE);
    let answer = handler.handle(connection.clone(), request);
    let answer = match lane {
        Lane::Prompt => answer.await,
        Lane::Held => rt::select! { () = connection.closed() => None, answer = answer => answer },
    };
    unanswered.armed = false;
    if let Some(mut answer) = answer
        && !oneway
    {
        answer.opaque = asked.opaque;
        answer.flag = RESPONSE;
        let frame = match connection.encode(&answer) {
            Ok(frame) => frame,
            Err(error) => {
                warn!(peer = %connection.peer_addr(), code = answer.code, %error, "answer cannot be written");
                match connection.encode(&asked.failure("the answer exceeds the frame limit")) {
                    Ok(frame) => frame,
                    Err(_) => return,
                }
            }
        };
        rt::dawdle!("remoting.answer_late", LATE);
        connection.respond(frame).await;
    }
    // Room for the next request only now: a peer that does not read its answers is not served for ever.
    drop(place);
}

const RESPONSE: Flag = Flag(1);

/// What of a request its answer needs, kept while the handler owns the rest.
#[derive(Clone, Copy)]
struct Asked {
    opaque: i32,
    serialization: Serialization,
}

impl Asked {
    fn failure(self, remark: &str) -> Command {
        Command {
            code: ResponseCode::SystemError.as_i32(),
            language: Language::Rust,
            version: VERSION,
            opaque: self.opaque,
            flag: RESPONSE,
            remark: Some(remark.to_owned()),
            ext_fields: ExtFields::new(),
            body: Bytes::new(),
            serialization: self.serialization,
        }
    }
}

/// Answers if the handler panics: a silent server costs an Apache client the whole connection.
struct Unanswered<'a> {
    connection: &'a Connection,
    asked: Asked,
    armed: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.armed
            && let Ok(frame) = self.connection.encode(&self.asked.failure("the request's handler failed"))
        {
            self.connection.try_respond(frame);
        }
    }
}

struct Writer<'a> {
    connection: &'a Connection,
    frames: mpsc::Receiver<Queued>,
    write: OwnedWriteHalf,
}

impl Writer<'_> {
    /// Writes what is queued. `finish`: the queue takes no more, what is in it is written, and the socket's writing side is closed.
    async fn run(mut self, finish: &CancellationToken) -> CloseReason {
        let mut small = BytesMut::new();
        let mut batch = Vec::new();
        let mut finished = pin!(cancelled(finish));
        loop {
            let first = rt::select! {
                () = &mut finished, if !self.frames.is_closed() => {
                    self.frames.close();
                    continue;
                }
                frame = self.frames.recv() => frame,
            };
            let Some(first) = first else {
                let _ = self.write.shutdown().await;
                return CloseReason::Local;
            };
            batch.push(first);
            let batch_max = if rt::buggify!("remoting.write_one_frame") { 1 } else { FRAMES_MAX };
            while batch.len() < batch_max
                && let Ok(next) = self.frames.try_recv()
            {
                batch.push(next);
            }
            rt::dawdle!("remoting.write_late", LATE);
            if let Err(error) = self.write_batch(&mut small, &batch).await {
                return CloseReason::Io(error.kind());
            }
            batch.clear();
        }
    }

    async fn write_batch(&mut self, small: &mut BytesMut, batch: &[Queued]) -> io::Result<()> {
        for queued in batch {
            if let Purpose::Request(opaque) = queued.purpose
                && !self.connection.pending().written(opaque)
            {
                rt::probe!("remoting.request_given_up_in_queue");
                continue;
            }
            if small.len() + queued.frame.len() > WRITE_BYTES {
                self.write_all(small).await?;
                small.clear();
            }
            if batch.len() == 1 || queued.frame.len() > WRITE_BYTES / 2 {
                self.write_all(small).await?;
                small.clear();
                self.write_all(&queued.frame).await?;
            } else {
                small.extend_from_slice(&queued.frame);
            }
        }
        self.write_all(small).await?;
        small.clear();
        Ok(())
    }

    async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write.write(bytes).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
            self.connection.touch_written();
        }
        Ok(())
    }
}
