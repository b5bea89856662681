use super::{Instant, Sleep, sleep_until};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// What follows a tick that came late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissedTickBehavior {
    /// Missed ticks are made up for at once.
    #[default]
    Burst,
    /// The next tick is one period after the late one.
    Delay,
    /// The next tick is the next one of the old schedule.
    Skip,
}

/// Ticks; the first at once, or as [`interval_at`] says.
#[derive(Debug)]
pub struct Interval {
    sleep: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

/// Ticks now and after each `period`.
///
/// # Panics
/// If `period` is zero.
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks at `start` and after each `period`.
///
/// # Panics
/// If `period` is zero.
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(period > Duration::ZERO, "`period` must be non-zero");
    Interval { sleep: Box::pin(sleep_until(start)), period, missed: MissedTickBehavior::default() }
}

impl Interval {
    /// Waits for the next tick; the result is when it was due. Nothing is lost if the future is dropped.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// As [`tick`](Self::tick), for hand-written futures.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.as_mut().poll(cx));
        let due = self.sleep.deadline();
        let next = self.next_tick(due, Instant::now());
        self.sleep.as_mut().reset(next);
        Poll::Ready(due)
    }

    fn next_tick(&self, due: Instant, now: Instant) -> Instant {
        // As in tokio: up to 5 ms late is on time.
        if now.duration_since(due) <= Duration::from_millis(5) {
            return due.saturating_add(self.period);
        }
        match self.missed {
            MissedTickBehavior::Burst => due.saturating_add(self.period),
            MissedTickBehavior::Delay => now.saturating_add(self.period),
            MissedTickBehavior::Skip => {
                let period = self.period.as_nanos();
                let into = now.duration_since(due).as_nanos() % period;
                let rest = u64::try_from(period - into).unwrap_or(u64::MAX);
                now.saturating_add(Duration::from_nanos(rest))
            }
        }
    }

    /// The next tick comes one period from now.
    pub fn reset(&mut self) {
        let next = Instant::now().saturating_add(self.period);
        self.sleep.as_mut().reset(next);
    }

    /// The next tick comes `after` from now.
    pub fn reset_after(&mut self, after: Duration) {
        let next = Instant::now().saturating_add(after);
        self.sleep.as_mut().reset(next);
    }

    /// The next tick comes at once.
    pub fn reset_immediately(&mut self) {
        self.sleep.as_mut().reset(Instant::now());
    }

    /// Time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// What follows a late tick.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed
    }

    /// Sets what follows a late tick.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }
}
