//! A name server over sockets: the same bodies on the real loopback (`cargo prod test`) and in a simulated world (`cargo test`).

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read their fixtures from the real disk")]

mod support;

mod golden;
mod life;
mod requests;
