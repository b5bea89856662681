//! What the simulated world promises, seen from outside.
#![expect(clippy::unwrap_used, reason = "an unwrap that fails is a test that fails")]
mod conformance;
#[cfg(madsim)]
mod crash;
#[cfg(madsim)]
mod determinism;
#[cfg(madsim)]
mod disk;
#[cfg(madsim)]
mod disk_model;
#[cfg(madsim)]
mod executor;
#[cfg(madsim)]
mod network;
#[cfg(madsim)]
mod network_ipv6;
#[cfg(madsim)]
mod network_ports;
#[cfg(madsim)]
mod network_probes;
#[cfg(madsim)]
mod network_rules;
#[cfg(madsim)]
mod network_udp;
#[cfg(madsim)]
mod probes;
#[cfg(madsim)]
mod scale;
#[cfg(madsim)]
mod sight;
#[cfg(madsim)]
mod time;
#[cfg(madsim)]
mod watch;
