//! The store against golden files of Apache's broker, against power loss, and against a model. All of it needs virtual time, disk
//! faults or planted files, so there is nothing to run in the production build.
#![cfg(madsim)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod batch_queues;
mod crash;
mod damage;
mod extension;
mod golden;
mod golden_index;
mod inspect;
mod light_queues;
mod model;
mod places;
mod reading;
mod repair;
mod replica;
mod retention;
mod support;
mod sweep;
mod timer;
mod topic_removal;
