//! Request code to handler: the only `Handler` of a broker's listening sockets.
use crate::broker::Broker;
use crate::consumers::Peer;
use crate::refusal::Refusal;
use crate::{
    admin, client_requests, group_requests, offset_requests, pull, recall, reply, reply_message, retention_requests,
    send, send_back, timer_state, topic_requests, transaction,
};
use protocol::RequestCode;
use protocol::frame::Command;
use protocol::header::PullSysFlag;
use remoting::{BoxFuture, Connection, Handler, Lane};
use serde::Serialize;
use std::sync::Arc;
use tracing::{debug, warn};

/// Serves a broker's clients, slaves and operators.
pub(crate) struct Dispatch(pub Arc<Broker>);

/// A request with what it came on.
pub(crate) struct Call {
    pub connection: Connection,
    pub request: Command,
}

impl Call {
    pub fn peer(&self) -> Peer {
        Peer(self.connection.id().as_u64())
    }

    pub fn ok(&self) -> Command {
        Command::reply(&self.request, protocol::ResponseCode::Success)
    }

    /// A JSON body, RocketMQ's answer to most questions.
    pub fn json<T: Serialize>(&self, body: &T) -> Command {
        self.ok().with_body(protocol::json::to_vec(body).expect("answers have plain values"))
    }

    /// The request's JSON body.
    pub fn body<T: serde::de::DeserializeOwned>(&self) -> Result<T, Refusal> {
        protocol::json::from_slice(&self.request.body).map_err(Refusal::Body)
    }
}

impl Handler for Dispatch {
    fn handle(&self, connection: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        let broker = Arc::clone(&self.0);
        Box::pin(async move {
            broker.serving.cancelled().await;
            let call = Call { connection, request };
            match serve(&broker, &call).await {
                Ok(answer) => Some(answer),
                Err(refusal) => {
                    let (code, peer) = (call.request.code, call.connection.peer_addr());
                    match &refusal {
                        // Not the peer's fault: the disk or a record is damaged, and nobody else would tell the operator.
                        Refusal::Read(error) => warn!(code, %peer, %error, "store cannot read"),
                        Refusal::Retention(error) => warn!(code, %peer, %error, "store cannot remove"),
                        refusal => debug!(code, %peer, %refusal, "request refused"),
                    }
                    reply::refuse(&call.request, &refusal)
                }
            }
        })
    }

    fn lane(&self, request: &Command) -> Lane {
        let pull = matches!(request.request_code(), Some(RequestCode::PullMessage | RequestCode::LitePullMessage));
        // Read alone: the whole header is decoded by who serves the request.
        let sys_flag = || request.ext_fields.get("sysFlag").and_then(|text| text.parse().ok());
        let held = pull && sys_flag().is_some_and(|flag| PullSysFlag(flag).may_suspend());
        if held { Lane::Held } else { Lane::Prompt }
    }

    fn connection_opened(&self, connection: &Connection) {
        self.0.connections().insert(Peer(connection.id().as_u64()), connection.clone());
    }

    fn connection_closed(&self, connection: &Connection) {
        self.0.forget(Peer(connection.id().as_u64()));
    }
}

async fn serve(broker: &Arc<Broker>, call: &Call) -> Result<Command, Refusal> {
    use RequestCode as C;
    let Some(code) = call.request.request_code() else { return Err(Refusal::NotSupported(call.request.code)) };
    match code {
        C::SendMessage | C::SendMessageV2 | C::SendBatchMessage => send::send(broker, call, code).await,
        C::SendReplyMessage | C::SendReplyMessageV2 => reply_message::send_reply(broker, call, code).await,
        C::RecallMessage => recall::recall(broker, call).await,
        C::ConsumerSendMsgBack => send_back::send_back(broker, call).await,
        C::EndTransaction => transaction::end::end(broker, call).await,
        C::ResumeCheckHalfMessage => transaction::end::resume(broker, call).await,
        C::PullMessage | C::LitePullMessage => pull::pull(broker, call).await,

        C::QueryConsumerOffset => offset_requests::query(broker, call).await,
        C::UpdateConsumerOffset => offset_requests::update(broker, call),
        C::GetMaxOffset => offset_requests::max(broker, call),
        C::GetMinOffset => offset_requests::min(broker, call),
        C::SearchOffsetByTimestamp => offset_requests::by_time(broker, call).await,
        C::GetEarliestMsgStoretime => offset_requests::earliest_time(broker, call).await,
        C::GetAllConsumerOffset => Ok(offset_requests::all(broker, call)),
        C::GetAllDelayOffset => Ok(offset_requests::all_delays(broker, call)),
        C::GetTimerCheckPoint => timer_state::checkpoint(broker, call),
        C::GetTimerMetrics => timer_state::metrics(broker, call),
        C::InvokeBrokerToResetOffset => offset_requests::reset(broker, call).await,

        C::HeartBeat => client_requests::heartbeat(broker, call).await,
        C::UnregisterClient => client_requests::unregister(broker, call),
        C::CheckClientConfig => client_requests::check_config(broker, call),
        C::GetConsumerListByGroup => client_requests::consumer_list(broker, call),
        C::LockBatchMq => client_requests::lock(broker, call),
        C::UnlockBatchMq => client_requests::unlock(broker, call),
        C::GetConsumerConnectionList => client_requests::consumer_connections(broker, call),
        C::GetProducerConnectionList => client_requests::producer_connections(broker, call),

        C::UpdateAndCreateTopic => topic_requests::update(broker, call).await,
        C::DeleteTopicInBroker => topic_requests::delete(broker, call).await,
        C::GetTopicConfig => topic_requests::get(broker, call),
        C::GetAllTopicConfig => topic_requests::all(broker, call),
        C::GetSystemTopicListFromBroker => Ok(topic_requests::system_list(broker, call)),
        C::GetTopicStatsInfo => topic_requests::stats(broker, call).await,

        C::UpdateAndCreateSubscriptiongroup => group_requests::update(broker, call).await,
        C::DeleteSubscriptiongroup => group_requests::delete(broker, call).await,
        C::GetSubscriptiongroupConfig => group_requests::get(broker, call).await,
        C::GetAllSubscriptiongroupConfig => group_requests::all(broker, call),
        C::GetConsumeStats => group_requests::consume_stats(broker, call).await,
        C::QuerySubscriptionByConsumer => group_requests::subscription(broker, call),
        C::QueryTopicConsumeByWho => group_requests::groups_of_topic(broker, call),
        C::QueryTopicsByConsumer => group_requests::topics_of_group(broker, call),

        C::GetBrokerRuntimeInfo => admin::runtime_info(broker, call).await,
        C::GetBrokerConfig => admin::broker_config(broker, call),
        C::GetBrokerHaStatus => admin::ha_status(broker, call),
        C::QueryMessage => admin::query_message(broker, call).await,
        C::ViewMessageById => admin::view_message(broker, call).await,
        C::DeleteExpiredCommitlog => Ok(retention_requests::remove_expired(broker, call)),
        C::CleanExpiredConsumequeue => retention_requests::remove_dead_topics(broker, call).await,
        C::CleanUnusedTopic => retention_requests::remove_unused_topics(broker, call).await,
        C::LogDigest => admin::log_digest(broker, call).await,
        C::ReadLog => admin::read_log(broker, call).await,
        _ => Err(Refusal::NotSupported(call.request.code)),
    }
}
