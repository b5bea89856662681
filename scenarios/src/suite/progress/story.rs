//! What the scenarios of this suite have in common: one master with a slave, and the times at which things happen to them.

use crate::draw;
use crate::kinds::Kinds;
use crate::plan::{Clients, Cluster, Flush, Model, Network, Operation, Plan, Replication, Schedule};
use crate::suite::telling::{between, join};
use proptest::array::uniform3;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use sim::fault::crash::Crash;
use sim::fault::pause::Pause;
use sim::fault::power_loss::PowerLoss;
use sim::fault::{Fault, Kind};
use std::time::Duration;

/// The only master.
pub const MASTER: &str = "broker-a";
/// Its slave.
pub const SLAVE: &str = "broker-a-slave-1";
/// `persistConsumerOffsetInterval` of a consumer whose progress travels by pull flags only.
pub const NEVER: Duration = Duration::from_secs(3600);
/// RocketMQ's `persistConsumerOffsetInterval`.
pub const USUAL: Duration = Duration::from_secs(5);

/// The drawn part of a run.
#[derive(Debug, Clone, Copy)]
pub struct Story {
    /// Picks, latencies.
    pub schedule: Schedule,
    /// Links.
    pub network: Network,
    /// Flush mode.
    pub flush: Flush,
    /// Replication mode.
    pub replication: Replication,
    /// Size of a log file.
    pub segment_kib: u32,
    /// Whether a returning master asks its slaves (`hotfireRecoverFromSlave`), where the claim does not depend on it.
    pub recover_from_slave: bool,
    /// Whether the master's machine loses power; otherwise its process ends.
    pub power: bool,
    /// When the master ends.
    pub master_ends: Duration,
    /// Which of two courses the scenario takes.
    pub early: bool,
    /// Small shifts of what happens later.
    pub shifts: [Duration; 3],
}

/// Any story.
pub fn strategy() -> impl Strategy<Value = Story> {
    let flush = prop_oneof![Just(Flush::Sync), Just(Flush::Async)];
    let replication = prop_oneof![Just(Replication::Async), Just(Replication::Sync { in_sync_replicas: 2 })];
    let ms = |range: std::ops::Range<u64>| range.prop_map(Duration::from_millis);
    (
        (draw::schedule(), draw::network(), flush, replication),
        (prop_oneof![Just(64_u32), Just(256)], any::<bool>(), any::<bool>(), any::<bool>()),
        (ms(20_000..32_000), uniform3(ms(0..4_000))),
    )
        .prop_map(
            |(
                (schedule, network, flush, replication),
                (segment_kib, recover_from_slave, power, early),
                (master_ends, shifts),
            )| Story {
                schedule,
                network,
                flush,
                replication,
                segment_kib,
                recover_from_slave,
                power,
                master_ends,
                early,
                shifts,
            },
        )
}

impl Story {
    /// How long after the master's end every reader has found the slave: a name server drops a broker with its connection, or, if
    /// the machine went silent, after `brokerChannelExpiredTime` (120 s, looked at every 5 s); then a client's route refresh (30 s);
    /// and by then its pull may hang at the silent machine (30 s).
    pub fn readers_move(&self) -> Duration {
        let dropped = if self.power { 125 } else { 1 };
        let pull = if self.power { 30 } else { 1 };
        Duration::from_secs(dropped + 30 + pull + 4)
    }

    /// When each reader has found the slave.
    pub fn readers_moved(&self) -> Duration {
        self.master_ends + self.readers_move()
    }

    /// The servers.
    pub fn cluster(&self) -> Cluster {
        Cluster {
            name_servers: 1,
            slaves: vec![1],
            flush: self.flush,
            replication: self.replication,
            queues: 4,
            segment_kib: self.segment_kib,
            recover_from_slave: self.recover_from_slave,
            slave_read: true,
            retention: None,
        }
    }

    /// The master's end; it returns at `until`.
    pub fn master_away(&self, until: Duration) -> Fault {
        let kind = if self.power {
            Kind::PowerLoss(PowerLoss { node: MASTER.into() })
        } else {
            Kind::Crash(Crash { node: MASTER.into() })
        };
        between(kind, self.master_ends, until)
    }

    /// A plan of this story with `consumers` members of one group; all else is empty.
    pub fn plan(&self, consumers: usize, persist_interval: Duration, duration: Duration) -> Plan {
        let mut clients: Clients = draw::clients(1, consumers);
        for consumer in &mut clients.consumers {
            consumer.persist_interval = persist_interval;
        }
        Plan {
            rare_choices: false,
            schedule: self.schedule,
            cluster: self.cluster(),
            network: self.network,
            clients,
            operations: Vec::new(),
            faults: Vec::new(),
            duration,
        }
    }

    /// The plan in which the only consumer is some seconds behind when the master ends, gets on from the slave, and the master
    /// returns at `until`. Producers send before the end and after the return.
    pub fn with_backlog(&self, persist_interval: Duration, until: Duration, duration: Duration) -> Plan {
        let mut plan = self.plan(1, persist_interval, duration);
        plan.operations = vec![
            join("consumer-1", Duration::ZERO),
            sends(Duration::ZERO, self.master_ends),
            sends(until + Duration::from_secs(5), duration),
        ];
        plan.faults = vec![self.reader_behind("consumer-1"), self.master_away(until)];
        plan
    }

    /// Holds a consumer up from some seconds before the master's end until shortly after it.
    pub fn reader_behind(&self, consumer: &str) -> Fault {
        let from = self.master_ends - Duration::from_secs(4) - self.shifts[0] / 2;
        paused(consumer, from, self.master_ends + Duration::from_secs(2))
    }
}

/// A consumer that does nothing in `from..until`.
pub fn paused(consumer: &str, from: Duration, until: Duration) -> Fault {
    between(Kind::Pause(Pause { node: consumer.into() }), from, until)
}

/// Twenty messages a second in `from..until`.
pub fn sends(from: Duration, until: Duration) -> Operation {
    let every = Duration::from_millis(50);
    let count = until.saturating_sub(from).as_millis() / every.as_millis();
    Operation::Send {
        producer: "producer-1".into(),
        at: from,
        count: u32::try_from(count).expect("a run is short"),
        every,
        body_bytes: 100,
        kinds: Kinds::default(),
    }
}

/// A group in which each member gets each message and keeps its progress in a file.
pub fn broadcasting(plan: &mut Plan) {
    for consumer in &mut plan.clients.consumers {
        consumer.model = Model::Broadcasting;
    }
}
