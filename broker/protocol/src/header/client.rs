//! Clients: heartbeat, unregistration, membership, queue locks.

use super::header;

header! {
    /// HEART_BEAT (34); everything is in the body.
    HeartbeatRequest {}

    /// Answer to HEART_BEAT.
    HeartbeatResponse {
        /// Whether bodies without subscriptions are understood.
        support_heartbeat_v2: Option<bool> = "IS_SUPPORT_HEART_BEAT_V2",
        /// Whether the broker wants the full body again.
        subscription_changed: Option<bool> = "IS_SUB_CHANGE",
    }

    /// UNREGISTER_CLIENT (35).
    UnregisterClientRequest {
        /// Client id.
        client_id: String = "clientID",
        /// Producer group to leave.
        producer_group: Option<String> = "producerGroup",
        /// Consumer group to leave.
        consumer_group: Option<String> = "consumerGroup",
    }

    /// GET_CONSUMER_LIST_BY_GROUP (38).
    GetConsumerListByGroupRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
    }

    /// NOTIFY_CONSUMER_IDS_CHANGED (40), broker to consumer, oneway.
    NotifyConsumerIdsChangedRequest {
        /// Consumer group.
        consumer_group: String = "consumerGroup",
    }

    /// LOCK_BATCH_MQ (41); everything is in the body.
    LockBatchRequest {}

    /// UNLOCK_BATCH_MQ (42); everything is in the body.
    UnlockBatchRequest {}
}
