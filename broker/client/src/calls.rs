//! One typed function per request. Each says by its type what "no" means; none retries or chooses a broker.
use crate::error::CallError;
use crate::instance::ClientInstance;
use bytes::Bytes;
use protocol::body::{CheckClientRequestBody, ConsumerListBody, HeartbeatData, SubscriptionData, TopicRouteData};
use protocol::header::{
    BoundaryType, ConsumerSendMsgBackRequest, CreateTopicRequest, Empty, GetConsumerListByGroupRequest,
    GetMaxOffsetRequest, GetMinOffsetRequest, GetRouteInfoRequest, HeartbeatRequest, OffsetResponse,
    QueryConsumerOffsetRequest, SearchOffsetRequest, UnregisterClientRequest, UpdateConsumerOffsetRequest,
};
use protocol::{Command, Header, MessageQueue, QueueOffset, RequestCode, ResponseCode};
use std::time::Duration;

/// The time-out of queue bounds and searches, as the Java client has it.
const BOUNDS_TIMEOUT: Duration = Duration::from_secs(6);

/// Key under which 5.x clients name the broker they mean.
const BROKER_NAME_KEY: &str = "bname";

/// The answer, or the error that a code other than success stands for.
pub(crate) fn success(addr: &str, answer: Command) -> Result<Command, CallError> {
    if answer.response_code() == Some(ResponseCode::Success) { Ok(answer) } else { Err(refused(addr, answer)) }
}

pub(crate) fn refused(addr: &str, answer: Command) -> CallError {
    CallError::Refused { addr: addr.to_owned(), code: answer.code, remark: answer.remark }
}

fn to_queue(code: RequestCode, header: &impl Header, queue: &MessageQueue) -> Command {
    Command::request(code, header).with_ext(BROKER_NAME_KEY, queue.broker_name.clone())
}

impl ClientInstance {
    /// The route of a topic, within `limit`. `None`: this name server does not know the topic.
    pub(crate) async fn call_route(
        &self,
        addr: &str,
        topic: &str,
        limit: Duration,
    ) -> Result<Option<TopicRouteData>, CallError> {
        let header = GetRouteInfoRequest { topic: topic.into(), accept_standard_json_only: Some(true) };
        let request = Command::request(RequestCode::GetRouteinfoByTopic, &header);
        let answer = self.call(addr, request, limit).await?;
        if answer.response_code() == Some(ResponseCode::TopicNotExist) {
            return Ok(None);
        }
        let answer = success(addr, answer)?;
        Ok(Some(protocol::json::from_slice(&answer.body)?))
    }

    /// Tells a broker that this client lives and what it wants.
    pub(crate) async fn call_heartbeat(&self, addr: &str, data: &HeartbeatData) -> Result<(), CallError> {
        let body = Bytes::from(protocol::json::to_vec(data)?);
        let request = Command::request(RequestCode::HeartBeat, &HeartbeatRequest {}).with_body(body);
        success(addr, self.call(addr, request, self.config().api_timeout).await?)?;
        Ok(())
    }

    /// Tells a broker that a group's member leaves.
    pub(crate) async fn call_unregister(&self, addr: &str, header: &UnregisterClientRequest) -> Result<(), CallError> {
        let request = Command::request(RequestCode::UnregisterClient, header);
        success(addr, self.call(addr, request, self.config().api_timeout).await?)?;
        Ok(())
    }

    /// Asks a broker whether it can filter as a group wants.
    pub(crate) async fn call_check_subscription(
        &self,
        addr: &str,
        group: &str,
        subscription: &SubscriptionData,
    ) -> Result<(), CallError> {
        let body = CheckClientRequestBody {
            client_id: self.client_id().to_owned(),
            group: group.to_owned(),
            namespace: None,
            subscription_data: subscription.clone(),
        };
        let body = Bytes::from(protocol::json::to_vec(&body)?);
        let request = Command::request(RequestCode::CheckClientConfig, &Empty {}).with_body(body);
        success(addr, self.call(addr, request, self.config().api_timeout).await?)?;
        Ok(())
    }

    /// The members of a consumer group that a broker knows.
    pub(crate) async fn call_consumer_list(&self, addr: &str, group: &str) -> Result<Vec<String>, CallError> {
        let header = GetConsumerListByGroupRequest { consumer_group: group.into() };
        let request = Command::request(RequestCode::GetConsumerListByGroup, &header);
        let answer = success(addr, self.call(addr, request, self.config().api_timeout).await?)?;
        let body: ConsumerListBody = protocol::json::from_slice(&answer.body)?;
        Ok(body.consumer_id_list)
    }

    /// The stored progress of a group. `Ok(None)` only if the broker says that it has none.
    pub(crate) async fn call_query_offset(
        &self,
        addr: &str,
        group: &str,
        queue: &MessageQueue,
    ) -> Result<Option<QueueOffset>, CallError> {
        let header = QueryConsumerOffsetRequest {
            consumer_group: group.into(),
            topic: queue.topic.clone(),
            queue_id: queue.queue_id,
            set_zero_if_not_found: None,
        };
        let request = to_queue(RequestCode::QueryConsumerOffset, &header, queue);
        let answer = self.call(addr, request, self.config().offset_timeout).await?;
        if answer.response_code() == Some(ResponseCode::QueryNotFound) {
            return Ok(None);
        }
        let offset = success(addr, answer)?.header::<OffsetResponse>()?.offset;
        // A broker has no business to store a negative offset; treat it as what it means elsewhere in the protocol.
        Ok((offset >= QueueOffset::ZERO).then_some(offset))
    }

    /// Stores a group's progress and waits for the broker's word.
    pub(crate) async fn call_update_offset(
        &self,
        addr: &str,
        group: &str,
        queue: &MessageQueue,
        offset: QueueOffset,
    ) -> Result<(), CallError> {
        let request = update_offset(group, queue, offset);
        success(addr, self.call(addr, request, self.config().offset_timeout).await?)?;
        Ok(())
    }

    /// Stores a group's progress without waiting for an answer.
    pub(crate) async fn tell_update_offset(
        &self,
        addr: &str,
        group: &str,
        queue: &MessageQueue,
        offset: QueueOffset,
    ) -> Result<(), CallError> {
        let mut request = update_offset(group, queue, offset);
        request.mark_oneway();
        self.tell(addr, request, self.config().offset_timeout).await
    }

    /// The offset behind a queue's last message.
    pub(crate) async fn call_max_offset(&self, addr: &str, queue: &MessageQueue) -> Result<QueueOffset, CallError> {
        let header = GetMaxOffsetRequest { topic: queue.topic.clone(), queue_id: queue.queue_id, committed: true };
        self.call_offset(addr, to_queue(RequestCode::GetMaxOffset, &header, queue)).await
    }

    /// The offset of a queue's first message.
    pub(crate) async fn call_min_offset(&self, addr: &str, queue: &MessageQueue) -> Result<QueueOffset, CallError> {
        let header = GetMinOffsetRequest { topic: queue.topic.clone(), queue_id: queue.queue_id };
        self.call_offset(addr, to_queue(RequestCode::GetMinOffset, &header, queue)).await
    }

    /// The offset of the first message stored at or after a wall time in milliseconds.
    pub(crate) async fn call_search_offset(
        &self,
        addr: &str,
        queue: &MessageQueue,
        timestamp: i64,
    ) -> Result<QueueOffset, CallError> {
        let header = SearchOffsetRequest {
            topic: queue.topic.clone(),
            queue_id: queue.queue_id,
            timestamp,
            boundary_type: BoundaryType::Lower,
        };
        self.call_offset(addr, to_queue(RequestCode::SearchOffsetByTimestamp, &header, queue)).await
    }

    async fn call_offset(&self, addr: &str, request: Command) -> Result<QueueOffset, CallError> {
        let answer = success(addr, self.call(addr, request, BOUNDS_TIMEOUT).await?)?;
        Ok(answer.header::<OffsetResponse>()?.offset)
    }

    /// Hands a message back to its broker, to be delivered later or buried.
    pub(crate) async fn call_send_back(
        &self,
        addr: &str,
        broker_name: &str,
        header: &ConsumerSendMsgBackRequest,
    ) -> Result<(), CallError> {
        let request = Command::request(RequestCode::ConsumerSendMsgBack, header).with_ext(BROKER_NAME_KEY, broker_name);
        success(addr, self.call(addr, request, self.config().offset_timeout).await?)?;
        Ok(())
    }

    /// Creates or changes a topic at one broker.
    pub(crate) async fn call_create_topic(&self, addr: &str, header: &CreateTopicRequest) -> Result<(), CallError> {
        let request = Command::request(RequestCode::UpdateAndCreateTopic, header);
        success(addr, self.call(addr, request, BOUNDS_TIMEOUT).await?)?;
        Ok(())
    }
}

fn update_offset(group: &str, queue: &MessageQueue, offset: QueueOffset) -> Command {
    let header = UpdateConsumerOffsetRequest {
        consumer_group: group.into(),
        topic: queue.topic.clone(),
        queue_id: queue.queue_id,
        commit_offset: offset,
    };
    to_queue(RequestCode::UpdateConsumerOffset, &header, queue)
}
