//! Offsets: a group's progress, and the bounds of a queue.

use super::{FieldKind, FieldValue, header};
use crate::frame::ExtFields;
use crate::offset::QueueOffset;

/// Which end of the run of messages stored in one millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoundaryType {
    /// The first.
    #[default]
    Lower,
    /// The last.
    Upper,
}

impl FieldValue for BoundaryType {
    const KIND: FieldKind = FieldKind::Boundary;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        let text = match self {
            Self::Lower => "LOWER",
            Self::Upper => "UPPER",
        };
        fields.insert(key, text);
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(if text.eq_ignore_ascii_case("upper") { Self::Upper } else { Self::Lower })
    }
}

header! {
    /// QUERY_CONSUMER_OFFSET (14).
    QueryConsumerOffsetRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
        /// Topic.
        topic: String = "topic",
        /// Queue.
        queue_id: i32 = "queueId",
        /// `false`: never answer 0 for a group without progress; 5.x.
        set_zero_if_not_found: Option<bool> = "setZeroIfNotFound",
    }

    /// UPDATE_CONSUMER_OFFSET (15).
    UpdateConsumerOffsetRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
        /// Topic.
        topic: String = "topic",
        /// Queue.
        queue_id: i32 = "queueId",
        /// Offset of the next message to consume.
        commit_offset: QueueOffset = "commitOffset",
    }

    /// SEARCH_OFFSET_BY_TIMESTAMP (29).
    SearchOffsetRequest {
        /// Topic.
        topic: String = "topic",
        /// Queue.
        queue_id: i32 = "queueId",
        /// Store time, Unix milliseconds.
        timestamp: i64 = "timestamp",
        /// Which of several messages of that time.
        boundary_type: BoundaryType = "boundaryType" or BoundaryType::Lower,
    }

    /// GET_MAX_OFFSET (30).
    GetMaxOffsetRequest {
        /// Topic.
        topic: String = "topic",
        /// Queue.
        queue_id: i32 = "queueId",
        /// Whether only what the log has confirmed counts.
        committed: bool = "committed" or true,
    }

    /// GET_MIN_OFFSET (31).
    GetMinOffsetRequest {
        /// Topic.
        topic: String = "topic",
        /// Queue.
        queue_id: i32 = "queueId",
    }

    /// GET_EARLIEST_MSG_STORETIME (32).
    GetEarliestStoreTimeRequest {
        /// Topic.
        topic: String = "topic",
        /// Queue.
        queue_id: i32 = "queueId",
    }

    /// Answer to GET_EARLIEST_MSG_STORETIME.
    GetEarliestStoreTimeResponse {
        /// Store time of the queue's first message, Unix milliseconds.
        timestamp: i64 = "timestamp",
    }

    /// Answer to codes 14, 29, 30 and 31.
    OffsetResponse {
        /// The offset asked for.
        offset: QueueOffset = "offset",
    }
}
