//! Typed headers: how a command's ext fields become a struct and back.
//!
//! A field is mandatory (`T`), optional (`Option<T>`) or has a default (`T` with `or value`). Unknown fields are ignored. RocketMQ's
//! own reader leaves a missing or unparsable field at null or 0 and fails later; here it is a typed error at once.

mod admin;
mod broker;
mod client;
mod namesrv;
mod offset;
mod pull;
mod rpc;
mod send;
mod sync;

pub use admin::{
    ConsumeStatsRequest, ConsumerConnectionRequest, ConsumerRunningInfoRequest, DeleteSubscriptionGroupRequest,
    DeleteTopicRequest, GetBrokerConfigResponse, GetSubscriptionGroupConfigRequest, GetTopicConfigRequest,
    ProducerConnectionRequest, QueryConsumeTimeSpanRequest, QuerySubscriptionByConsumerRequest,
    QueryTopicConsumeByWhoRequest, QueryTopicsByConsumerRequest, TopicFilterType, TopicStatsRequest,
};
pub use admin::{CreateTopicRequest, ResetOffsetRequest, UpdateGroupForbiddenRequest, ViewBrokerStatsDataRequest};
pub use broker::{
    BrokerHeartbeatRequest, GetBrokerMemberGroupRequest, NotifyMinBrokerIdChangeRequest, QueryDataVersionRequest,
    QueryDataVersionResponse, RegisterBrokerRequest, RegisterBrokerResponse, UnregisterBrokerRequest,
};
pub use client::{
    GetConsumerListByGroupRequest, HeartbeatRequest, HeartbeatResponse, LockBatchRequest,
    NotifyConsumerIdsChangedRequest, UnlockBatchRequest, UnregisterClientRequest,
};
pub use namesrv::{
    AddWritePermissionRequest, AddWritePermissionResponse, DeleteKvConfigRequest, DeleteTopicInNamesrvRequest,
    GetKvConfigRequest, GetKvConfigResponse, GetKvListByNamespaceRequest, GetRouteInfoRequest,
    GetTopicsByClusterRequest, PutKvConfigRequest, RegisterTopicInNamesrvRequest, WipeWritePermissionRequest,
    WipeWritePermissionResponse,
};
pub use offset::{
    BoundaryType, GetEarliestStoreTimeRequest, GetEarliestStoreTimeResponse, GetMaxOffsetRequest, GetMinOffsetRequest,
    OffsetResponse, QueryConsumerOffsetRequest, SearchOffsetRequest, UpdateConsumerOffsetRequest,
};
pub use pull::{
    PullMessageRequest, PullMessageResponse, PullSysFlag, QueryMessageRequest, QueryMessageResponse, ViewMessageRequest,
};
pub use rpc::{Empty, RpcFields};
pub use send::{
    CheckTransactionStateRequest, ConsumerSendMsgBackRequest, EndTransactionRequest, PushReplyMessageRequest,
    RecallMessageRequest, RecallMessageResponse, ResumeCheckHalfMessageRequest, SendMessageRequest,
    SendMessageRequestV2, SendMessageResponse,
};
pub use sync::{
    ExchangeHaInfo, GetAllSubscriptionGroupRequest, GetAllSubscriptionGroupResponse, GetAllTopicConfigRequest,
    GetAllTopicConfigResponse, LogDigestRequest, LogDigestResponse, ReadLogRequest, ReadLogResponse,
    ResetMasterFlushOffsetRequest,
};

use crate::error::HeaderError;
use crate::frame::ExtFields;
use crate::offset::{PhysicalOffset, QueueOffset};

/// The typed header of one request or response.
pub trait Header: Sized {
    /// Every field: wire key and whether it must be there, in wire order.
    const FIELDS: &'static [FieldSpec];

    /// Puts every field that has a value.
    fn encode(&self, fields: &mut ExtFields);

    /// Reads the header.
    ///
    /// # Errors
    /// A mandatory field is absent, or a field's text is no value of its type.
    fn decode(fields: &ExtFields) -> Result<Self, HeaderError>;
}

/// One field of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// Key on the wire.
    pub key: &'static str,
    /// How the text is read.
    pub kind: FieldKind,
    /// Whether decoding fails without it.
    pub required: bool,
}

/// How a header field's text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// 32-bit decimal number.
    Int,
    /// 64-bit decimal number.
    Long,
    /// `true` in any case is true, everything else false.
    Bool,
    /// Upper or lower bound.
    Boundary,
    /// Single or multiple tags.
    TopicFilter,
}

/// A type that can stand in a header.
pub(crate) trait FieldValue: Sized {
    const KIND: FieldKind;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str);
    fn from_text(text: &str) -> Option<Self>;
}

impl FieldValue for String {
    const KIND: FieldKind = FieldKind::Text;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        fields.insert(key, self);
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl FieldValue for i32 {
    const KIND: FieldKind = FieldKind::Int;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        fields.insert_number(key, i64::from(*self));
    }
    fn from_text(text: &str) -> Option<Self> {
        number(text)
    }
}

impl FieldValue for i64 {
    const KIND: FieldKind = FieldKind::Long;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        fields.insert_number(key, *self);
    }
    fn from_text(text: &str) -> Option<Self> {
        number(text)
    }
}

/// A number between spaces. Nearly none has any, so they are looked for only where it cannot be read.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().or_else(|_| text.trim().parse()).ok()
}

impl FieldValue for bool {
    const KIND: FieldKind = FieldKind::Bool;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        fields.insert(key, if *self { "true" } else { "false" });
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(text.trim().eq_ignore_ascii_case("true"))
    }
}

impl FieldValue for QueueOffset {
    const KIND: FieldKind = FieldKind::Long;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        fields.insert_number(key, self.0);
    }
    fn from_text(text: &str) -> Option<Self> {
        i64::from_text(text).map(Self)
    }
}

impl FieldValue for PhysicalOffset {
    const KIND: FieldKind = FieldKind::Long;
    fn insert_into(&self, fields: &mut ExtFields, key: &'static str) {
        fields.insert_number(key, self.0);
    }
    fn from_text(text: &str) -> Option<Self> {
        i64::from_text(text).map(Self)
    }
}

/// A field as declared: mandatory or optional.
pub(crate) trait Field: Sized {
    const KIND: FieldKind;
    const REQUIRED: bool;
    fn put(&self, key: &'static str, fields: &mut ExtFields);
    fn take(key: &'static str, fields: &ExtFields) -> Result<Self, HeaderError>;
    fn take_or(key: &'static str, fields: &ExtFields, absent: Self) -> Result<Self, HeaderError>;
}

impl<T: FieldValue> Field for T {
    const KIND: FieldKind = T::KIND;
    const REQUIRED: bool = true;
    fn put(&self, key: &'static str, fields: &mut ExtFields) {
        self.insert_into(fields, key);
    }
    fn take(key: &'static str, fields: &ExtFields) -> Result<Self, HeaderError> {
        let text = fields.get(key).ok_or(HeaderError::Missing { field: key })?;
        T::from_text(text).ok_or_else(|| malformed(key, text))
    }
    fn take_or(key: &'static str, fields: &ExtFields, absent: Self) -> Result<Self, HeaderError> {
        match fields.get(key) {
            None => Ok(absent),
            // Non-Java clients send empty texts for what they leave out.
            Some("") => Ok(absent),
            Some(text) => T::from_text(text).ok_or_else(|| malformed(key, text)),
        }
    }
}

impl<T: FieldValue> Field for Option<T> {
    const KIND: FieldKind = T::KIND;
    const REQUIRED: bool = false;
    fn put(&self, key: &'static str, fields: &mut ExtFields) {
        if let Some(value) = self {
            value.insert_into(fields, key);
        }
    }
    fn take(key: &'static str, fields: &ExtFields) -> Result<Self, HeaderError> {
        Self::take_or(key, fields, None)
    }
    fn take_or(key: &'static str, fields: &ExtFields, absent: Self) -> Result<Self, HeaderError> {
        match fields.get(key) {
            None => Ok(absent),
            Some(text) if text.is_empty() && T::KIND != FieldKind::Text => Ok(absent),
            Some(text) => T::from_text(text).map(Some).ok_or_else(|| malformed(key, text)),
        }
    }
}

fn malformed(field: &'static str, text: &str) -> HeaderError {
    HeaderError::Malformed { field, value: text.chars().take(64).collect() }
}

/// Declares a header struct: `field: Type = "wireKey"`, with `or default` for a value that may be absent.
macro_rules! header {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident : $type:ty = $key:literal $(or $default:expr)?,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $crate::header::Header for $name {
            const FIELDS: &'static [$crate::header::FieldSpec] = &[$($crate::header::FieldSpec {
                key: $key,
                kind: <$type as $crate::header::Field>::KIND,
                required: <$type as $crate::header::Field>::REQUIRED $(&& { let _ = stringify!($default); false })?,
            },)*];

            fn encode(&self, fields: &mut $crate::frame::ExtFields) {
                let _ = &fields;
                $($crate::header::Field::put(&self.$field, $key, fields);)*
            }

            fn decode(fields: &$crate::frame::ExtFields) -> Result<Self, $crate::error::HeaderError> {
                let _ = fields;
                Ok(Self { $($field: $crate::header::take!(fields, $key $(, $default)?),)* })
            }
        }
    )*};
}

macro_rules! take {
    ($fields:ident, $key:literal) => {
        $crate::header::Field::take($key, $fields)?
    };
    ($fields:ident, $key:literal, $default:expr) => {
        $crate::header::Field::take_or($key, $fields, $default)?
    };
}

use header;
use take;

#[cfg(test)]
mod tests;
