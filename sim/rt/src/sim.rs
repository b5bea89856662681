//! The simulated half: one world per run, on one thread, inside one poll of madsim's `block_on`.
//!
//! madsim gives the context in which libc's clock, entropy and thread creation are replaced; everything else is here.
//!
//! | file | what it owns |
//! |---|---|
//! | `world.rs` | virtual time, the nodes, and what is to come; the loop's `step` |
//! | `node.rs`, `table.rs` | one machine: clock, timers, disk, incarnation, whether it is up, paused, doomed |
//! | `executor.rs`, `waker.rs`, `policy.rs`, `task.rs` | tasks, which one is polled next, join handles |
//! | `timer.rs`, `due.rs`, `clock.rs`, `time.rs` | timers keyed by a node's local time, and whose is first; `Instant`, `Sleep`, `Interval` |
//! | `crash.rs` | the one synchronous function that ends a node; crash points |
//! | `net.rs`, `fs.rs` | the network and the disks |
//! | `rand.rs`, `probes.rs`, `trace.rs`, `finding.rs` | entropy, marks, the hash over every event, what a panic becomes |
//! | `sight.rs` | what an onlooker is told, if there is one |
//! | `interpose.rs`, `watch.rs` | clock and entropy of dependencies; tokio's one channel with a random order |
//! | `run.rs`, `control.rs` | starting a world; the public control surface `rt::world` |
//!
//! # Invariants
//! - No user code runs while a `RefCell` of the world is borrowed: a task's future is taken out of its slot before it is polled or dropped.
//!   (The experimenter's packet rules do, and may not touch the network.)
//! - Statics hold nothing that a run can see: the only ones are the pointer to the thread's world, the last panic's text, the panic hook's
//!   `Once` and the address of libc's `syscall`.
//! - Every handle that outlives a poll compares incarnations ([`node::Node::serves`]), so a dying task changes nothing.

pub(crate) mod clock;
pub(crate) mod control;
pub(crate) mod crash;
mod due;
mod executor;
pub(crate) mod finding;
pub(crate) mod fs;
pub mod interpose;
pub(crate) mod net;
pub(crate) mod node;
pub(crate) mod policy;
pub(crate) mod probes;
pub(crate) mod rand;
pub(crate) mod run;
pub(crate) mod sight;
pub(crate) mod signal;
mod table;
pub(crate) mod task;
pub(crate) mod time;
mod timer;
pub(crate) mod trace;
mod waker;
pub mod watch;
pub(crate) mod world;
