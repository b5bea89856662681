//! What others are told of the timer: how far it has come (GET_TIMER_CHECK_POINT), and how much waits by topic (GET_TIMER_METRICS,
//! `config/timermetrics`). The figures are for people: a crash may leave them off by what changed since the last save.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::refusal::Refusal;
use protocol::body::{DataVersion, TimerMetric, TimerMetricsSerializeWrapper};
use protocol::frame::Command;
use protocol::{PhysicalOffset, QueueOffset};
use rt::time::unix_ms;
use std::collections::BTreeMap;
use store::TimerCheckpoint;

/// Our own field of the answer to GET_TIMER_CHECK_POINT: the end of the master's log when it had come so far. A slave takes the checkpoint over
/// when its own log has that end: else messages would count as delivered that only the master has.
pub(crate) const LOG_END_FIELD: &str = "hotfireLogEnd";

/// A checkpoint, and the end of the log that it speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub checkpoint: TimerCheckpoint,
    /// Unknown of a master that does not tell.
    pub log_end: Option<PhysicalOffset>,
}

/// The shared part of the timer.
#[derive(Debug, Default)]
pub(crate) struct TimerState {
    /// What was made sure of last; none before the first timer message.
    pub reached: Option<Reached>,
    /// A slave: what its master has told and its own log lacks.
    pub coming: Option<Reached>,
    /// A master: of the timer topic's messages all before this one are delivered, and none waits.
    pub idle_at: Option<QueueOffset>,
    metrics: BTreeMap<String, TimerMetric>,
    version: DataVersion,
    changes: u64,
}

impl TimerState {
    /// One more message of the topic waits, or one less.
    pub fn count(&mut self, topic: &str, change: i64) {
        let now_ms = unix_ms();
        let metric = self.metrics.entry(topic.to_owned()).or_insert(TimerMetric { count: 0, time_stamp: 0 });
        metric.count += change;
        metric.time_stamp = now_ms;
        self.version.advance(0, now_ms);
        self.changes += 1;
    }

    /// Nothing waits: the wheel is filled again.
    pub fn forget(&mut self) {
        self.metrics.values_mut().for_each(|metric| metric.count = 0);
        self.changes += 1;
    }

    /// The figures of a file, or of the master.
    pub fn take(&mut self, text: TimerMetricsSerializeWrapper) {
        self.metrics = text.timing_count;
        self.version = text.data_version.unwrap_or_default();
    }

    /// A number that differs whenever the figures differ.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub fn text(&self) -> TimerMetricsSerializeWrapper {
        TimerMetricsSerializeWrapper { data_version: Some(self.version), timing_count: self.metrics.clone() }
    }
}

/// GET_TIMER_CHECK_POINT. Before the first timer message a master has delivered all that was due; a slave knows nothing of it.
pub(crate) fn checkpoint(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let config = broker.config.store.timer.ok_or(Refusal::NoTimer)?;
    let reached = broker.timer().reached;
    let read_ms = if broker.is_slave() { 0 } else { config.floor_ms(unix_ms()) };
    let first = TimerCheckpoint { read_ms, ..TimerCheckpoint::default() };
    let checkpoint = reached.map_or(first, |reached| reached.checkpoint);
    let answer = call.ok().with_body(checkpoint.encode().to_vec());
    Ok(match reached.and_then(|reached| reached.log_end) {
        Some(end) => answer.with_ext(LOG_END_FIELD, end.to_string()),
        None => answer,
    })
}

/// GET_TIMER_METRICS.
pub(crate) fn metrics(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    broker.config.store.timer.ok_or(Refusal::NoTimer)?;
    let text = broker.timer().text();
    Ok(call.json(&text))
}
