//! What the protocol must hold against: bytes made by Apache RocketMQ, values of every shape, and bytes of no shape at all.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read their fixtures from the real disk")]

mod bodies;
mod filters;
mod frames;
mod golden;
mod golden_store;
mod golden_wire;
mod headers;
mod hostile;
mod records;
