//! Finds and explains bugs in any program written on `rt`.
//!
//! **Owns** the way from a seed to a verdict: a [`scenario::Scenario`] draws an explicit plan from a seed, runs it in a
//! simulated world, and answers with a [`report::Report`]; campaigns run many seeds, each in a forked child of its own, keep what
//! failed as case files, prove that runs are deterministic, and measure the oracle against planted bugs.
//!
//! **Must never know** the program under test: no broker, no message, no topic. Operations are a type parameter, nodes are
//! names with a closure that boots them, claims are trait objects.
//!
//! | module | what it gives |
//! |---|---|
//! | [`scenario`] | the trait of a claim, and the registry that a binary and its tests share |
//! | [`variation`] | how a plan is made smaller, rescheduled, changed a little |
//! | [`plan`] | case files: a plan as JSON that reads well in a review |
//! | [`duration`] | durations as people write them, for plans |
//! | [`desk`] | what a scenario holds on to while its world runs; starts that world |
//! | [`history`] | what clients asked and were told, with virtual times |
//! | [`fault`], [`nemesis`] | faults as data, one file a kind; the task that applies and heals them and reads their effect meters |
//! | [`atlas`] | which damage a scenario permits |
//! | [`leak`] | what an ended program or node leaves behind |
//! | [`verdict`], [`checker`] | violations with evidence; generic checkers |
//! | [`report`] | what one run hands to its parent |
//! | [`recording`] | what happened in one run, taken down if somebody asks |
//! | [`page`] | a recording for people: one HTML file, or plain text |
//! | [`worker`] | one forked child a seed, watched by the wall clock |
//! | [`campaign`] | many seeds: progress, table, cases; results that outlive the process and can be put together |
//! | [`shard`] | one part of a campaign |
//! | [`explore`] | in which order a campaign looks at plans |
//! | [`shrink`] | from a failing case to a small one |
//! | [`check`] | two processes in lockstep: the first diverging event |
//! | [`mutants`] | planted bugs, and the invariant that kills each |
//! | [`log`] | log lines with virtual time and node name |
//! | [`testing`] | the same from `cargo test` |
//! | [`cli`] | the command line |
//!
//! In a production build (without `--cfg madsim`) this package compiles to nothing but this page.
//!
//! Invariants: running a plan never looks at the seed that drew it; the process that forks children has never run a world; a dead
//! child is a finding with its seed, never a lost one; an enabled fault that had no effect is reported.

#[cfg(madsim)]
pub mod atlas;
#[cfg(madsim)]
pub mod campaign;
#[cfg(madsim)]
pub mod check;
#[cfg(madsim)]
pub mod checker;
#[cfg(madsim)]
pub mod cli;
#[cfg(madsim)]
pub mod desk;
#[cfg(madsim)]
pub mod duration;
#[cfg(madsim)]
pub mod error;
#[cfg(madsim)]
pub mod explore;
#[cfg(madsim)]
pub mod fault;
#[cfg(madsim)]
pub mod history;
#[cfg(madsim)]
pub mod leak;
#[cfg(madsim)]
pub mod log;
#[cfg(madsim)]
pub mod mutants;
#[cfg(madsim)]
pub mod nemesis;
#[cfg(madsim)]
pub mod page;
#[cfg(madsim)]
pub mod plan;
#[cfg(madsim)]
pub mod recording;
#[cfg(madsim)]
pub mod report;
#[cfg(madsim)]
pub mod scenario;
#[cfg(madsim)]
pub mod shard;
#[cfg(madsim)]
pub mod shrink;
#[cfg(madsim)]
pub mod testing;
#[cfg(madsim)]
mod text;
#[cfg(madsim)]
pub mod variation;
#[cfg(madsim)]
pub mod verdict;
#[cfg(madsim)]
pub mod worker;
