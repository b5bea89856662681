//! The message store of one broker: the bytes on one disk.
//!
//! **Owns**: the commit log, the consume queues, the checkpoint, the `abort` and `lock` files, and everything that makes them
//! agree: assignment of queue offsets, flush, dispatch from log to queues, recovery after any crash, truncation, the raw
//! byte interface of a replica, and the wheel of messages that wait for a moment. The files are those of Apache RocketMQ 5.x, readable
//! both ways.
//!
//! **Must never know**: a socket, a request, a consumer group, a role (whether it is a master or a slave is decided by who calls
//! [`Store::append`] and who calls [`Store::append_replica`]). The `config/` directory beside its files belongs to the server,
//! all but `timercheck`.
//!
//! | Module | Holds |
//! |---|---|
//! | `config` | [`StoreConfig`]: sizes, intervals, limits, policies |
//! | `error` | one error enum per operation family |
//! | `layout` | file names, record field positions, queue entries, checkpoint fields |
//! | `segment` | one preallocated commit-log file |
//! | `commit_log` | the list of segments and the append lock: where bytes enter |
//! | `append` | [`NewMessage`] to record bytes, limits, batches |
//! | `consume_queue` | one queue's 20-byte entries; `consume_queues`: all of them |
//! | `extension` | what those entries have no room for: bit maps of filters ([`BitMaps`]) |
//! | `queue_files`, `open_files` | the files of one queue; which of all are open: never too many |
//! | `index` | the index of keys: which records a key may name |
//! | `flush` | group commit, interval flush, checkpoint order |
//! | `poison` | the one-way state after a failed sync |
//! | `dispatch` | commit log to consume queues and [`Arrivals`] |
//! | `light_queues` | queues whose entries name records of other topics |
//! | `recovery` | [`UnrecoveredStore`] to [`Store`]; `log_scan`: its walk over the log; `scan`: which bytes are a record |
//! | `get`, `lookup` | reads by queue offset, by time, by physical offset, by key |
//! | `inspect` | a look through the files of a store that nobody opens |
//! | `repair` | queues and index made anew from the log |
//! | `retention` | removing what has expired: when ([`RetentionConfig`]), what, and who holds it back ([`Retainer`]) |
//! | `topic_removal` | removing a topic's queues for good; `tombstones`: which records are those of removed topics |
//! | `timer` | [`Timer`]: the wheel, its log and how far both have come |
//! | `replica` | raw log ranges in and out, truncation, digests |
//!
//! Invariants:
//! - What [`Store::flushed`] confirmed is found again after any process crash or power loss, under the same offsets.
//! - After a crash the log is a prefix of what it was; nothing that was never appended appears in it.
//! - Queue offsets are dense; entry *n* of a queue names the record whose queue offset is *n*.
//! - With synchronous flush nothing is dispatched, read or replicated that is not on disk.
//! - The checkpoint never claims more than is synced.
//! - After a failed sync or an unclear write nothing is appended or confirmed any more ([`Store::poisoned`]).

#![deny(clippy::host_endian_bytes, clippy::little_endian_bytes)]

mod append;
mod checkpoint;
mod commit_log;
mod config;
mod consume_queue;
mod consume_queues;
mod dispatch;
mod error;
mod extension;
mod flush;
mod get;
mod index;
mod inspect;
mod layout;
mod light_queues;
mod log_scan;
mod lookup;
mod open_files;
mod poison;
mod queue_files;
mod recovery;
mod repair;
mod replica;
mod retention;
mod scan;
mod segment;
mod store;
mod timer;
mod tombstones;
mod topic_removal;

pub use append::{Appended, NewMessage};
pub use config::{DamagePolicy, FlushMode, IndexConfig, StoreConfig};
pub use dispatch::{Arrival, Arrivals, BitMaps};
pub use error::{
    AppendError, ConfigError, FlushError, ReadError, ReplicaError, RetentionError, StoreError, TimerError,
};
pub use get::{EntryFilter, GetOutcome, GetRequest, GetStatus, TagFilter};
pub use inspect::{DAMAGE_MAX, Damage, InspectError, Inspection, LogReader, inspect};
pub use layout::{TimerCheckpoint, TimerUnit};
pub use light_queues::is_light;
pub use lookup::TimeBoundary;
pub use poison::PoisonCause;
pub use recovery::{DroppedTail, RecoveryReport, UnrecoveredStore};
pub use repair::{Repaired, repair};
pub use replica::LogDigest;
pub use retention::{Cleaned, Removal, Retainer, RetentionConfig};
pub use store::Store;
pub use timer::config::TimerConfig;
pub use timer::{Enqueued, TIMER_TOPIC, Timer, read_timer_checkpoint, take_over_timer_checkpoint};
