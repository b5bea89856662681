//! `tokio::sync::watch` without its random order.
//!
//! tokio spreads the waiters of a watch over eight lists by a thread-local generator that is seeded from a process-wide counter, so
//! the order in which they wake depends on the runs before. Here they wake in the order in which they began to wait. What is here
//! has the names and meanings of tokio's; what is missing fails to compile in the simulation build.
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::Notify;

/// Errors of this channel.
pub mod error {
    use std::fmt;

    /// There is no receiver; the value comes back.
    #[derive(PartialEq, Eq, Clone, Copy)]
    pub struct SendError<T>(pub T);

    impl<T> fmt::Debug for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("SendError").finish_non_exhaustive()
        }
    }

    impl<T> fmt::Display for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl<T> std::error::Error for SendError<T> {}

    /// Every sender is gone.
    #[derive(Debug, Clone)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl std::error::Error for RecvError {}
}
use error::{RecvError, SendError};

#[derive(Debug)]
struct Shared<T> {
    value: RwLock<Versioned<T>>,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    changed: Notify,
    receivers_gone: Notify,
}

#[derive(Debug)]
struct Versioned<T> {
    version: u64,
    value: T,
}

impl<T> Shared<T> {
    /// A sender's closure that panicked has left a value all the same, as in tokio.
    fn read(&self) -> RwLockReadGuard<'_, Versioned<T>> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed(&self) -> bool {
        self.senders.load(Ordering::Relaxed) == 0
    }
}

/// Changes the value.
#[derive(Debug)]
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// Sees the newest value.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

/// The value, locked against change: hold it briefly.
pub struct Ref<'a, T> {
    guard: RwLockReadGuard<'a, Versioned<T>>,
    has_changed: bool,
}

impl<T> Ref<'_, T> {
    /// Whether it was new to the receiver.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A channel that holds one value.
pub fn channel<T>(initial: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(initial);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T> Sender<T> {
    /// A channel without receivers.
    pub fn new(initial: T) -> Sender<T> {
        let shared = Shared {
            value: RwLock::new(Versioned { version: 0, value: initial }),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
            changed: Notify::new(),
            receivers_gone: Notify::new(),
        };
        Sender { shared: Arc::new(shared) }
    }

    /// Sets the value; it comes back if there is no receiver.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.receiver_count() == 0 {
            return Err(SendError(value));
        }
        self.send_replace(value);
        Ok(())
    }

    /// Changes the value in place, receivers or not.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value in place; the receivers learn of it if the closure says so.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        {
            let mut guard = self.shared.value.write().unwrap_or_else(PoisonError::into_inner);
            if !modify(&mut guard.value) {
                return false;
            }
            guard.version += 1;
        }
        self.shared.changed.notify_waiters();
        true
    }

    /// Sets the value, receivers or not; the old one comes back.
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|present| std::mem::swap(present, &mut value));
        value
    }

    /// The present value.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref { guard: self.shared.read(), has_changed: false }
    }

    /// Whether no receiver is left.
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until no receiver is left.
    pub async fn closed(&self) {
        loop {
            let notified = self.shared.receivers_gone.notified();
            if self.is_closed() {
                return;
            }
            notified.await;
        }
    }

    /// A receiver to which the present value is not new.
    pub fn subscribe(&self) -> Receiver<T> {
        self.shared.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver { shared: Arc::clone(&self.shared), seen: self.shared.read().version }
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers.load(Ordering::Relaxed)
    }

    /// How many senders there are.
    pub fn sender_count(&self) -> usize {
        self.shared.senders.load(Ordering::Relaxed)
    }

    /// Whether both send into one channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Sender<T> {
        Sender::new(T::default())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Sender { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.shared.senders.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shared.changed.notify_waiters();
        }
    }
}

impl<T> Receiver<T> {
    /// The present value; a new one stays new.
    pub fn borrow(&self) -> Ref<'_, T> {
        let guard = self.shared.read();
        let has_changed = guard.version != self.seen;
        Ref { guard, has_changed }
    }

    /// The present value, which is then not new any more.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let guard = self.shared.read();
        let has_changed = guard.version != self.seen;
        self.seen = guard.version;
        Ref { guard, has_changed }
    }

    /// Whether the value is new; an error if every sender is gone.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        if self.shared.closed() { Err(RecvError(())) } else { Ok(self.is_new()) }
    }

    /// Makes the present value new.
    pub fn mark_changed(&mut self) {
        self.seen = self.shared.read().version.wrapping_sub(1);
    }

    /// Makes the present value not new.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.read().version;
    }

    /// Waits for a new value, which is then not new any more; an error if every sender is gone and nothing is new.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        loop {
            // Made before the question: a change between the two is not missed.
            let notified = self.shared.changed.notified();
            let version = self.shared.read().version;
            if version != self.seen {
                self.seen = version;
                return Ok(());
            }
            if self.shared.closed() {
                return Err(RecvError(()));
            }
            notified.await;
        }
    }

    /// Waits until the value, new or not, pleases; an error if every sender is gone and the last value does not.
    pub async fn wait_for(&mut self, mut pleases: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, RecvError> {
        let mut closed = false;
        loop {
            {
                let guard = self.shared.read();
                let has_changed = guard.version != self.seen;
                self.seen = guard.version;
                if (!closed || has_changed) && pleases(&guard.value) {
                    return Ok(Ref { guard, has_changed });
                }
            }
            if closed {
                return Err(RecvError(()));
            }
            closed = self.changed_or_closed().await;
        }
    }

    /// Waits for a new value, which stays new (false), or for the end (true).
    async fn changed_or_closed(&self) -> bool {
        loop {
            let notified = self.shared.changed.notified();
            if self.is_new() {
                return false;
            }
            if self.shared.closed() {
                return true;
            }
            notified.await;
        }
    }

    fn is_new(&self) -> bool {
        self.shared.read().version != self.seen
    }

    /// Whether both listen to one channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.shared.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.shared.receivers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shared.receivers_gone.notify_waiters();
        }
    }
}
