/// Waits on several branches, polled in the order written. tokio's own default is a random order from a process-wide static,
/// which makes a seed depend on the seeds before it; so ours is always biased: put cancellation first.
#[macro_export]
macro_rules! select {
    ($($branches:tt)*) => {
        $crate::macro_support::select! { biased; $($branches)* }
    };
}
