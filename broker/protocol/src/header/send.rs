//! Sending: SEND_MESSAGE and its kin, send back, transactions.

use super::header;
use crate::error::HeaderError;
use crate::frame::ExtFields;
use crate::header::Header;
use crate::offset::{PhysicalOffset, QueueOffset};

header! {
    /// SEND_MESSAGE (10) and SEND_REPLY_MESSAGE (324).
    SendMessageRequest {
        /// Producer group.
        producer_group: String = "producerGroup",
        /// Topic.
        topic: String = "topic",
        /// Topic whose settings a topic created on the fly takes over; TBW102 by default.
        default_topic: String = "defaultTopic",
        /// Queues of a topic created on the fly.
        default_topic_queue_nums: i32 = "defaultTopicQueueNums",
        /// Queue; negative: the broker picks a writable one.
        queue_id: i32 = "queueId",
        /// System flag as the producer sets it (compression, prepared).
        sys_flag: i32 = "sysFlag",
        /// When the producer made the message, Unix milliseconds.
        born_timestamp: i64 = "bornTimestamp",
        /// The user's flag.
        flag: i32 = "flag",
        /// Property string.
        properties: Option<String> = "properties",
        /// How often a retried message has been tried.
        reconsume_times: Option<i32> = "reconsumeTimes",
        /// Unit mode.
        unit_mode: Option<bool> = "unitMode",
        /// How often a retried message may be tried.
        max_reconsume_times: Option<i32> = "maxReconsumeTimes",
        /// Whether the body is a client batch.
        batch: Option<bool> = "batch",
        /// Name of the broker meant.
        broker_name: Option<String> = "bname",
    }

    /// SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE_V2 (325): [`SendMessageRequest`] under one-letter keys.
    SendMessageRequestV2 {
        /// Producer group.
        producer_group: String = "a",
        /// Topic.
        topic: String = "b",
        /// Topic whose settings a topic created on the fly takes over.
        default_topic: String = "c",
        /// Queues of a topic created on the fly.
        default_topic_queue_nums: i32 = "d",
        /// Queue; negative: the broker picks a writable one.
        queue_id: i32 = "e",
        /// System flag as the producer sets it.
        sys_flag: i32 = "f",
        /// When the producer made the message, Unix milliseconds.
        born_timestamp: i64 = "g",
        /// The user's flag.
        flag: i32 = "h",
        /// Property string.
        properties: Option<String> = "i",
        /// How often a retried message has been tried.
        reconsume_times: Option<i32> = "j",
        /// Unit mode.
        unit_mode: Option<bool> = "k",
        /// How often a retried message may be tried.
        max_reconsume_times: Option<i32> = "l",
        /// Whether the body is a client batch.
        batch: Option<bool> = "m",
        /// Name of the broker meant.
        broker_name: Option<String> = "n",
    }

    /// Answer to every kind of send; filled for codes 0, 10, 11 and 12.
    SendMessageResponse {
        /// Offset message id; for a batch one per message, joined by commas.
        msg_id: String = "msgId",
        /// Queue that took the message.
        queue_id: i32 = "queueId",
        /// Offset in that queue, of the first message of a batch.
        queue_offset: QueueOffset = "queueOffset",
        /// The message's unique key.
        transaction_id: Option<String> = "transactionId",
        /// Unique key of an inner batch.
        batch_uniq_id: Option<String> = "batchUniqId",
        /// Handle by which a timer message is recalled.
        recall_handle: Option<String> = "recallHandle",
        /// Region of the broker; sent on errors too.
        region: Option<String> = "MSG_REGION",
        /// Whether the broker wants traces; sent on errors too.
        trace_on: Option<bool> = "TRACE_ON",
    }

    /// RECALL_MESSAGE (370): a timer message is not to be delivered.
    RecallMessageRequest {
        /// Producer group.
        producer_group: Option<String> = "producerGroup",
        /// Topic of the message.
        topic: String = "topic",
        /// The handle that the answer to its send gave.
        recall_handle: String = "recallHandle",
        /// Name of the broker meant.
        broker_name: Option<String> = "bname",
    }

    /// Answer to RECALL_MESSAGE.
    RecallMessageResponse {
        /// Unique key of the message.
        msg_id: String = "msgId",
        /// Region of the broker.
        region: Option<String> = "MSG_REGION",
    }

    /// PUSH_REPLY_MESSAGE_TO_CLIENT (326), broker to the client that waits for a reply. The body is the reply's.
    PushReplyMessageRequest {
        /// Group of who replies.
        producer_group: String = "producerGroup",
        /// Topic of the reply.
        topic: String = "topic",
        /// As in the send.
        default_topic: String = "defaultTopic",
        /// As in the send.
        default_topic_queue_nums: i32 = "defaultTopicQueueNums",
        /// Queue of the reply.
        queue_id: i32 = "queueId",
        /// System flag of the reply.
        sys_flag: i32 = "sysFlag",
        /// When the reply was made, Unix milliseconds.
        born_timestamp: i64 = "bornTimestamp",
        /// The user's flag.
        flag: i32 = "flag",
        /// Property string.
        properties: Option<String> = "properties",
        /// As in the send.
        reconsume_times: Option<i32> = "reconsumeTimes",
        /// As in the send.
        unit_mode: Option<bool> = "unitMode",
        /// Address of who replies, `ip:port`.
        born_host: String = "bornHost",
        /// Address of the broker, `ip:port`.
        store_host: String = "storeHost",
        /// When the broker got the reply, Unix milliseconds.
        store_timestamp: i64 = "storeTimestamp",
    }

    /// CONSUMER_SEND_MSG_BACK (36): a message could not be consumed, deliver it later or bury it.
    ConsumerSendMsgBackRequest {
        /// Commit log offset of the message.
        offset: PhysicalOffset = "offset",
        /// Consumer group.
        group: String = "group",
        /// Negative: dead letter queue now; 0: level 3 plus tries so far; else this level.
        delay_level: i32 = "delayLevel",
        /// Id of the message.
        origin_msg_id: Option<String> = "originMsgId",
        /// Topic of the message.
        origin_topic: Option<String> = "originTopic",
        /// Unit mode.
        unit_mode: bool = "unitMode" or false,
        /// How often the message may be tried.
        max_reconsume_times: Option<i32> = "maxReconsumeTimes",
    }

    /// END_TRANSACTION (37).
    EndTransactionRequest {
        /// Topic of the message; 5.x.
        topic: Option<String> = "topic",
        /// Producer group.
        producer_group: String = "producerGroup",
        /// Queue offset of the half message.
        tran_state_table_offset: QueueOffset = "tranStateTableOffset",
        /// Commit log offset of the half message.
        commit_log_offset: PhysicalOffset = "commitLogOffset",
        /// 0 unknown, 8 commit, 12 roll back.
        commit_or_rollback: i32 = "commitOrRollback",
        /// Whether this answers a check.
        from_transaction_check: bool = "fromTransactionCheck" or false,
        /// Unique key of the message.
        msg_id: String = "msgId",
        /// Transaction id.
        transaction_id: Option<String> = "transactionId",
    }

    /// RESUME_CHECK_HALF_MESSAGE (323).
    ResumeCheckHalfMessageRequest {
        /// Topic of the message.
        topic: Option<String> = "topic",
        /// Offset message id of the half that was given up.
        msg_id: Option<String> = "msgId",
    }

    /// CHECK_TRANSACTION_STATE (39), broker to producer, oneway.
    CheckTransactionStateRequest {
        /// Topic of the half messages.
        topic: Option<String> = "topic",
        /// Queue offset of the half message.
        tran_state_table_offset: QueueOffset = "tranStateTableOffset",
        /// Commit log offset of the half message.
        commit_log_offset: PhysicalOffset = "commitLogOffset",
        /// Unique key of the message.
        msg_id: Option<String> = "msgId",
        /// Transaction id.
        transaction_id: Option<String> = "transactionId",
        /// Offset message id.
        offset_msg_id: Option<String> = "offsetMsgId",
    }
}

/// Rewrites one form of the send header into the other, field by field.
macro_rules! convert {
    ($from:ident => $to:ident) => {
        impl From<$from> for $to {
            fn from(other: $from) -> Self {
                Self {
                    producer_group: other.producer_group,
                    topic: other.topic,
                    default_topic: other.default_topic,
                    default_topic_queue_nums: other.default_topic_queue_nums,
                    queue_id: other.queue_id,
                    sys_flag: other.sys_flag,
                    born_timestamp: other.born_timestamp,
                    flag: other.flag,
                    properties: other.properties,
                    reconsume_times: other.reconsume_times,
                    unit_mode: other.unit_mode,
                    max_reconsume_times: other.max_reconsume_times,
                    batch: other.batch,
                    broker_name: other.broker_name,
                }
            }
        }
    };
}

convert!(SendMessageRequest => SendMessageRequestV2);
convert!(SendMessageRequestV2 => SendMessageRequest);

impl SendMessageRequest {
    /// Reads either form: codes 310, 320 and 325 carry one-letter keys, 10 and 324 the long names.
    ///
    /// # Errors
    /// As [`Header::decode`].
    pub fn decode_any(code: crate::code::RequestCode, fields: &ExtFields) -> Result<Self, HeaderError> {
        use crate::code::RequestCode::{SendBatchMessage, SendMessageV2, SendReplyMessageV2};
        match code {
            SendMessageV2 | SendBatchMessage | SendReplyMessageV2 => {
                SendMessageRequestV2::decode(fields).map(Self::from)
            }
            _ => Self::decode(fields),
        }
    }
}
