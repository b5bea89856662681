//! Counters since the start, for monitoring only.
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub puts: Counter,
    pub put_bytes: Counter,
    pub puts_failed: Counter,
    pub gets: Counter,
    pub gets_found: Counter,
    pub gets_missed: Counter,
    pub messages_got: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
