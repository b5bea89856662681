//! Behaviour of connections: the same bodies on the real loopback (`cargo prod test`) and in a simulated world (`cargo test`), and in the
//! simulation also what needs faults and virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod loopback;
mod support;

// Faults and virtual time exist in the simulated half only.
#[cfg(madsim)]
mod faults;
#[cfg(madsim)]
mod malformed;
#[cfg(madsim)]
mod pressure;
