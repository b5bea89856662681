use super::Instant;
use crate::sim::node::NodeId;
use crate::sim::timer::TimerKey;
use crate::sim::world::{try_world, world};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Waits until a point of the clock of the node that made it.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    deadline: Instant,
    node: NodeId,
    incarnation: u32,
    state: State,
    /// tokio's cannot be moved after its first poll: code that compiles here compiles there.
    _pinned: PhantomPinned,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unregistered,
    Registered(TimerKey),
    Elapsed,
}

/// Waits that long.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now().saturating_add(duration))
}

/// Waits until `deadline`.
pub fn sleep_until(deadline: Instant) -> Sleep {
    let world = world();
    let node = world.here();
    let incarnation = node.incarnation.get();
    Sleep { deadline, node: node.id, incarnation, state: State::Unregistered, _pinned: PhantomPinned }
}

impl Sleep {
    /// When it ends.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it has ended.
    pub fn is_elapsed(&self) -> bool {
        self.state == State::Elapsed
    }

    /// Gives it another end, whether or not it has ended. It registers again at its next poll.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        // SAFETY: nothing of it is moved; the pin exists for tokio's sake.
        let this = unsafe { self.get_unchecked_mut() };
        this.cancel();
        this.deadline = deadline;
        this.state = State::Unregistered;
    }

    fn cancel(&mut self) {
        let State::Registered(key) = self.state else { return };
        // After the run nothing is left, and when its incarnation ended all its timers were thrown away.
        let Some(world) = try_world() else { return };
        let node = world.at(self.node);
        if node.incarnation.get() != self.incarnation {
            return;
        }
        let is_new_first = {
            let mut timers = node.timers.borrow_mut();
            let first = timers.next_deadline();
            timers.cancel(key) && timers.next_deadline() != first
        };
        // Most timers are time-outs far behind the node's next timer.
        if is_new_first {
            world.refresh_timers(node);
        }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: as in `reset`.
        let this = unsafe { self.get_unchecked_mut() };
        let world = world();
        let node = world.at(this.node);
        let still_waits = match this.state {
            State::Elapsed => false,
            // A sleep that was moved to another node and has outlived its own: no timer of it is left.
            _ if node.incarnation.get() != this.incarnation => false,
            State::Registered(key) => node.timers.borrow_mut().touch(key, cx.waker()),
            State::Unregistered => {
                let deadline = this.deadline.local();
                let ahead = node.clock.get().local(world.now.get()) < deadline;
                if ahead {
                    this.state = State::Registered(world.add_timer(node, deadline, cx.waker()));
                }
                ahead
            }
        };
        if still_waits {
            return Poll::Pending;
        }
        this.state = State::Elapsed;
        Poll::Ready(())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel();
    }
}
