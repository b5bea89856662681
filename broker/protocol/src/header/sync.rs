//! What a slave asks its master, beside the log itself.

use super::header;
use crate::offset::PhysicalOffset;

header! {
    /// GET_ALL_TOPIC_CONFIG (21); slaves up to 5.3.3 send no fields and get everything.
    GetAllTopicConfigRequest {
        /// First topic wanted.
        topic_seq: Option<i32> = "topicSeq",
        /// At most this many.
        max_topic_num: Option<i32> = "maxTopicNum",
        /// Version that the slave is reading, JSON; empty at first.
        data_version: Option<String> = "dataVersion",
    }

    /// Answer to GET_ALL_TOPIC_CONFIG; the total only when pages were asked for.
    GetAllTopicConfigResponse {
        /// Topics there are.
        total_topic_num: Option<i32> = "totalTopicNum",
    }

    /// GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201); slaves up to 5.3.3 send no fields and get everything.
    GetAllSubscriptionGroupRequest {
        /// First group wanted.
        group_seq: Option<i32> = "groupSeq",
        /// At most this many.
        max_group_num: Option<i32> = "maxGroupNum",
        /// Version that the slave is reading, JSON; empty at first.
        data_version: Option<String> = "dataVersion",
    }

    /// Answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG; the total only when pages were asked for.
    GetAllSubscriptionGroupResponse {
        /// Groups there are.
        total_group_num: Option<i32> = "totalGroupNum",
    }

    /// EXCHANGE_BROKER_HA_INFO (906), request and answer.
    ExchangeHaInfo {
        /// The master's address for slaves.
        master_ha_address: Option<String> = "masterHaAddress",
        /// How far the master has flushed.
        master_flush_offset: Option<PhysicalOffset> = "masterFlushOffset",
        /// The master's address for clients.
        master_address: Option<String> = "masterAddress",
    }

    /// RESET_MASTER_FLUSH_OFFSET (908).
    ResetMasterFlushOffsetRequest {
        /// How far the master has flushed.
        master_flush_offset: PhysicalOffset = "masterFlushOffset",
    }

    /// LOG_DIGEST, Hotfire's own: digest of the commit log's bytes in `from..to`.
    LogDigestRequest {
        /// First byte.
        from: PhysicalOffset = "from",
        /// Behind the last byte; the master cuts it to the end of its log.
        to: PhysicalOffset = "to",
    }

    /// Answer to LOG_DIGEST.
    LogDigestResponse {
        /// Digest of `from..digest_end`; its text is compared for equality only.
        digest: String = "digest",
        /// Behind the last byte digested: the smaller of `to` and the end of the master's log.
        digest_end: PhysicalOffset = "digestEnd",
        /// Smallest offset that the master's log still has.
        log_min: PhysicalOffset = "logMin",
        /// End of the master's log.
        log_end: PhysicalOffset = "logEnd",
    }

    /// READ_LOG, Hotfire's own: the commit log's bytes from `from` on.
    ReadLogRequest {
        /// First byte wanted.
        from: PhysicalOffset = "from",
        /// Most bytes wanted; 0 asks for the bounds alone.
        bytes_max: i32 = "bytesMax",
    }

    /// Answer to READ_LOG; the bytes are the body, which is empty if `from` is outside the log.
    ReadLogResponse {
        /// Smallest offset that the log still has.
        log_min: PhysicalOffset = "logMin",
        /// Behind the last byte that can be read now.
        log_end: PhysicalOffset = "logEnd",
        /// Behind the last byte written. Above `log_end` only while a synchronous flush is going on.
        written_end: PhysicalOffset = "writtenEnd",
    }
}
