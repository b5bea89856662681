//! Groups of this client, and telling brokers that it lives.
use crate::concurrently;
use crate::consumer::core::Core;
use crate::error::StartError;
use crate::instance::ClientInstance;
use crate::transaction::TransactionListener;
use protocol::body::HeartbeatData;
use protocol::header::UnregisterClientRequest;
use std::net::SocketAddr;
use std::sync::Arc;
use tracing::debug;

impl ClientInstance {
    pub(crate) fn register_producer(&self, group: &str) -> Result<(), StartError> {
        self.check_alive()?;
        if self.state().producers.insert(group.to_owned()) {
            Ok(())
        } else {
            Err(StartError::GroupInUse { group: group.into() })
        }
    }

    /// Brokers may ask for the transactions of the group from now on.
    pub(crate) fn listen_to_transactions(&self, group: &str, listener: Arc<dyn TransactionListener>) {
        self.state().transactions.insert(group.to_owned(), listener);
    }

    pub(crate) fn transaction_listener(&self, group: &str) -> Option<Arc<dyn TransactionListener>> {
        self.state().transactions.get(group).cloned()
    }

    pub(crate) fn register_consumer(&self, group: &str, core: &Arc<Core>) -> Result<(), StartError> {
        self.check_alive()?;
        let mut state = self.state();
        if state.consumers.get(group).is_some_and(|core| core.strong_count() > 0) {
            return Err(StartError::GroupInUse { group: group.into() });
        }
        state.consumers.insert(group.to_owned(), Arc::downgrade(core));
        Ok(())
    }

    fn check_alive(&self) -> Result<(), StartError> {
        if self.ended().is_cancelled() { Err(StartError::ShutDown) } else { Ok(()) }
    }

    /// Forgets a producer without telling anyone: its owner was dropped. Brokers see it in the next heartbeat.
    pub(crate) fn forget_producer(&self, group: &str) {
        let mut state = self.state();
        state.producers.remove(group);
        state.transactions.remove(group);
    }

    /// Forgets a consumer without telling anyone.
    pub(crate) fn forget_consumer(&self, core: &Arc<Core>) {
        let (mut state, group) = (self.state(), &core.config.group);
        if state.consumers.get(group).is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(core))) {
            state.consumers.remove(group);
        }
    }

    /// Leaves a producer group and tells every broker.
    pub(crate) async fn unregister_producer(&self, group: &str) {
        self.forget_producer(group);
        self.unregister(Some(group.to_owned()), None).await;
    }

    /// Leaves a consumer group and tells every broker.
    pub(crate) async fn unregister_consumer(&self, core: &Arc<Core>) {
        self.forget_consumer(core);
        self.unregister(None, Some(core.config.group.clone())).await;
    }

    async fn unregister(&self, producer_group: Option<String>, consumer_group: Option<String>) {
        let header = UnregisterClientRequest { client_id: self.client_id().to_owned(), producer_group, consumer_group };
        let addrs = self.routes(|routes| routes.all_addrs(false));
        let header = &header;
        let calls = addrs.iter().map(|addr| async move {
            if let Err(error) = self.call_unregister(addr, header).await {
                debug!(%addr, %error, "not unregistered");
            }
        });
        concurrently::all(calls).await;
    }

    /// Tells every broker that this client lives; masters only, if it has no consumer. Brokers are told at the same time, so that a
    /// dead one does not keep the others waiting.
    pub(crate) async fn heartbeat_all(&self) {
        let (data, addrs) = {
            let state = self.state();
            let data = state.heartbeat(&self.0.client_id);
            let addrs = state.routes.all_addrs(data.consumer_data_set.is_empty());
            (data, addrs)
        };
        concurrently::all(addrs.iter().map(|addr| self.beat(addr, &data))).await;
    }

    /// Tells one broker. Returns whether it has heard.
    async fn heartbeat_to(&self, addr: &str) -> bool {
        let data = self.state().heartbeat(&self.0.client_id);
        self.beat(addr, &data).await
    }

    async fn beat(&self, addr: &str, data: &HeartbeatData) -> bool {
        let _beating = Beating::new(self, addr);
        match self.call_heartbeat(addr, data).await {
            Ok(()) => true,
            Err(error) => {
                debug!(%addr, %error, "heartbeat failed");
                false
            }
        }
    }

    /// A connection stands to `peer`. If that is a broker, it may have been restarted and know nothing of this client.
    pub(super) fn connected(&self, peer: SocketAddr) {
        let state = self.state();
        let is_peer = |addr: &String| addr.parse::<SocketAddr>().is_ok_and(|addr| addr == peer);
        let addr = state.routes.all_addrs(false).into_iter().find(is_peer);
        let Some(addr) = addr.filter(|addr| !state.beating.contains(addr)) else { return };
        drop(state);
        let (weak, ended) = (Arc::downgrade(&self.0), self.ended().clone());
        self.0.tasks.spawn(async move {
            let Some(client) = weak.upgrade().map(ClientInstance) else { return };
            rt::select! {
                () = ended.cancelled() => {}
                heard = client.heartbeat_to(&addr) => if heard { client.wake_consumers() }
            }
        });
    }

    pub(super) fn wake_consumers(&self) {
        let consumers = self.state().live_consumers();
        for core in consumers {
            core.wake_rebalance();
        }
    }

    pub(super) fn consumer(&self, group: &str) -> Option<Arc<Core>> {
        self.state().consumers.get(group)?.upgrade()
    }
}

/// Marks a heartbeat as being under way, for as long as it lives.
struct Beating<'a> {
    client: &'a ClientInstance,
    addr: &'a str,
}

impl<'a> Beating<'a> {
    fn new(client: &'a ClientInstance, addr: &'a str) -> Beating<'a> {
        client.state().beating.insert(addr.to_owned());
        Beating { client, addr }
    }
}

impl Drop for Beating<'_> {
    fn drop(&mut self) {
        self.client.state().beating.remove(self.addr);
    }
}
