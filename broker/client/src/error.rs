//! What can go wrong, one enum per family of calls, and what is known of a send that went wrong.
use crate::producer::FailedAttempt;
use protocol::{BatchError, HeaderError, IdError, JsonError, RecordError, ResponseCode};
use remoting::RemotingError;
use std::io;
use std::time::Duration;

/// A request to a broker or a name server failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The list of name servers is empty.
    #[error("no name server is configured")]
    NoNameServer,
    /// No name server knows the topic.
    #[error("topic {topic} has no route")]
    NoRoute {
        /// The topic.
        topic: String,
    },
    /// The route has no broker that could be asked.
    #[error("broker {broker} has no suitable address in the route")]
    NoBroker {
        /// Name of the broker.
        broker: String,
    },
    /// The topic's queues are mapped to queues of other names (a static topic), which this client cannot use.
    #[error("topic {topic} is a static topic, which is not supported")]
    StaticTopic {
        /// The topic.
        topic: String,
    },
    /// The connection or the wait failed.
    #[error(transparent)]
    Remoting(#[from] RemotingError),
    /// The peer answered with an error code.
    #[error("{addr} refused with code {code}: {}", remark.as_deref().unwrap_or("no remark"))]
    Refused {
        /// Who answered.
        addr: String,
        /// The response code as on the wire.
        code: i32,
        /// The peer's explanation.
        remark: Option<String>,
    },
    /// The answer's header is not as it must be.
    #[error("malformed answer")]
    Header(#[from] HeaderError),
    /// The answer's body is not as it must be.
    #[error("malformed answer body")]
    Json(#[from] JsonError),
    /// No broker made this handle.
    #[error("recall handle is not one")]
    RecallHandle,
    /// The answer's message id is not as it must be.
    #[error("malformed message id in answer")]
    MessageId(#[from] IdError),
    /// The answer's messages are not as they must be.
    #[error("malformed message in answer")]
    Record(#[from] RecordError),
    /// A batch among the answer's messages is not as it must be.
    #[error("malformed batch in answer")]
    Batch(#[from] BatchError),
    /// The time for the whole call was used up before this request was sent.
    #[error("no time left of {after:?}")]
    Deadline {
        /// The time-out of the call.
        after: Duration,
    },
}

impl CallError {
    /// The response code, if the peer refused with one that RocketMQ defines.
    pub fn code(&self) -> Option<ResponseCode> {
        match self {
            CallError::Refused { code, .. } => ResponseCode::from_i32(*code),
            _ => None,
        }
    }
}

/// What is known of the copy that a failed attempt may have left in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// No copy of this attempt exists or will.
    NotStored,
    /// 0 or 1 copy exists, or will.
    Unknown,
}

/// A message that no broker may take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessage {
    /// The topic is empty, too long, or has characters outside `%|a-zA-Z0-9_-`.
    #[error("topic {topic:?} is not a topic name")]
    Topic {
        /// The topic.
        topic: String,
    },
    /// Users may not send to this system topic.
    #[error("topic {topic} is reserved")]
    ReservedTopic {
        /// The topic.
        topic: String,
    },
    /// The body is empty.
    #[error("body is empty")]
    EmptyBody,
    /// The body, or a batch of bodies, is too large.
    #[error("body of {bytes} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The properties are too long for a record.
    #[error("properties of {bytes} bytes exceed the limit of {limit}")]
    PropertiesTooLong {
        /// Their size as text.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The message is for another topic than the queue.
    #[error("message of topic {topic} cannot go to a queue of {queue_topic}")]
    OtherTopic {
        /// Topic of the message.
        topic: String,
        /// Topic of the queue.
        queue_topic: String,
    },
    /// A batch has no messages.
    #[error("batch is empty")]
    EmptyBatch,
    /// The messages of a batch differ in what they must share.
    #[error("messages of a batch differ in {what}")]
    MixedBatch {
        /// What differs.
        what: &'static str,
    },
    /// It was not sent as a request, so nobody waits for a reply to it.
    #[error("the message is no request: it has no property {missing}")]
    NoRequest {
        /// What it would have to have.
        missing: &'static str,
    },
    /// A transaction may not have such a message.
    #[error("a transaction cannot have {what}")]
    NotInTransaction {
        /// What it is.
        what: &'static str,
    },
    /// A batch may not hold such messages.
    #[error("a batch cannot hold {what}")]
    NotBatchable {
        /// What they are.
        what: &'static str,
    },
    /// A message does not fit the batch's own encoding.
    #[error("batch cannot be written")]
    Batch(#[from] BatchError),
}

/// A send did not get an answer that says "stored".
#[derive(Clone, Debug, thiserror::Error)]
pub enum SendError {
    /// The message itself is at fault; nothing was sent.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
    /// There is no queue to send to; nothing was sent.
    #[error("no queue of topic {topic} to send to")]
    NoQueue {
        /// The topic.
        topic: String,
        /// Why the route could not be had, if that is the reason.
        #[source]
        cause: Option<CallError>,
    },
    /// Every attempt failed.
    #[error("{0}")]
    Failed(SendFailure),
}

impl SendError {
    /// The attempts made, in order.
    pub fn attempts(&self) -> &[FailedAttempt] {
        match self {
            SendError::Invalid(_) | SendError::NoQueue { .. } => &[],
            SendError::Failed(failure) => &failure.attempts,
        }
    }

    /// What is known of the call as a whole: unknown if any of its attempts is.
    pub fn fate(&self) -> Fate {
        self.attempts().iter().map(FailedAttempt::fate).max().unwrap_or(Fate::NotStored)
    }
}

/// The attempts of a failed send.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} attempts failed{}, the last with: {}", attempts.len(), if *out_of_time { " and time is up" } else { "" }, last(attempts))]
pub struct SendFailure {
    /// In the order made; at least one.
    pub attempts: Vec<FailedAttempt>,
    /// Whether further attempts were left out because the time was used up.
    pub out_of_time: bool,
}

fn last(attempts: &[FailedAttempt]) -> String {
    attempts.last().map(|attempt| attempt.error.to_string()).unwrap_or_default()
}

/// A configuration value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The group is empty, too long, has a wrong character, or is one of the reserved names.
    #[error("group {group:?} is not a group name")]
    Group {
        /// The group.
        group: String,
    },
    /// A number is outside its range.
    #[error("{field} is {value}, allowed are {min} to {max}")]
    Range {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: i64,
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// A subscription by an expression has none.
    #[error("expression of the subscription to {topic} is empty")]
    EmptyExpression {
        /// The topic.
        topic: String,
    },
    /// A subscription names no topic.
    #[error(transparent)]
    Topic(InvalidMessage),
}

/// A client, producer or consumer could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The group has a member in this instance already.
    #[error("group {group} is in use in this client")]
    GroupInUse {
        /// The group.
        group: String,
    },
    /// The file of local offsets exists and cannot be used.
    #[error("local offsets cannot be read")]
    LocalOffsets(#[from] LocalOffsetsError),
    /// The instance has been shut down.
    #[error("the client is shut down")]
    ShutDown,
    /// A broker cannot filter as a subscription wants: it does not understand the expression, or may not filter by it.
    #[error("subscription to {topic} is not possible: {cause}")]
    Subscription {
        /// The topic.
        topic: String,
        /// What the broker says.
        cause: CallError,
    },
}

/// The file of local offsets cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LocalOffsetsError {
    /// The disk failed.
    #[error("local offset file: {0}")]
    Io(#[from] io::Error),
    /// Neither the file nor its backup is a table of offsets.
    #[error("local offset file is damaged")]
    Damaged(#[from] JsonError),
}
