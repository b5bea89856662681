//! The JSON bodies as types.
//!
//! Fields stand in the order in which Java writes them (alphabetical), so that what we write differs from Java's text in map order
//! only. Every field has a default: peers of other versions leave some out. Read with [`crate::json::from_slice`], write with
//! [`crate::json::to_vec`].

mod admin;
mod client;
mod config;
mod register;
mod route;
mod stats;

pub use admin::{
    BrokerMemberGroup, BrokerMemberGroupBody, GroupList, HaClientRuntimeInfo, HaConnectionRuntimeInfo, HaRuntimeInfo,
    KvTable, MessageRequestMode, MessageRequestModeSerializeWrapper, QuerySubscriptionResponseBody,
    SetMessageRequestModeRequestBody, TimerMetric, TimerMetricsSerializeWrapper, TopicList,
};
pub use client::{
    CheckClientRequestBody, ConsumeFromWhere, ConsumeType, ConsumerData, ConsumerListBody, HeartbeatData,
    LockBatchRequestBody, LockBatchResponseBody, MessageModel, ProducerData, ResetOffsetBody, SubscriptionData,
    UnlockBatchRequestBody,
};
pub use config::{
    ConsumerOffsetSerializeWrapper, CustomizedRetryPolicy, DataVersion, DelayOffsetSerializeWrapper,
    ExponentialRetryPolicy, GroupRetryPolicy, GroupRetryPolicyType, MessageQueueMapping, SimpleSubscriptionData,
    SubscriptionGroupConfig, SubscriptionGroupWrapper, TopicConfig, TopicConfigSerializeWrapper,
    TopicQueueMappingDetail, TopicQueueMappingInfo,
};
pub use register::RegisterBrokerBody;
pub use route::{BrokerData, ClusterInfo, QueueData, TopicRouteData};
pub use stats::{
    Connection, ConsumeStats, ConsumeTimeSpan, ConsumerConnection, OffsetWrapper, ProducerConnection,
    QueryConsumeTimeSpanBody, TopicOffset, TopicStatsTable,
};

/// Declares body structs: camel case on the wire, every field with a default.
macro_rules! body {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident : $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }
    )*};
}

use body;

#[cfg(test)]
mod tests;
