//! What others are told of the timer: how far it has come (GET_TIMER_CHECK_POINT), and how much waits by topic (GET_TIMER_METRICS,
//! `config/timermetrics`). The figures are for people: a crash may leave them off by what changed since the last save.
use crate::broker::Broker;
use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::slave_sync::speaks_of_the_log;
use protocol::QueueOffset;
use protocol::body::{DataVersion, TimerMetric, TimerMetricsSerializeWrapper};
use protocol::frame::Command;
use rt::time::unix_ms;
use std::collections::BTreeMap;
use store::TimerCheckpoint;

/// The shared part of the timer.
#[derive(Debug, Default)]
pub(crate) struct TimerState {
    /// What was made sure of last; none before the first timer message.
    pub reached: Option<TimerCheckpoint>,
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
    Ok(speaks_of_the_log(broker, call.ok().with_body(reached.unwrap_or(first).encode().to_vec())))
}

/// GET_TIMER_METRICS.
pub(crate) fn metrics(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    broker.config.store.timer.ok_or(Refusal::NoTimer)?;
    let text = broker.timer().text();
    Ok(call.json(&text))
}
