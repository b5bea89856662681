//! What clients ask: routes, and the shape of the cluster.

use bytes::Bytes;
use protocol::body::TopicRouteData;
use protocol::header::GetRouteInfoRequest;
use protocol::{Command, json};

use super::brokers::written;
use super::{Answer, Refused, Shared, success};
use crate::kv_config::NAMESPACE_ORDER_TOPIC_CONFIG;
use crate::route_table::keep_zone;

/// From this version (4.9.4) on clients read strict JSON.
const VERSION_WITH_STRICT_JSON: i32 = 401;

impl Shared {
    pub(super) fn route(&self, request: &Command) -> Answer {
        if self.answers.wait_for_service.is_some_and(|wait| self.now() < wait) {
            return Err(Refused::NotReady);
        }
        let header: GetRouteInfoRequest = request.header()?;
        let route = self.routes().route(&header.topic, self.answers.acting_master);
        let Some(mut route) = route else { return Err(Refused::NoRoute { topic: header.topic }) };
        if self.answers.order_message {
            route.order_topic_conf = self.kv().get(NAMESPACE_ORDER_TOPIC_CONFIG, &header.topic).map(str::to_owned);
        }
        let is_strict = request.version >= VERSION_WITH_STRICT_JSON || header.accept_standard_json_only == Some(true);
        let zone = wanted_zone(request);
        if let Some(zone) = zone {
            keep_zone(&mut route, zone);
        }
        // RocketMQ writes a route that it filtered by zone in the dialect, whoever asked.
        let body = if is_strict && zone.is_none() { strict(&route) } else { written(&route) };
        Ok(success(request).with_body(body))
    }

    pub(super) fn cluster_info(&self, request: &Command) -> Answer {
        let info = self.routes().cluster_info();
        Ok(success(request).with_body(written(&info)))
    }
}

fn wanted_zone(request: &Command) -> Option<&str> {
    let is_on = request.ext_fields.get("__ZONE_MODE").is_some_and(|mode| mode.eq_ignore_ascii_case("true"));
    request.ext_fields.get("__ZONE_NAME").filter(|zone| is_on && !zone.trim().is_empty())
}

fn strict(route: &TopicRouteData) -> Bytes {
    json::to_vec_strict(route).expect("routes can be written").into()
}
