//! Fields that any request may carry beside its own.

use super::header;

header! {
    /// No fields.
    Empty {}

    /// What RocketMQ's `RpcRequestHeader` and `TopicRequestHeader` add to most requests of 5.x clients. Readable from any command.
    RpcFields {
        /// Namespace, version 2.
        namespace: Option<String> = "ns",
        /// Whether names already carry the namespace.
        namespaced: Option<bool> = "nsd",
        /// Name of the broker that the request is meant for.
        broker_name: Option<String> = "bname",
        /// Whether the caller wants no answer.
        oneway: Option<bool> = "oway",
        /// `false`: the queue id is physical, the mapping of static topics does not apply.
        logical: Option<bool> = "lo",
    }
}
