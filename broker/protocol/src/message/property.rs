//! Names of the properties that mean something to RocketMQ (`MessageConst`).

macro_rules! names {
    ($($(#[$doc:meta])* $constant:ident = $name:literal $kind:ident,)*) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// Names that a user may not set.
        pub const RESERVED: &[&str] = &[$(names!(@ $kind $name),)*];
    };
    (@ reserved $name:literal) => { $name };
    (@ free $name:literal) => { "" };
}

names! {
    /// Index keys, separated by spaces.
    KEYS = "KEYS" reserved,
    /// The tag.
    TAGS = "TAGS" reserved,
    /// Whether the send waits for flush and copies.
    WAIT_STORE_MSG_OK = "WAIT" reserved,
    /// Delay level, from 1.
    DELAY_TIME_LEVEL = "DELAY" reserved,
    /// Topic from which a retried message came.
    RETRY_TOPIC = "RETRY_TOPIC" reserved,
    /// Topic to which a delayed or half message goes.
    REAL_TOPIC = "REAL_TOPIC" reserved,
    /// Queue to which a delayed or half message goes.
    REAL_QUEUE_ID = "REAL_QID" reserved,
    /// `true` on half messages.
    TRANSACTION_PREPARED = "TRAN_MSG" reserved,
    /// Producer group of a half message.
    PRODUCER_GROUP = "PGROUP" reserved,
    /// Smallest offset of the queue; set by the client.
    MIN_OFFSET = "MIN_OFFSET" reserved,
    /// Offset behind the queue's last message; set by the client.
    MAX_OFFSET = "MAX_OFFSET" reserved,
    /// Buyer.
    BUYER_ID = "BUYER_ID" reserved,
    /// Id of the first of all tries.
    ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID" reserved,
    /// Legacy.
    TRANSFER_FLAG = "TRANSFER_FLAG" reserved,
    /// Legacy.
    CORRECTION_FLAG = "CORRECTION_FLAG" reserved,
    /// Legacy.
    MQ2_FLAG = "MQ2_FLAG" reserved,
    /// How often the message has been tried.
    RECONSUME_TIME = "RECONSUME_TIME" reserved,
    /// How often the message may be tried.
    MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES" reserved,
    /// Region; set by the broker.
    MSG_REGION = "MSG_REGION" reserved,
    /// Trace switch; set by the broker.
    TRACE_SWITCH = "TRACE_ON" reserved,
    /// Unique key; set by the producer.
    UNIQUE_KEY = "UNIQ_KEY" reserved,
    /// More about the unique key.
    EXTEND_UNIQ_INFO = "EXTEND_UNIQ_INFO" reserved,
    /// When consumption began; set by the client.
    CONSUME_START_TIME = "CONSUME_START_TIME" reserved,
    /// Messages of an inner batch.
    INNER_NUM = "INNER_NUM" free,
    /// First offset of an inner batch.
    INNER_BASE = "INNER_BASE" free,
    /// Duplicates.
    DUP_INFO = "DUP_INFO" reserved,
    /// Seconds before the first check of a half message.
    CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS" free,
    /// Queue offset of a half message.
    TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET" reserved,
    /// Transaction id.
    TRANSACTION_ID = "__transactionId__" free,
    /// How often a half message was checked.
    TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES" free,
    /// Namespace.
    INSTANCE_ID = "INSTANCE_ID" reserved,
    /// Pairs request and reply.
    CORRELATION_ID = "CORRELATION_ID" reserved,
    /// Client that wants the reply.
    REPLY_TO_CLIENT = "REPLY_TO_CLIENT" reserved,
    /// How long the requester waits.
    TTL = "TTL" reserved,
    /// When the reply reached the broker.
    ARRIVE_TIME = "ARRIVE_TIME" reserved,
    /// When the reply was pushed.
    PUSH_REPLY_TIME = "PUSH_REPLY_TIME" reserved,
    /// Cluster; set by the broker.
    CLUSTER = "CLUSTER" reserved,
    /// `reply` on replies.
    MSG_TYPE = "MSG_TYPE" reserved,
    /// Pop receipt.
    POP_CK = "POP_CK" reserved,
    /// Offset of a pop checkpoint.
    POP_CK_OFFSET = "POP_CK_OFFSET" reserved,
    /// When the message was first popped.
    FIRST_POP_TIME = "1ST_POP_TIME" reserved,
    /// Ordering key.
    SHARDING_KEY = "__SHARDINGKEY" free,
    /// Queue to which the message is forwarded.
    FORWARD_QUEUE_ID = "PROPERTY_FORWARD_QUEUE_ID" free,
    /// Redirection.
    REDIRECT = "REDIRECT" free,
    /// Light queues, by commas.
    INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH" free,
    /// Offsets in the light queues, by commas.
    INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET" reserved,
    /// Trace context.
    TRACE_CONTEXT = "TRACE_CONTEXT" free,
    /// Timer message: seconds to wait.
    TIMER_DELAY_SEC = "TIMER_DELAY_SEC" reserved,
    /// Timer message: milliseconds to wait.
    TIMER_DELAY_MS = "TIMER_DELAY_MS" reserved,
    /// Timer message: when to deliver, Unix milliseconds.
    TIMER_DELIVER_MS = "TIMER_DELIVER_MS" reserved,
    /// Timer message: when it was put on the wheel.
    TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS" reserved,
    /// Timer message: when it was taken off.
    TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS" reserved,
    /// Timer message: how often it was rolled.
    TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES" reserved,
    /// Timer message: its slot.
    TIMER_OUT_MS = "TIMER_OUT_MS" reserved,
    /// Timer message: which one to delete.
    TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY" reserved,
    /// Timer message: delay level.
    TIMER_DELAY_LEVEL = "TIMER_DELAY_LEVEL" reserved,
    /// Host of a message that came through a proxy.
    BORN_HOST = "__BORNHOST" reserved,
    /// Birth of a message that came through a proxy.
    BORN_TIMESTAMP = "BORN_TIMESTAMP" reserved,
    /// Checksum of the whole record.
    CRC32 = "__CRC32#" reserved,
    /// Topic of a message that was given up.
    DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC" reserved,
    /// Id of a message that was given up.
    DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID" reserved,
}

/// Whether a user may not set this property.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    !name.is_empty() && RESERVED.contains(&name)
}
