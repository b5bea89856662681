//! What a master knows of its slaves, kept for its next life: one that is started while a slave is away must not remove what that slave
//! still needs.
use crate::broker::{Broker, Files};
use crate::error::ServerError;
use protocol::PhysicalOffset;
use replication::{HaMaster, KnownSlave};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// A file that changes only because time passes is written no more often than that.
const AWAY_STEP_MS: u128 = 60_000;

/// `config/hotfireSlaves.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Text {
    /// By what each slave is counted by.
    slaves: BTreeMap<String, SlaveText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlaveText {
    log_end: i64,
    away_ms: u64,
}

/// What an earlier life of the master saved.
///
/// # Errors
/// The file cannot be read.
pub(crate) async fn load(files: &Files) -> Result<BTreeMap<String, KnownSlave>, ServerError> {
    let text: Text = files.slaves.load().await?.unwrap_or_default();
    let known = |slave: SlaveText| KnownSlave {
        acked: PhysicalOffset(slave.log_end),
        away: Duration::from_millis(slave.away_ms),
    };
    Ok(text.slaves.into_iter().map(|(id, slave)| (id, known(slave))).collect())
}

/// What is on the disk, as far as this life of the master has written it.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    text: Text,
    changes: u64,
}

impl Saved {
    /// Whether the master knows a slave that its next life would not.
    pub fn lacks_a_slave(&self, broker: &Broker) -> bool {
        let known = broker.replicas.master().map(HaMaster::known_slaves).unwrap_or_default();
        known.keys().any(|id| !self.text.slaves.contains_key(id))
    }

    /// Makes what the master knows now survive its end.
    ///
    /// # Errors
    /// The disk failed.
    pub async fn renew(&mut self, broker: &Broker) -> io::Result<()> {
        let Some(master) = broker.replicas.master() else { return Ok(()) };
        let slaves = master.known_slaves().into_iter().map(|(id, slave)| (id, in_text(slave)));
        let text = Text { slaves: slaves.collect() };
        if text == self.text {
            return Ok(());
        }
        broker.files.slaves.save(|| (self.changes + 1, &text)).await?;
        self.changes += 1;
        self.text = text;
        Ok(())
    }
}

fn in_text(slave: KnownSlave) -> SlaveText {
    let away_ms = slave.away.as_millis() / AWAY_STEP_MS * AWAY_STEP_MS;
    SlaveText { log_end: slave.acked.get(), away_ms: u64::try_from(away_ms).unwrap_or(u64::MAX) }
}
