//! The operator's wish that a node's program end.
use super::world::world;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

/// Returns when the current node was asked to stop by [`request_stop`](crate::world::request_stop). Never fails.
pub async fn termination() -> io::Result<()> {
    poll_fn(|cx| {
        let node = world().here();
        if node.stop_requested.get() {
            return Poll::Ready(Ok(()));
        }
        let mut waiters = node.stop_waiters.borrow_mut();
        if !waiters.iter().any(|waiter| waiter.will_wake(cx.waker())) {
            waiters.push(cx.waker().clone());
        }
        Poll::Pending
    })
    .await
}
