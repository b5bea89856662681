//! Why a request is not served. The display text is the remark its sender gets; the code is given in [`crate::reply`].
use crate::filter::FilterError;
use crate::names::NameError;
use protocol::{HeaderError, JsonError};
use store::{AppendError, ReadError, RetentionError};
use thiserror::Error;

/// Where RocketMQ's documentation explains the error, as its clients print it.
pub(crate) const FAQ: &str = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

/// What a pull is forbidden by (`forbiddenType` of the answer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forbidden {
    Broker = 1,
    Group = 2,
    Topic = 3,
    Broadcast = 4,
    Subscription = 5,
}

/// Why a request is not served.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    /// Not an error to tell: an answer would reveal what is not durable, or the sender must time out.
    #[error("no answer")]
    NoAnswer,
    #[error("request type {0} not supported")]
    NotSupported(i32),
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("body of the request is damaged: {0}")]
    Body(JsonError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("parameter {name} is invalid: {value}")]
    Parameter { name: &'static str, value: String },
    #[error("[REJECTREQUEST]system busy, start flow control for a while")]
    Slave,
    #[error(
        "service not available now. It may be caused by one of the following reasons: the broker's disk is full, messages are put to the slave, message store has been shut down, etc."
    )]
    ServiceNotAvailable,
    #[error("Can not reset offset in slave broker")]
    ResetOnSlave,

    #[error("the broker[{0}] sending message is forbidden")]
    BrokerNotWritable(String),
    #[error("the broker[{0}] sending transaction message is forbidden")]
    TransactionForbidden(String),
    #[error("Sending message to topic[{0}] is forbidden.")]
    SendForbidden(String),
    #[error("the topic[{0}] sending message is forbidden")]
    TopicNotWritable(String),
    #[error("topic[{0}] not exist, apply first please!\n{FAQ}")]
    NoTopic(String),
    #[error("No topic in this broker. topic: {0}")]
    NoTopicConfig(String),
    #[error("request queueId[{queue_id}] is illegal, {topic} has {queues} queues")]
    SendQueue { queue_id: i32, topic: String, queues: i32 },
    #[error("subscription group not exist, {0}\n{FAQ}")]
    NoGroup(String),
    #[error("an inner batch needs a topic with queue.type=BatchCQ, both flags, and INNER_NUM messages")]
    InnerBatch,
    #[error("a batch cannot be delayed")]
    DelayedBatch,
    #[error("accurate timer message is not enabled, timerWheelEnable is false")]
    NoTimer,
    #[error(
        "timer message illegal, the delay time should not be bigger than the max delay {max_ms}ms; or if set del msg, the delay time should be bigger than the current time"
    )]
    TimerIllegal { max_ms: u128 },
    #[error("recall failed, operation is forbidden")]
    RecallForbidden,
    #[error("recall failed, broker service not available")]
    RecallOnSlave,
    #[error("recall failed, the topic[{0}] not exist")]
    RecallTopic(String),
    #[error("recall handle is invalid")]
    RecallHandle,
    #[error("recall failed, topic not match")]
    RecallOtherTopic,
    #[error("recall failed, broker service not available")]
    RecallOtherBroker,
    #[error("recall failed, timestamp invalid")]
    RecallMoment,
    #[error("transactions are ended at the master")]
    TransactionOnSlave,
    #[error("Find prepared transaction message failed")]
    NoHalf,
    #[error("The producer group wrong")]
    HalfOfOtherGroup,
    #[error("The transaction state table offset wrong")]
    HalfAtOtherOffset,
    #[error("the producer of the transaction is asked by now, its own end comes too late")]
    TransactionEndTooLate,
    #[error("the half message names no queue")]
    HalfWithoutTarget,
    #[error("Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")]
    NoHalfToResume,
    #[error("reply message properties[REPLY_TO_CLIENT] is null")]
    ReplyToNobody,
    #[error("push reply message fail, channel of <{0}> not found.")]
    ReplyClientGone(String),
    #[error("push reply message to <{0}>fail.")]
    ReplyNotTaken(String),
    #[error("batch request does not support retry group {0}")]
    BatchToRetry(String),
    #[error("batch is damaged")]
    Batch(#[from] protocol::BatchError),
    #[error("properties are damaged")]
    Properties,
    #[error("message body is empty")]
    EmptyBody,
    #[error("{0}")]
    Append(AppendError),
    #[error("look message by offset failed, {0}")]
    NoMessageAt(i64),
    #[error("can not find message by the offset, {0}")]
    NoMessageToView(i64),
    #[error("can not find message, maybe time range not correct")]
    NoMessageOfKey,
    #[error("{0}")]
    PutFailed(&'static str),

    #[error("the broker[{0}] pulling message is forbidden")]
    BrokerNotReadable(String),
    #[error("subscription group [{0}] does not exist, {FAQ}")]
    NoPullGroup(String),
    #[error("subscription group no permission, {0}")]
    GroupDisabled(String),
    #[error("the topic[{0}] pulling message is forbidden")]
    TopicNotReadable(String),
    #[error("queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{queues}]")]
    PullQueue { queue_id: i32, topic: String, queues: i32 },
    #[error("parse the consumer's subscription failed")]
    Filter(#[from] FilterError),
    #[error("The broker does not support consumer to filter message by {0}")]
    FilterType(String),
    #[error("{0}")]
    FilterText(FilterError),
    #[error("The broker's consumer filter data is not exist!Your expression may be wrong!")]
    NoFilterData,
    #[error("the consumer's consumer filter data not latest")]
    OldFilterData,
    #[error("the consumer's group info not exist\n{FAQ}")]
    NoGroupInfo,
    #[error("the consumer's subscription not exist\n{FAQ}")]
    NoSubscription,
    #[error("the consumer's subscription not latest")]
    OldSubscription,
    #[error("the consumer group[{0}] can not consume by broadcast way")]
    BroadcastDisabled(String),
    #[error("the consumer group[{group}] is forbidden for topic[{topic}]")]
    SubscriptionForbidden { group: String, topic: String },
    #[error("store cannot read: {0}")]
    Read(#[from] ReadError),
    #[error("store cannot remove: {0}")]
    Retention(RetentionError),

    #[error("Group {0} not exist!")]
    OffsetGroup(String),
    #[error("Topic {0} not exist!")]
    OffsetTopic(String),
    #[error("Not found, do not set to zero, maybe this group boot first")]
    NoOffsetNoZero,
    #[error("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")]
    NoOffset,
    #[error("Target offset {offset} not in consume queue range [{min}-{max}]")]
    ResetRange { offset: i64, min: i64, max: i64 },
    #[error("no consumer for this group, {0}")]
    NoConsumer(String),
    #[error("the consumer group[{0}] not online")]
    GroupOffline(String),
    #[error("the producer group[{0}] not exist")]
    NoProducer(String),
    #[error("The topic[{0}] is conflict with system topic.")]
    SystemTopic(String),
}

impl From<AppendError> for Refusal {
    /// A full disk has Apache's words, which clients and operators know.
    fn from(error: AppendError) -> Refusal {
        match error {
            AppendError::DiskFull { .. } => Refusal::ServiceNotAvailable,
            other => Refusal::Append(other),
        }
    }
}

impl From<RetentionError> for Refusal {
    /// A poisoned store answers nothing.
    fn from(error: RetentionError) -> Refusal {
        match error {
            RetentionError::Poisoned(_) => Refusal::NoAnswer,
            other => Refusal::Retention(other),
        }
    }
}

impl Refusal {
    /// For a pull's answer: what forbids it.
    pub fn forbidden(&self) -> Option<Forbidden> {
        match self {
            Refusal::BrokerNotReadable(_) => Some(Forbidden::Broker),
            Refusal::GroupDisabled(_) => Some(Forbidden::Group),
            Refusal::TopicNotReadable(_) => Some(Forbidden::Topic),
            Refusal::BroadcastDisabled(_) => Some(Forbidden::Broadcast),
            Refusal::SubscriptionForbidden { .. } => Some(Forbidden::Subscription),
            _ => None,
        }
    }
}
