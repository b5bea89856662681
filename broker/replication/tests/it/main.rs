//! Masters and slaves on their own machines, with faults. All of it needs the simulated half.
#![cfg(madsim)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod counting;
mod divergence;
mod golden;
mod hostile;
mod replicate;
mod support;
