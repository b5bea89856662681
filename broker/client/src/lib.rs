//! What a program uses to talk to RocketMQ: producer, push consumer, rebalance, offset stores, a thin admin.
//!
//! **Owns** the client's side of the protocol: which name server to ask and when, which broker and queue get a message, when a
//! failed send is tried again and what is known of each try, which member of a group reads which queue, where it starts, how far
//! it is done, and where that progress is kept.
//!
//! **Must never know** a socket (that is `remoting`), bytes of frames and records (that is `protocol`), or anything of how a
//! broker stores.
//!
//! The logic is in cores without IO, tested as data; the shells around them only wait, call and write down:
//!
//! | Core (no IO) | What it decides |
//! |---|---|
//! | `name_servers` | the name server in use, and the next one when it fails |
//! | `routes` | topic → queues, broker name → addresses, as the name servers last told |
//! | [`fault`] | brokers to avoid for a while after slow or failed sends |
//! | `publish` | the queue of the next attempt; whether an attempt may be repeated; what is known of a failed one |
//! | [`rebalance`] | a group's queues → one owner each; what to take and what to drop |
//! | `process_queue` | messages pulled and not yet done; the lowest unfinished offset |
//! | `assignment` | the queues a consumer owns, each with a generation; their progress, and when it may move |
//! | `pull` | when to pull, with which flags, from which replica |
//! | `outgoing` | a message or a batch made ready: keyed, compressed, limits checked |
//! | [`subscription`], `validate`, `local_offsets` | selectors of messages; names and ranges; the local file |
//!
//! | Shell | What it does |
//! |---|---|
//! | [`instance`] | one client id: connections, routes, heartbeats, requests that brokers send to clients |
//! | `calls` | one typed function per request |
//! | [`producer`] | [`Producer`] |
//! | [`request_reply`] | [`Producer::request`], [`reply_to`] |
//! | [`transaction`] | [`TransactionProducer`] |
//! | [`consumer`] | [`PushConsumer`] |
//! | [`admin`] | [`Admin`] |
//!
//! Invariants:
//! - A failed attempt is called *not stored* only if no copy of it can exist anywhere; everything else is *unknown*.
//! - The offset of a queue in memory never exceeds the lowest offset that is neither acknowledged nor handed back.
//! - A result that belongs to a former ownership of a queue (another generation) changes nothing.
//! - "No offset stored" and "the question failed" are different answers; a queue never starts from a guess.
//! - Every wait ends: by its answer, its time-out, or the shutdown of its owner.
//!
//! Not here yet, and therefore absent and not half-built: orderly consumption, pop, lite pull,
//! static topics, namespaces, traces.

pub mod admin;
mod assignment;
mod calls;
mod concurrently;
pub mod config;
pub mod consumer;
pub mod error;
pub mod fault;
pub mod instance;
mod local_offsets;
mod name_servers;
mod outgoing;
mod process_queue;
pub mod producer;
mod publish;
mod pull;
pub mod rebalance;
pub mod request_reply;
mod routes;
pub mod subscription;
pub mod transaction;
mod validate;

pub use admin::Admin;
pub use config::{ClientConfig, ConsumeFrom, ConsumerConfig, MessageModel, ProducerConfig};
pub use consumer::{ConsumeContext, ConsumeOutcome, Listener, PushConsumer};
pub use error::{CallError, ConfigError, Fate, InvalidMessage, SendError, SendFailure, StartError};
pub use instance::ClientInstance;
pub use producer::{FailedAttempt, Producer, SendOutcome, SendStatus};
pub use rebalance::Strategy;
pub use request_reply::{RequestError, reply_to};
pub use subscription::MessageSelector;
pub use transaction::{TransactionListener, TransactionOutcome, TransactionProducer, TransactionState};
