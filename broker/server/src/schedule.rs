//! Everything a broker does by the clock, in one place. Each task ends with the broker.
use crate::broker::Broker;
use crate::consumers::Peer;
use crate::{delay, registration, retention, slave_sync, timer, transaction};
use rt::task::TaskGroup;
use rt::time::sleep;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

/// How late periodic work may begin on a busy machine, in simulation.
const LATE: Duration = Duration::from_millis(200);

/// Starts all periodic work as tasks of `tasks`.
pub(crate) fn start(broker: &Arc<Broker>, tasks: &TaskGroup, registered: bool) {
    let timing = &broker.config.timing;
    tasks.spawn(registration::run(Arc::clone(broker), registered));
    every(broker, tasks, timing.offset_persist_period, |broker| async move {
        broker.save_offsets().await;
        // A save that failed when the table changed is made up for here.
        broker.save_topics().await;
        broker.save_groups().await;
        broker.save_filters().await;
    });
    every(broker, tasks, timing.client_scan_period, |broker| async move { expire_clients(&broker) });
    if broker.is_slave() {
        tasks.spawn(copy_from_master(Arc::clone(broker)));
        tasks.spawn(send_readers_back(Arc::clone(broker)));
    } else {
        every(broker, tasks, timing.delay_persist_period, |broker| async move {
            broker.save_delays().await;
            broker.save_timer_metrics().await;
        });
        delay::start(broker, tasks);
        if let Some(config) = broker.config.store.timer {
            tasks.spawn(timer::run(Arc::clone(broker), config));
        }
        tasks.spawn(transaction::check::run(Arc::clone(broker)));
    }
    tasks.spawn(retention::run(Arc::clone(broker)));
}

/// Runs `work` after each period; the period counts from the end of the work, so that slow work does not pile up.
fn every<F: Future<Output = ()> + Send>(
    broker: &Arc<Broker>,
    tasks: &TaskGroup,
    period: Duration,
    work: impl Fn(Arc<Broker>) -> F + Send + 'static,
) {
    let broker = Arc::clone(broker);
    tasks.spawn(async move {
        loop {
            rt::select! {
                () = broker.closing.cancelled() => return,
                () = sleep(if rt::buggify!("server.period_early") { period / 10 } else { period }) => {}
            }
            rt::dawdle!("server.period_late", LATE);
            work(Arc::clone(&broker)).await;
        }
    });
}

/// Copies the master's tables when a master is found, and each period from then on.
async fn copy_from_master(broker: Arc<Broker>) {
    let period = broker.config.timing.slave_sync_period;
    loop {
        let pause = if rt::buggify!("server.slave_sync_early") { period / 10 } else { period };
        rt::select! {
            () = broker.closing.cancelled() => return,
            () = broker.master_found.notified() => {}
            () = sleep(pause) => {}
        }
        rt::dawdle!("server.slave_sync_late", LATE);
        rt::select! {
            () = broker.closing.cancelled() => return,
            () = slave_sync::copy_all(&broker) => {}
        }
    }
}

/// Forgets clients without a heartbeat and closes their connections.
fn expire_clients(broker: &Broker) {
    let (now, expiry) = (broker.now(), broker.config.timing.client_expiry);
    let (changes, mut silent) = broker.consumers().expire(now, expiry);
    silent.extend(broker.producers().expire(now, expiry));
    broker.end_filters();
    for change in changes {
        broker.notify(change);
    }
    broker.locks().expire(now);
    close(broker, &silent);
}

fn close(broker: &Broker, silent: &BTreeSet<Peer>) {
    let connections: Vec<_> = broker
        .connections()
        .iter()
        .filter(|(peer, _)| silent.contains(peer))
        .map(|(_, connection)| connection.clone())
        .collect();
    for connection in connections {
        info!(peer = %connection.peer_addr(), "client expired");
        connection.close();
    }
}

/// Wakes a slave's held readers when its master is there again: they are sent back to it.
async fn send_readers_back(broker: Arc<Broker>) {
    let mut was_connected = false;
    loop {
        rt::select! {
            () = broker.closing.cancelled() => return,
            () = sleep(broker.config.timing.short_polling) => {}
        }
        let connected = broker.replicas.master_connected();
        if connected && !was_connected {
            let held = broker.held().drain();
            info!(held = held.len(), "master connected");
            held.into_iter().for_each(|wake| {
                // A pull that has just gone needs no waking.
                let _ = wake.send(());
            });
        }
        was_connected = connected;
    }
}
