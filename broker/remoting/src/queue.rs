//! The bounded write queue of one connection.
use bytes::Bytes;
use rt::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use std::sync::Arc;

/// What a queued frame is, for the moment of writing.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A response to the peer.
    Response,
    /// A request of this side; skipped if its caller has given up before it is written.
    Request(i32),
    /// A one-way request; the permit counts it until it is written.
    Oneway { _place: OwnedSemaphorePermit },
}

/// An encoded frame waiting to be written.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) frame: Bytes,
    pub(crate) purpose: Purpose,
    /// Its share of the queue's bytes, given back when it has been written.
    _share: OwnedSemaphorePermit,
}

/// The connection has ended: nothing more is written.
#[derive(Debug)]
pub(crate) struct Gone;

/// The sending side.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    frames: mpsc::Sender<Queued>,
    bytes: Arc<Semaphore>,
    bytes_max: usize,
}

impl WriteQueue {
    pub(crate) fn new(frames_max: usize, bytes_max: usize) -> (WriteQueue, mpsc::Receiver<Queued>) {
        let (frames, receiver) = mpsc::channel(frames_max);
        (WriteQueue { frames, bytes: Arc::new(Semaphore::new(bytes_max)), bytes_max }, receiver)
    }

    /// Waits for room and queues the frame. An error: the connection has ended.
    pub(crate) async fn push(&self, frame: Bytes, purpose: Purpose) -> Result<(), Gone> {
        let share = Arc::clone(&self.bytes).acquire_many_owned(self.share(&frame)).await.map_err(|_| Gone)?;
        self.frames.send(Queued { frame, purpose, _share: share }).await.map_err(|_| Gone)
    }

    /// Queues the frame if there is room now.
    pub(crate) fn try_push(&self, frame: Bytes, purpose: Purpose) -> bool {
        let Ok(share) = Arc::clone(&self.bytes).try_acquire_many_owned(self.share(&frame)) else { return false };
        self.frames.try_send(Queued { frame, purpose, _share: share }).is_ok()
    }

    /// Nobody waits for room any longer.
    pub(crate) fn close(&self) {
        self.bytes.close();
    }

    /// Bytes queued now.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes_max - self.bytes.available_permits()
    }

    fn share(&self, frame: &Bytes) -> u32 {
        u32::try_from(frame.len().min(self.bytes_max)).expect("the limit fits 32 bits: checked with the configuration")
    }
}
