//! When a silent peer is asked for a sign of life.
use std::io;
use std::time::Duration;

/// Keep-alive of a stream (`SO_KEEPALIVE`, `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`; man 7 tcp). Without it a program that only
/// reads waits for ever at a peer whose machine is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// How long nothing was heard before the first probe: 1 to 32,767 s. Parts of a second are cut off.
    pub idle: Duration,
    /// From one unanswered probe to the next: 1 to 32,767 s. Parts of a second are cut off.
    pub interval: Duration,
    /// So many unanswered probes end the stream, one interval after the last, with `TimedOut`: 1 to 127.
    pub probes: u32,
}

/// Linux's `MAX_TCP_KEEPIDLE` and `MAX_TCP_KEEPINTVL`.
const SECONDS_MAX: u64 = 32_767;
/// Linux's `MAX_TCP_KEEPCNT`.
const PROBES_MAX: u32 = 127;

impl KeepAlive {
    /// Linux's own: two hours, then nine probes 75 seconds apart.
    pub const LINUX: KeepAlive =
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };

    /// In whole seconds, as the kernel keeps it; `InvalidInput`: out of its bounds.
    pub(crate) fn checked(self) -> io::Result<KeepAlive> {
        let seconds = |duration: Duration| {
            let seconds = Some(duration.as_secs()).filter(|seconds| (1..=SECONDS_MAX).contains(seconds));
            seconds.map(Duration::from_secs).ok_or(io::ErrorKind::InvalidInput)
        };
        if !(1..=PROBES_MAX).contains(&self.probes) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(KeepAlive { idle: seconds(self.idle)?, interval: seconds(self.interval)?, probes: self.probes })
    }
}
