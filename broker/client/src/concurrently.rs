//! Waiting for several futures at once.
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Drives all futures together and returns their results in the order given.
pub(crate) async fn all<T, F: Future<Output = T>>(futures: impl IntoIterator<Item = F>) -> Vec<T> {
    let mut waiting: Vec<(Pin<Box<F>>, Option<T>)> =
        futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut all_ready = true;
        for (future, result) in &mut waiting {
            if result.is_some() {
                continue;
            }
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *result = Some(value),
                Poll::Pending => all_ready = false,
            }
        }
        if all_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::all;
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn results_come_in_the_order_of_the_futures() {
        let mut done = pin!(all([ready(1), ready(2)]));
        assert_eq!(done.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(vec![1, 2]));
    }

    #[test]
    fn one_that_waits_holds_all() {
        let futures: Vec<std::pin::Pin<Box<dyn Future<Output = i32>>>> = vec![Box::pin(ready(1)), Box::pin(pending())];
        let mut done = pin!(all(futures));
        assert_eq!(done.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    }
}
