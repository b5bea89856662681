//! Routes: asking name servers, and looking up whom to ask for what.
use crate::error::CallError;
use crate::instance::ClientInstance;
use crate::routes::{Replica, Routes};
use protocol::MessageQueue;
use protocol::body::TopicRouteData;
use rt::time::timeout;
use tracing::{debug, info, warn};

impl ClientInstance {
    /// Runs `read` on the route table.
    pub(crate) fn routes<T>(&self, read: impl FnOnce(&Routes) -> T) -> T {
        read(&self.state().routes)
    }

    /// Remembers that the topic is sent to, so that its route is kept fresh.
    pub(crate) fn publishes(&self, topic: &str) {
        let mut state = self.state();
        if !state.published.contains(topic) {
            state.published.insert(topic.to_owned());
        }
    }

    /// Fetches the route of a topic now.
    pub(crate) async fn refresh_route(&self, topic: &str) -> Result<(), CallError> {
        let _alone = self.refresh_lock().await?;
        let route = self.fetch_route(topic).await?.ok_or_else(|| CallError::NoRoute { topic: topic.into() })?;
        self.put_route(topic, route);
        Ok(())
    }

    /// Takes over the route of `template` (at most `queues` queues a broker) for a topic that no broker has yet: the broker that gets
    /// its first message creates it.
    pub(crate) async fn adopt_route(&self, topic: &str, template: &str, queues: i32) -> Result<(), CallError> {
        let _alone = self.refresh_lock().await?;
        let Some(mut route) = self.fetch_route(template).await? else {
            return Err(CallError::NoRoute { topic: topic.into() });
        };
        for data in &mut route.queue_datas {
            let count = queues.min(data.read_queue_nums);
            (data.read_queue_nums, data.write_queue_nums) = (count, count);
        }
        self.put_route(topic, route);
        Ok(())
    }

    async fn refresh_lock(&self) -> Result<rt::sync::MutexGuard<'_, ()>, CallError> {
        let after = self.0.config.api_timeout;
        timeout(after, self.0.refreshing.lock()).await.map_err(|_| CallError::Deadline { after })
    }

    /// Asks one name server after the other, beginning with the one that answered last, until one knows the topic. `None`: those that
    /// answered do not. While there is another one to ask, a silent one gets its share of the time only: a send waits for this.
    async fn fetch_route(&self, topic: &str) -> Result<Option<TopicRouteData>, CallError> {
        let (mut unknown, mut failed) = (false, None);
        let servers = self.state().name_servers.in_order();
        let whole = self.0.config.api_timeout;
        for (place, server) in servers.iter().enumerate() {
            let is_last = place + 1 == servers.len();
            let limit = if is_last { whole } else { whole.div_f64(servers.len() as f64) };
            match self.call_route(server, topic, limit).await {
                Ok(Some(route))
                    if route.topic_queue_mapping_by_broker.as_ref().is_some_and(|mapping| !mapping.is_empty()) =>
                {
                    return Err(CallError::StaticTopic { topic: topic.into() });
                }
                Ok(Some(route)) => {
                    self.state().name_servers.answered(server);
                    return Ok(Some(route));
                }
                // One that was just started knows nothing yet; another may.
                Ok(None) => unknown = true,
                Err(error) => {
                    debug!(%server, %topic, %error, "route not fetched");
                    self.state().name_servers.failed(server);
                    failed = Some(error);
                }
            }
        }
        if unknown { Ok(None) } else { Err(failed.unwrap_or(CallError::NoNameServer)) }
    }

    fn put_route(&self, topic: &str, route: TopicRouteData) {
        let changed = self.state().routes.put(topic, route);
        if changed {
            info!(%topic, "route changed");
            let consumers = self.state().live_consumers();
            for core in consumers {
                core.route_changed(topic);
            }
        }
    }

    /// Refreshes the route of every topic in use. The failure of one does not keep the others from being refreshed.
    pub(crate) async fn refresh_all_routes(&self) {
        let used = self.state().used_topics();
        for topic in &used {
            if let Err(error) = self.refresh_route(topic).await {
                warn!(%topic, %error, "route not refreshed, the old one stays");
            }
        }
        let mut state = self.state();
        let used = state.used_topics();
        state.routes.retain_topics(&used);
    }

    /// Address of the master of a queue's broker; the route is refreshed once if there is none.
    pub(crate) async fn master_of(&self, queue: &MessageQueue) -> Result<String, CallError> {
        let find = || self.routes(|routes| routes.master(&queue.broker_name).map(str::to_owned));
        if let Some(addr) = find() {
            return Ok(addr);
        }
        self.refresh_route(&queue.topic).await?;
        find().ok_or_else(|| CallError::NoBroker { broker: queue.broker_name.clone() })
    }

    /// Where to read a queue: see [`Routes::replica`]; the route is refreshed once if there is nothing.
    pub(crate) async fn replica_of(&self, queue: &MessageQueue, id: i64) -> Result<Replica, CallError> {
        let find = || self.routes(|routes| routes.replica(&queue.broker_name, id));
        if let Some(replica) = find() {
            return Ok(replica);
        }
        self.refresh_route(&queue.topic).await?;
        find().ok_or_else(|| CallError::NoBroker { broker: queue.broker_name.clone() })
    }

    /// The members of a group, as one broker of the topic sees them. Any broker of the topic will do; all are tried.
    pub(crate) async fn consumer_ids(&self, topic: &str, group: &str) -> Result<Vec<String>, CallError> {
        let draw = self.draw();
        let mut addrs = self.routes(|routes| routes.group_addrs(topic, draw));
        if addrs.is_empty() {
            self.refresh_route(topic).await?;
            addrs = self.routes(|routes| routes.group_addrs(topic, draw));
        }
        let mut failed = CallError::NoRoute { topic: topic.into() };
        for addr in addrs {
            match self.call_consumer_list(&addr, group).await {
                Ok(ids) => return Ok(ids),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}
