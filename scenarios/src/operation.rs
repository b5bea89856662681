//! What clients ask and are told in a history.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A queue of one broker name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Queue {
    /// The broker's name.
    pub broker: String,
    /// Number of the queue.
    pub id: i32,
}

/// A client's request, or the start of something that a client does by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// A producer sends a message.
    Send {
        /// Names the message in this run.
        key: String,
    },
    /// A listener is called with a message.
    Consume {
        /// The group.
        group: String,
        /// Where the message was read.
        queue: Queue,
        /// Its offset there.
        offset: i64,
        /// Which message.
        key: String,
        /// How often it was handed back before.
        reconsume_times: i32,
    },
    /// A listener is called with a message that came back to its group, from the group's retry topic.
    ConsumeAgain {
        /// The group.
        group: String,
        /// The queue of the retry topic.
        queue: Queue,
        /// Its offset there.
        offset: i64,
        /// Which message.
        key: String,
        /// How often it was handed back before.
        reconsume_times: i32,
    },
    /// A producer is asked what becomes of a transaction.
    Decide {
        /// Names the message.
        key: String,
        /// How often a broker has asked; 0: its own local transaction says it.
        asked: u32,
    },
    /// The observer asks a broker how far each delay level was delivered.
    ReadDelays {
        /// The broker node that is asked.
        node: String,
    },
    /// The observer asks a broker for the committed offset of a group.
    ReadCommitted {
        /// The broker node that is asked.
        node: String,
        /// The group.
        group: String,
        /// The queue.
        queue: Queue,
    },
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The broker stored the message.
    Stored {
        /// Where.
        queue: Queue,
        /// At which offset.
        offset: i64,
        /// Whether the answer was SEND_OK; any other answer says stored, without a promise.
        promised: bool,
        /// Copies that earlier attempts of the same call may have left.
        other_copies_max: u32,
    },
    /// The broker stored the message, for its delay to pass or its transaction to end.
    Delayed {
        /// The queue of its level, at the broker that has it; [`TIMER_QUEUE`] for a moment of its own, [`HALF_QUEUE`] for a half message.
        queue: Queue,
        /// At which offset.
        offset: i64,
        /// As of a message that is stored.
        promised: bool,
        /// As of a message that is stored.
        other_copies_max: u32,
    },
    /// The listener is done with the message.
    Consumed,
    /// The listener could not consume the message; it is to come again.
    Later,
    /// What becomes of the transaction.
    Decided(Decision),
    /// The next offset to deliver, by delay level.
    Delays(BTreeMap<i32, i64>),
    /// The committed offset; none if the broker has none.
    Committed(Option<i64>),
}

/// What a producer says of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Consumers are to get the message.
    Commit,
    /// Nobody is to get it.
    RollBack,
    /// It is not decided yet.
    Unknown,
}

/// Stands for the queue of the timer among those of the delay levels.
pub const TIMER_QUEUE: i32 = -1;
/// Stands for the queue of half messages among them.
pub const HALF_QUEUE: i32 = -2;

/// The history of a run.
pub type History = sim::history::History<Ask, Told>;
/// Writes it.
pub type Recorder = sim::history::Recorder<Ask, Told>;
