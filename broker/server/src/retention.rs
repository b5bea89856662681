//! Removing old messages by the clock, and what holds them back.
use crate::broker::Broker;
use crate::known_slaves::Saved;
use crate::{delay, timer, transaction};
use protocol::PhysicalOffset;
use rt::time::{Instant, sleep, sleep_until};
use std::sync::Arc;
use std::time::Duration;
use store::{Cleaned, ReadError, Removal, Retainer};
use tracing::{info, warn};

/// Apache's: a broker that has just started has better things to do.
const FIRST_AFTER: Duration = Duration::from_secs(60);

/// How soon a slave that connects for the first time is known to the next life of its master.
const NEW_SLAVES_PERIOD: Duration = Duration::from_secs(1);

/// Removes what has to go, at intervals and when an operator asks, until the broker ends.
pub(crate) async fn run(broker: Arc<Broker>) {
    let mut next = Instant::now() + FIRST_AFTER;
    let mut saved = Saved::default();
    loop {
        let is_time = rt::select! {
            () = broker.closing.cancelled() => return,
            () = broker.removal_asked.notified() => true,
            () = sleep_until(next) => true,
            () = sleep(NEW_SLAVES_PERIOD) => false,
        };
        if !is_time {
            if saved.lacks_a_slave(&broker)
                && let Err(error) = saved.renew(&broker).await
            {
                warn!(%error, "slaves not saved, tried again");
            }
            continue;
        }
        rt::select! {
            () = broker.closing.cancelled() => return,
            () = remove_expired(&broker, &mut saved) => {}
        }
        next = Instant::now() + broker.config.store.retention.interval;
    }
}

async fn remove_expired(broker: &Broker, saved: &mut Saved) {
    // What a master that has just started lost is still to be compared with what its slaves have.
    if !broker.is_slave() && !broker.is_whole() {
        return;
    }
    // First: the next life must know whom the log is kept for.
    if let Err(error) = saved.renew(broker).await {
        warn!(%error, "slaves not saved, so nothing is removed");
        return;
    }
    match broker.store.remove_expired(&Holders(broker)).await {
        Ok(cleaned) if cleaned == Cleaned::default() => {}
        Ok(Cleaned { segments, queue_files }) => info!(segments, queue_files, "old messages removed"),
        Err(error) => warn!(%error, "old messages not removed"),
    }
}

/// Those who still need the log. Slaves hold back what has expired; a disk that fills up goes over them, as in Apache's broker. Delayed
/// messages hold it back until the disk is full: then nothing can be stored, so none of them could ever be delivered.
struct Holders<'a>(&'a Broker);

impl Retainer for Holders<'_> {
    async fn keep_from(&self, removal: Removal) -> Result<PhysicalOffset, ReadError> {
        let Holders(broker) = self;
        let slaves = if removal == Removal::Expired { broker.replicas.needed_from() } else { None };
        let waiting = match removal {
            Removal::FullDisk => [None, None, None],
            _ => [
                delay::undelivered_from(broker).await?,
                timer::waiting_from(broker).await?,
                transaction::open_from(broker),
            ],
        };
        Ok(slaves.into_iter().chain(waiting.into_iter().flatten()).min().unwrap_or(PhysicalOffset(i64::MAX)))
    }
}
