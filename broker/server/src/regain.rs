//! A master's start, as far as its slaves have a say in it: what they hold and it lost comes back before anybody builds on the rest.
//!
//! With asynchronous flush a power loss takes a suffix of the log, and the slaves may have it. As soon as the master appends, or lets a
//! slave in that cuts its log to the master's, that suffix is gone. So until it [is whole](Broker::is_whole) a master
//!
//! 1. holds its ports, turns slaves away at the HA port and refuses LOG_DIGEST;
//! 2. asks the name servers for its slaves (a slave registers by itself and answers by itself: neither waits for its master), and those
//!    for their logs, takes over the longest continuation of its own, then lowers and merges the committed offsets;
//! 3. lets requests wait, as long as an ordinary start takes; if that is over it serves reads as a slave does (it corrects no offset
//!    that may be right in a moment), refuses appends with SERVICE_NOT_AVAILABLE before anything is stored, and registers with the
//!    name servers: consumers may come, producers go on to another broker at once, and slaves learn where their master is.
//!
//! When it is whole it appends and opens the HA port; slaves that were turned away try again by themselves.
//!
//! Whether it may give up is [`must_ask`]: if an acknowledgement promised a copy at slaves and the log may have lost its end, it asks
//! until it has heard so many that no copy can be elsewhere. Nothing is lost by that: without a slave it could not acknowledge anyway.
use crate::broker::Broker;
use crate::config::{BrokerRole, ClusterConfig, ServerConfig};
use crate::slave_sync;
use protocol::PhysicalOffset;
use replication::{Regain, slaves_to_hear};
use rt::time::{Duration, sleep};
use std::sync::Arc;
use store::RecoveryReport;
use tracing::{info, warn};

/// Pause between two rounds of questions.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a start waits for a master that does not have to ask, in time-outs: for the slaves' logs, their progress, and a fetch.
const PATIENCE: u32 = 4;

/// Whether a master must hear from its slaves before it appends anything.
///
/// With synchronous flush nothing that a slave can have is lost, unless the operator let recovery drop damaged records. Without name
/// servers there is nobody to tell the slaves.
pub(crate) fn must_ask(cluster: &ClusterConfig, config: &ServerConfig, report: &RecoveryReport) -> bool {
    let promised = config.role == BrokerRole::SyncMaster && cluster.in_sync_replicas >= 2;
    let lost_end = !report.is_clean && !config.flush_sync;
    let lost_more = report.dropped.as_ref().is_some_and(|dropped| dropped.is_synced_part);
    cluster.recover_from_slave && promised && (lost_end || lost_more) && !config.name_servers.is_empty()
}

/// How long the start waits for the master to be whole.
pub(crate) fn patience(broker: &Broker, must_ask: bool) -> Duration {
    broker.config.timing.recover_timeout * if must_ask { 1 } else { PATIENCE }
}

/// Makes the master whole; ends early only with the broker.
pub(crate) async fn run(broker: Arc<Broker>, must_ask: bool) {
    rt::select! {
        () = broker.closing.cancelled() => {}
        () = become_whole(&broker, must_ask) => {}
    }
}

async fn become_whole(broker: &Broker, must_ask: bool) {
    let heard = if broker.cluster.recover_from_slave { regain_log(broker, must_ask).await } else { Vec::new() };
    slave_sync::lower_to_ends(broker);
    if !heard.is_empty() {
        slave_sync::regain(broker, &heard).await;
    }
    broker.set_whole();
}

/// Takes over what slaves have of the log; returns those that were heard.
async fn regain_log(broker: &Broker, must_ask: bool) -> Vec<String> {
    let limit = broker.config.timing.recover_timeout / 2;
    let regain = Regain {
        store: Arc::clone(&broker.store),
        client: broker.client.clone(),
        tail_bytes: broker.config.as_slave.tail_bytes,
        question_max: limit,
        chunk_max: broker.config.timing.recover_timeout,
    };
    let report = broker.store.recovery_report();
    if report.is_clean && report.end == PhysicalOffset::ZERO {
        // A new store, or a new disk: nothing shows that what slaves have belongs to it.
        return slave_sync::slaves(broker, limit).await.unwrap_or_default();
    }
    let copies = broker.cluster.in_sync_replicas.saturating_sub(1);
    loop {
        let slaves = slave_sync::slaves(broker, limit).await.unwrap_or_default();
        let needed = if must_ask { slaves_to_hear(slaves.len(), copies) } else { 0 };
        let round = regain.round(&slaves, needed).await;
        if round.is_whole || !must_ask {
            info!(known = slaves.len(), heard = round.heard.len(), bytes = round.bytes, "slaves asked for the log");
            return round.heard;
        }
        rt::probe!("server.regain.waits");
        warn!(known = slaves.len(), heard = round.heard.len(), needed, "slaves not heard, no message is taken yet");
        sleep(RETRY_PAUSE).await;
    }
}
