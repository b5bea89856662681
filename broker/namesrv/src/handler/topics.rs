//! What administrators ask and change about topics.

use protocol::body::{TopicList, TopicRouteData};
use protocol::header::{
    AddWritePermissionRequest, AddWritePermissionResponse, DeleteTopicInNamesrvRequest, GetTopicsByClusterRequest,
    RegisterTopicInNamesrvRequest, WipeWritePermissionRequest, WipeWritePermissionResponse,
};
use protocol::{Command, RequestCode, json};
use tracing::info;

use super::brokers::written;
use super::{Answer, Refused, Shared, success};
use crate::route_table::UnitTopics;

impl Shared {
    pub(super) fn topic_list(&self, code: RequestCode, request: &Command) -> Answer {
        let is_allowed = match code {
            RequestCode::GetAllTopicListFromNameserver => self.answers.all_topic_list,
            RequestCode::GetSystemTopicListFromNs => true,
            _ => self.answers.topic_list,
        };
        if !is_allowed {
            return Err(Refused::Disabled);
        }
        let routes = self.routes();
        let (topic_list, broker_addr) = match code {
            RequestCode::GetSystemTopicListFromNs => routes.system_topics(),
            RequestCode::GetTopicsByCluster => {
                let header: GetTopicsByClusterRequest = request.header()?;
                (routes.topics_of_cluster(&header.cluster), None)
            }
            RequestCode::GetUnitTopicList => (routes.unit_topics(UnitTopics::Unit), None),
            RequestCode::GetHasUnitSubTopicList => (routes.unit_topics(UnitTopics::WithUnitSubscription), None),
            RequestCode::GetHasUnitSubUnunitTopicList => {
                (routes.unit_topics(UnitTopics::WithUnitSubscriptionOnly), None)
            }
            _ => (routes.topics(), None),
        };
        drop(routes);
        Ok(success(request).with_body(written(&TopicList { broker_addr, topic_list })))
    }

    pub(super) fn delete_topic(&self, request: &Command) -> Answer {
        let header: DeleteTopicInNamesrvRequest = request.header()?;
        let cluster = header.cluster_name.as_deref().filter(|cluster| !cluster.is_empty());
        self.routes().delete_topic(&header.topic, cluster);
        info!(topic = %header.topic, "topic deleted");
        Ok(success(request))
    }

    pub(super) fn register_topic(&self, request: &Command) -> Answer {
        let header: RegisterTopicInNamesrvRequest = request.header()?;
        let body: TopicRouteData = json::from_slice(&request.body)?;
        self.routes().register_topic(&header.topic, body.queue_datas);
        Ok(success(request))
    }

    pub(super) fn wipe_write_permission(&self, request: &Command) -> Answer {
        let header: WipeWritePermissionRequest = request.header()?;
        let topics = self.routes().wipe_write_permission(&header.broker_name);
        info!(broker = %header.broker_name, topics, "permission to send taken");
        Ok(success(request).with_header(&WipeWritePermissionResponse { wipe_topic_count: count(topics) }))
    }

    pub(super) fn add_write_permission(&self, request: &Command) -> Answer {
        let header: AddWritePermissionRequest = request.header()?;
        let topics = self.routes().add_write_permission(&header.broker_name);
        info!(broker = %header.broker_name, topics, "permission to send given");
        Ok(success(request).with_header(&AddWritePermissionResponse { add_topic_count: count(topics) }))
    }
}

fn count(topics: usize) -> i32 {
    i32::try_from(topics).unwrap_or(i32::MAX)
}
