//! The one place where errors and outcomes become RocketMQ's response codes.
use crate::refusal::Refusal;
use protocol::frame::Command;
use protocol::header::PullMessageResponse;
use protocol::{QueueOffset, ResponseCode};
use store::{AppendError, GetStatus};

/// How a message that is in the log came through the waits its acknowledgement asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutStatus {
    /// As durable as configured.
    Ok,
    /// Not on the disk in time; it may still get there.
    FlushDiskTimeout,
    /// Not at enough slaves in time; it may still get there.
    FlushSlaveTimeout,
}

impl PutStatus {
    pub fn code(self) -> ResponseCode {
        match self {
            PutStatus::Ok => ResponseCode::Success,
            PutStatus::FlushDiskTimeout => ResponseCode::FlushDiskTimeout,
            PutStatus::FlushSlaveTimeout => ResponseCode::FlushSlaveTimeout,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            PutStatus::Ok => "PUT_OK",
            PutStatus::FlushDiskTimeout => "FLUSH_DISK_TIMEOUT",
            PutStatus::FlushSlaveTimeout => "FLUSH_SLAVE_TIMEOUT",
        }
    }
}

/// The answer to a request that is not served; `None` if it gets none.
pub(crate) fn refuse(request: &Command, refusal: &Refusal) -> Option<Command> {
    let code = refusal_code(refusal)?;
    let reply = Command::reply(request, code).with_remark(refusal.to_string());
    Some(match refusal.forbidden() {
        None => reply,
        Some(forbidden) => reply.with_header(&PullMessageResponse {
            suggest_which_broker_id: 0,
            next_begin_offset: QueueOffset(0),
            min_offset: QueueOffset(0),
            max_offset: QueueOffset(0),
            offset_delta: None,
            topic_sys_flag: None,
            group_sys_flag: None,
            forbidden_type: Some(forbidden as i32),
        }),
    })
}

/// The code of a refusal; `None` if the request gets no answer.
fn refusal_code(refusal: &Refusal) -> Option<ResponseCode> {
    use Refusal as R;
    Some(match refusal {
        R::NoAnswer => return None,
        R::Append(error) => return append_code(error),
        R::NotSupported(_) => ResponseCode::RequestCodeNotSupported,
        R::Slave => ResponseCode::SystemBusy,
        R::ServiceNotAvailable => ResponseCode::ServiceNotAvailable,
        R::Name(_) | R::Parameter { .. } | R::SendQueue { .. } | R::PullQueue { .. } | R::SystemTopic(_) => {
            ResponseCode::InvalidParameter
        }
        R::BrokerNotWritable(_)
        | R::TransactionForbidden(_)
        | R::RecallForbidden
        | R::SendForbidden(_)
        | R::TopicNotWritable(_)
        | R::BrokerNotReadable(_)
        | R::GroupDisabled(_)
        | R::TopicNotReadable(_)
        | R::BroadcastDisabled(_)
        | R::SubscriptionForbidden { .. } => ResponseCode::NoPermission,
        R::RecallOnSlave | R::TransactionOnSlave => ResponseCode::SlaveNotAvailable,
        R::RecallHandle | R::RecallOtherTopic | R::RecallOtherBroker | R::RecallMoment | R::TransactionEndTooLate => {
            ResponseCode::IllegalOperation
        }
        R::NoTopic(_) | R::NoTopicConfig(_) | R::OffsetTopic(_) | R::RecallTopic(_) => ResponseCode::TopicNotExist,
        R::NoGroup(_) | R::NoPullGroup(_) | R::OffsetGroup(_) => ResponseCode::SubscriptionGroupNotExist,
        R::BatchToRetry(_)
        | R::InnerBatch
        | R::DelayedBatch
        | R::Batch(_)
        | R::Properties
        | R::EmptyBody
        | R::TimerIllegal { .. } => ResponseCode::MessageIllegal,
        R::Filter(_) | R::FilterText(_) => ResponseCode::SubscriptionParseFailed,
        R::NoFilterData => ResponseCode::FilterDataNotExist,
        R::OldFilterData => ResponseCode::FilterDataNotLatest,
        R::NoGroupInfo | R::NoSubscription => ResponseCode::SubscriptionNotExist,
        R::OldSubscription => ResponseCode::SubscriptionNotLatest,
        R::NoOffsetNoZero | R::NoOffset | R::NoMessageOfKey => ResponseCode::QueryNotFound,
        R::GroupOffline(_) => ResponseCode::ConsumerNotOnline,
        R::Header(_)
        | R::Body(_)
        | R::ResetOnSlave
        | R::NoMessageAt(_)
        | R::NoMessageToView(_)
        | R::PutFailed(_)
        | R::ReplyToNobody
        | R::ReplyClientGone(_)
        | R::ReplyNotTaken(_)
        | R::NoHalf
        | R::HalfOfOtherGroup
        | R::HalfAtOtherOffset
        | R::HalfWithoutTarget
        | R::NoHalfToResume
        | R::NoTimer
        | R::FilterType(_)
        | R::Read(_)
        | R::Retention(_)
        | R::ResetRange { .. }
        | R::NoConsumer(_)
        | R::NoProducer(_) => ResponseCode::SystemError,
    })
}

/// The code of a message that was not stored. A poisoned store answers nothing: what it did before may be lost.
fn append_code(error: &AppendError) -> Option<ResponseCode> {
    Some(match error {
        AppendError::Poisoned(_) => return None,
        AppendError::BodyTooLong { .. }
        | AppendError::PropertiesTooLong { .. }
        | AppendError::LightRecordTooLong { .. }
        | AppendError::TopicTooLong { .. }
        | AppendError::TopicName { .. }
        | AppendError::BadBatch
        | AppendError::PropertiesZero
        | AppendError::TooLongForSegment { .. }
        | AppendError::Encode(_) => ResponseCode::MessageIllegal,
        AppendError::QueueId { .. } => ResponseCode::InvalidParameter,
        AppendError::CreateSegment { .. } => ResponseCode::SystemError,
        AppendError::DiskFull { .. }
        | AppendError::NoSpace { .. }
        | AppendError::NotCaughtUp { .. }
        | AppendError::Closed => ResponseCode::ServiceNotAvailable,
    })
}

/// The code of a read, by what it found and whether the reader asked for the very beginning.
pub(crate) fn pull_code(status: GetStatus, asked: QueueOffset) -> ResponseCode {
    match status {
        GetStatus::Found => ResponseCode::Success,
        GetStatus::NoMatchedMessage | GetStatus::MessageWasRemoving => ResponseCode::PullRetryImmediately,
        GetStatus::NoMatchedLogicQueue | GetStatus::NoMessageInQueue if asked == QueueOffset(0) => {
            ResponseCode::PullNotFound
        }
        GetStatus::OffsetFoundNull | GetStatus::OffsetOverflowOne => ResponseCode::PullNotFound,
        GetStatus::NoMatchedLogicQueue
        | GetStatus::NoMessageInQueue
        | GetStatus::OffsetTooSmall
        | GetStatus::OffsetOverflowBadly => ResponseCode::PullOffsetMoved,
    }
}

/// Apache's name of what a read found: the remark of a pull's answer.
pub(crate) fn status_name(status: GetStatus) -> &'static str {
    match status {
        GetStatus::Found => "FOUND",
        GetStatus::NoMatchedMessage => "NO_MATCHED_MESSAGE",
        GetStatus::MessageWasRemoving => "MESSAGE_WAS_REMOVING",
        GetStatus::NoMatchedLogicQueue => "NO_MATCHED_LOGIC_QUEUE",
        GetStatus::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
        GetStatus::OffsetTooSmall => "OFFSET_TOO_SMALL",
        GetStatus::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
        GetStatus::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
        GetStatus::OffsetFoundNull => "OFFSET_FOUND_NULL",
    }
}

#[cfg(test)]
mod tests {
    use super::{PutStatus, append_code, pull_code};
    use protocol::{QueueOffset, ResponseCode};
    use store::{AppendError, GetStatus};

    #[test]
    fn a_stored_message_is_ok_or_tells_which_wait_ran_out() {
        let codes = [PutStatus::Ok, PutStatus::FlushDiskTimeout, PutStatus::FlushSlaveTimeout]
            .map(|status| status.code().as_i32());
        assert_eq!(codes, [0, 10, 12]);
    }

    #[test]
    fn a_message_that_was_not_stored() {
        let check = |error: AppendError, code: Option<i32>| {
            assert_eq!(append_code(&error).map(ResponseCode::as_i32), code, "{error}")
        };
        check(AppendError::BodyTooLong { size: 2, limit: 1 }, Some(13));
        check(AppendError::PropertiesTooLong { size: 2, limit: 1 }, Some(13));
        check(AppendError::TopicTooLong { size: 2, limit: 1 }, Some(13));
        check(AppendError::BadBatch, Some(13));
        check(AppendError::QueueId { queue_id: -1 }, Some(29));
        check(AppendError::Closed, Some(14));
        check(AppendError::DiskFull { used_percent: 91 }, Some(14));
        check(AppendError::NotCaughtUp { end: protocol::PhysicalOffset(0) }, Some(14));
    }

    #[test]
    fn what_a_read_found() {
        let check = |status, asked, code| {
            assert_eq!(pull_code(status, QueueOffset(asked)).as_i32(), code, "{status:?} {asked}")
        };
        check(GetStatus::Found, 5, 0);
        check(GetStatus::NoMatchedMessage, 5, 20);
        check(GetStatus::MessageWasRemoving, 5, 20);
        check(GetStatus::NoMatchedLogicQueue, 0, 19);
        check(GetStatus::NoMatchedLogicQueue, 5, 21);
        check(GetStatus::NoMessageInQueue, 0, 19);
        check(GetStatus::NoMessageInQueue, 5, 21);
        check(GetStatus::OffsetTooSmall, 5, 21);
        check(GetStatus::OffsetOverflowOne, 5, 19);
        check(GetStatus::OffsetOverflowBadly, 5, 21);
        check(GetStatus::OffsetFoundNull, 5, 19);
    }
}
