//! The broker process: what it answers to each request, what it remembers, and what it does by the clock.
//!
//! **Owns** the tables of one broker (topics, subscription groups, committed offsets, consumer groups, queue locks, held pulls),
//! their files under `config/`, the mapping of every outcome to a response code, registration with the name servers, and the
//! copying of a master's tables by its slave.
//! **Must never know** bytes on the wire or on the disk (`protocol`, `store`), how bytes reach a slave (`replication`), or the
//! text of a configuration file (`broker`).
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`](ClusterConfig) | typed settings: what a cluster agrees on, what one node is told |
//! | `broker` | the shared state that handlers work on |
//! | `dispatch` | request code to handler; the only `Handler` of the listening sockets |
//! | `send`, `send_back`, `put`, `delay` | storing: checks, the append and its waits, retries, level delay |
//! | `timer_send`, `timer`, `timer_state`, `recall` | messages that wait for a moment of their own |
//! | `reply_message` | replies to who waits for them |
//! | `transaction` | half messages, their ends, the check of those whose producer does not say |
//! | `pull`, `hold`, `filter`, `property_read` | reading: checks, long polling, tags, properties |
//! | `offset_requests`, `offsets` | committed offsets |
//! | `client_requests`, `consumers`, `consumer_filters`, `producers`, `locks` | who is connected, what they filter by, change notices, queue locks |
//! | `topic_requests`, `topics`, `group_requests`, `groups` | topics and subscription groups |
//! | `admin` | what mqadmin asks for |
//! | `registration`, `slave_sync` | talking to name servers, and to the master |
//! | `regain` | a master's start: what its slaves have and it lost |
//! | `known_slaves` | what a master knows of its slaves, for its next life |
//! | `retention`, `retention_requests` | removing old messages: when, what holds them back, what operators ask for |
//! | `schedule` | everything periodic |
//! | `reply` | errors and outcomes to response codes |
//!
//! # Invariants
//! - No answer reveals state that is not yet durable under the configured mode; a poisoned store gets no answer at all and ends the node.
//! - A slave stores nothing but what its master sent, and takes no offsets from pulls.
//! - A pull is answered once: by a matching arrival, its deadline, or the end of its connection.
//! - A committed offset is lowered only by an update that says so or by a reset, never by a pull, a merge or a restart.

mod admin;
mod broker;
mod client_requests;
mod config;
mod consumer_filters;
mod consumers;
mod delay;
mod dispatch;
mod error;
mod filter;
mod group_requests;
mod groups;
mod hold;
mod known_slaves;
mod locks;
mod names;
mod offset_requests;
mod offsets;
mod persist;
mod producers;
mod property_read;
mod pull;
mod put;
mod recall;
mod refusal;
mod regain;
mod registration;
mod replicas;
mod reply;
mod reply_message;
mod retention;
mod retention_requests;
mod schedule;
mod send;
mod send_back;
mod server;
mod slave_sync;
mod stats;
#[cfg(test)]
mod testing;
mod timer;
mod timer_send;
mod timer_state;
mod topic_requests;
mod topics;
mod transaction;

pub use config::{BrokerRole, ClusterConfig, FilterConfig, ServerConfig, Timing};
pub use error::{ServerError, TableError};
pub use server::BrokerServer;
