//! Making an append durable on more than one broker: RocketMQ's classic HA, both roles, in Apache's byte protocol.
//!
//! **Owns** the HA port's stream (frames to the slave, offset reports to the master), who is connected as a slave and how much of the log
//! it holds, the wait for copies, and the check that a slave's log is a prefix of its master's before a byte is appended to it.
//!
//! **Must never know** a topic, a producer, a response code, or how a broker learns who its master is.
//!
//! | module | what it gives |
//! |---|---|
//! | `wire` | the bytes of the stream, once |
//! | `master_core` | one slave's connection at the master, without IO: reports in, transfers out |
//! | `slave_core` | the slave's side, without IO: frames in, appends and reports out |
//! | `acks` | which slaves hold what, and who waits for it (pure) |
//! | `common_prefix` | the search for the end of the common log by digests (pure) |
//! | `master` | [`HaMaster`]: the listening shell around `master_core` and `acks` |
//! | `slave` | [`HaSlave`]: the connecting shell around `slave_core` and `common_prefix` |
//! | `digest` | LOG_DIGEST, the comparison request, at both ends: [`answer_log_digest`] |
//! | `regain_rule` | what a returning master takes from which slave, and when it has heard enough of them (pure) |
//! | `regain` | [`Regain`]: the shell around it, and READ_LOG at both ends: [`answer_read_log`] |
//! | `ack_rule` | [`AckRule`]: how many copies a put waits for (pure) |
//! | `config`, `error` | limits and failures |
//!
//! Invariants:
//! - A slave appends only at its own end, and only bytes that follow its own in the master's log: a gap, an overlap or a malformed frame
//!   closes the connection with nothing appended.
//! - A report beyond what was sent on that connection, or beyond the master's readable end, closes the connection and acknowledges nothing.
//! - Copies are counted by slave, not by connection.
//! - A master takes from a slave only what follows its whole log, before it appends anything itself and before it lets a slave in.
//! - Nothing beyond the master's readable end leaves it: with synchronous flush a slave never holds what the master may still lose.

#![deny(clippy::host_endian_bytes, clippy::little_endian_bytes)]

mod ack_rule;
mod acks;
mod common_prefix;
mod config;
mod digest;
mod error;
#[cfg(test)]
mod golden_tests;
mod master;
mod master_core;
mod regain;
mod regain_rule;
mod slave;
mod slave_core;
mod wire;

pub use ack_rule::{AckRule, InSyncReplicasNotEnough};
pub use acks::KnownSlave;
pub use config::{DivergencePolicy, HaMasterConfig, HaSlaveConfig, MasterAddr};
pub use digest::answer_log_digest;
pub use error::{CompareError, HaError, RegainError, ReplicationWaitError, SlaveFault, StreamFault};
pub use master::{HaMaster, SlaveState};
pub use regain::{Regain, Regained, answer_read_log};
pub use regain_rule::slaves_to_hear;
pub use slave::{HaSlave, HaSlaveState, SlavePhase};
