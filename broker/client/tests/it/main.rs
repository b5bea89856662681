//! Producer and consumer against scripted name servers and brokers, in simulated time.
#![cfg(madsim)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod consume;
mod failover;
mod request_reply;
mod send;
mod support;
mod transactions;
