//! Brokers as their clients see them, in a simulated world: raw requests, virtual time, crashes.
#![cfg(madsim)]
mod batch_queues;
mod clients;
mod filters;
mod light_queues;
mod offsets;
mod pulls;
mod queries;
mod regain;
mod registration;
mod replies;
mod retention;
mod sends;
mod slaves;
mod support;
mod timers;
mod transactions;
