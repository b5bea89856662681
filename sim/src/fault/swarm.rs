//! Draws schedules of faults, swarm style: each run switches a random subset of kinds on, so that runs differ in character and no
//! kind hides another for ever.

mod damage;
mod network;

use super::clock_drift::ClockDrift;
use super::clock_freeze::ClockFreeze;
use super::clock_step::ClockStep;
use super::cloned_disk::ClonedDisk;
use super::crash::Crash;
use super::disk_error::{DiskFails, DiskOperation};
use super::disk_full::DiskFull;
use super::isolate::Isolate;
use super::latency::Latency;
use super::loss::Loss;
use super::one_way::OneWay;
use super::out_of_memory::OutOfMemory;
use super::partition::Partition;
use super::pause::Pause;
use super::power_loss::PowerLoss;
use super::reconfigure::{Ending, Reconfigure};
use super::rolling_restart::RollingRestart;
use super::slow_cpu::SlowCpu;
use super::slow_disk::SlowDisk;
use super::stalled_disk::StalledDisk;
use super::stop::Stop;
use super::suspend::Suspend;
use super::wiped_disk::WipedDisk;
use super::{Fault, Kind, Moment};
use proptest::collection::vec;
use proptest::prop_oneof;
use proptest::sample::{select, subsequence};
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use std::ops::Range;
use std::time::Duration;

/// From what schedules are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swarm {
    /// Kinds that may be switched on, by name ([`Kind::NAMES`], except `crash_point`, which needs a number that only the scenario
    /// knows, and `reconfigure`, for which see [`reconfigurations`](Self::reconfigurations)), or `open_error`, `read_error`, `write_error`: kinds of `disk_error`.
    pub kinds: Vec<&'static str>,
    /// Nodes whose process, disk or clock may fail.
    pub victims: Vec<String>,
    /// Nodes between which the network may fail: the victims, and perhaps clients.
    pub network: Vec<String>,
    /// When faults begin.
    pub starts: Range<Duration>,
    /// How long they last.
    pub lasts: Range<Duration>,
    /// How many a run has at most.
    pub faults_max: usize,
}

impl Swarm {
    /// Schedules of 0 to `faults_max` faults in the order of their starts.
    ///
    /// # Panics
    /// If there is no victim, fewer than two nodes for a network fault, or a kind that cannot be drawn.
    pub fn strategy(&self) -> BoxedStrategy<Vec<Fault>> {
        assert!(!self.victims.is_empty(), "faults need a victim");
        for kind in &self.kinds {
            assert!(self.kind(kind).is_some(), "no fault of kind {kind:?} can be drawn from {self:?}");
        }
        let swarm = self.clone();
        subsequence(self.kinds.clone(), 0..=self.kinds.len()).prop_flat_map(move |kinds| swarm.schedule(kinds)).boxed()
    }

    /// Restarts of one of the victims with one of the `configurations`, which each of them must have; by a crash or by a stop. A
    /// scenario adds them to its schedule.
    ///
    /// # Panics
    /// If there is no victim or no configuration.
    pub fn reconfigurations(&self, configurations: &[&str]) -> BoxedStrategy<Fault> {
        assert!(!self.victims.is_empty(), "faults need a victim");
        assert!(!configurations.is_empty(), "a program is started with some configuration");
        let configurations: Vec<String> = configurations.iter().map(|name| (*name).to_owned()).collect();
        let stop = milliseconds(100..10_000).prop_map(|grace| Ending::Stop { grace });
        let by = prop_oneof![Just(Ending::Crash), stop];
        (select(self.victims.clone()), select(configurations), by, times(&self.starts), times(&self.lasts))
            .prop_map(|(node, configuration, by, start, lasts)| {
                let fault = Kind::Reconfigure(Reconfigure { node, configuration, by });
                Fault { fault, start: Moment::At(start), lasts }
            })
            .boxed()
    }

    fn schedule(&self, kinds: Vec<&'static str>) -> BoxedStrategy<Vec<Fault>> {
        if kinds.is_empty() {
            return Just(Vec::new()).boxed();
        }
        let swarm = self.clone();
        let fault = select(kinds).prop_flat_map(move |kind| swarm.fault(kind));
        let sorted = |mut faults: Vec<Fault>| {
            faults.sort_by_key(|fault| match fault.start {
                Moment::At(at) => at,
                Moment::After { then, .. } => then,
            });
            faults
        };
        vec(fault, 0..=self.faults_max).prop_map(sorted).boxed()
    }

    fn fault(&self, kind: &'static str) -> BoxedStrategy<Fault> {
        let fault = self.kind(kind).expect("the kinds were checked");
        (fault, times(&self.starts), times(&self.lasts))
            .prop_map(|(fault, start, lasts)| Fault { fault, start: Moment::At(start), lasts })
            .boxed()
    }

    fn kind(&self, kind: &str) -> Option<BoxedStrategy<Kind>> {
        let victim = select(self.victims.clone());
        Some(match kind {
            "crash" => victim.prop_map(|node| Kind::Crash(Crash { node })).boxed(),
            "power_loss" => victim.prop_map(|node| Kind::PowerLoss(PowerLoss { node })).boxed(),
            "stop" => {
                (victim, milliseconds(100..10_000)).prop_map(|(node, grace)| Kind::Stop(Stop { node, grace })).boxed()
            }
            "pause" => victim.prop_map(|node| Kind::Pause(Pause { node })).boxed(),
            "slow_cpu" => {
                let poll = (1..1_000_u64).prop_map(Duration::from_micros);
                (victim, poll).prop_map(|(node, poll)| Kind::SlowCpu(SlowCpu { node, poll })).boxed()
            }
            "disk_full" => victim.prop_map(|node| Kind::DiskFull(DiskFull { node })).boxed(),
            "disk_error" => {
                let fails = |node| DiskFails { node, operation: DiskOperation::Sync, path_contains: None, nth: None };
                victim.prop_map(move |node| Kind::DiskFails(fails(node))).boxed()
            }
            "slow_disk" => {
                let both = (victim, milliseconds(1..50), milliseconds(50..2_000));
                both.prop_map(|(node, min, max)| Kind::SlowDisk(SlowDisk { node, min, max })).boxed()
            }
            "stalled_disk" => victim.prop_map(|node| Kind::StalledDisk(StalledDisk { node })).boxed(),
            "clock_step" => {
                let both = (victim, milliseconds(1..600_000), proptest::bool::ANY);
                both.prop_map(|(node, by, back)| Kind::ClockStep(ClockStep { node, by, back })).boxed()
            }
            "clock_drift" => {
                (victim, -50_000..50_000_i64).prop_map(|(node, ppm)| Kind::ClockDrift(ClockDrift { node, ppm })).boxed()
            }
            "clock_freeze" => victim.prop_map(|node| Kind::ClockFreeze(ClockFreeze { node })).boxed(),
            "suspend" => victim.prop_map(|node| Kind::Suspend(Suspend { node })).boxed(),
            _ => {
                return self
                    .process_kind(kind)
                    .or_else(|| damage::kind(kind, &self.victims))
                    .or_else(|| self.network_kind(kind))
                    .or_else(|| network::kind(kind, &self.network));
            }
        })
    }

    /// Faults of whole machines, which few programs promise to survive in any number.
    fn process_kind(&self, kind: &str) -> Option<BoxedStrategy<Kind>> {
        let victim = select(self.victims.clone());
        Some(match kind {
            "out_of_memory" => {
                let both = (victim, milliseconds(1..2_000));
                both.prop_map(|(node, survives)| Kind::OutOfMemory(OutOfMemory { node, survives })).boxed()
            }
            "wiped_disk" => victim.prop_map(|node| Kind::WipedDisk(WipedDisk { node })).boxed(),
            "cloned_disk" if self.victims.len() > 1 => subsequence(self.victims.clone(), 2)
                .prop_shuffle()
                .prop_map(|pair| Kind::ClonedDisk(ClonedDisk { node: pair[0].clone(), from: pair[1].clone() }))
                .boxed(),
            "rolling_restart" => {
                let both = (Just(self.victims.clone()).prop_shuffle(), milliseconds(100..10_000));
                both.prop_map(|(nodes, grace)| Kind::RollingRestart(RollingRestart { nodes, grace })).boxed()
            }
            _ => return None,
        })
    }

    fn network_kind(&self, kind: &str) -> Option<BoxedStrategy<Kind>> {
        if self.network.len() < 2 {
            return None;
        }
        let pair = subsequence(self.network.clone(), 2).prop_shuffle().prop_map(|mut pair| {
            let second = pair.pop().expect("two were drawn");
            (pair.pop().expect("two were drawn"), second)
        });
        Some(match kind {
            "partition" => self.groups().prop_map(|(left, right)| Kind::Partition(Partition { left, right })).boxed(),
            "one_way" => pair.prop_map(|(from, to)| Kind::OneWay(OneWay { from, to })).boxed(),
            "isolate" => select(self.network.clone()).prop_map(|node| Kind::Isolate(Isolate { node })).boxed(),
            "loss" => {
                (pair, 1..=60_u8).prop_map(|((left, right), percent)| Kind::Loss(Loss { left, right, percent })).boxed()
            }
            "latency" => {
                let both = (pair, milliseconds(1..100), milliseconds(100..3_000));
                both.prop_map(|((left, right), min, max)| Kind::Latency(Latency { left, right, min, max })).boxed()
            }
            _ => return None,
        })
    }

    /// Two groups that are not empty; nodes in neither hear both, so partial partitions are drawn too.
    fn groups(&self) -> BoxedStrategy<(Vec<String>, Vec<String>)> {
        let count = self.network.len();
        let chosen = subsequence(self.network.clone(), 2..=count).prop_shuffle();
        (chosen, 1..count)
            .prop_map(|(mut left, cut)| {
                let right = left.split_off(cut.min(left.len() - 1));
                (left, right)
            })
            .boxed()
    }
}

fn times(range: &Range<Duration>) -> impl Strategy<Value = Duration> + use<> {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    (milliseconds(range.start)..milliseconds(range.end).max(milliseconds(range.start) + 1))
        .prop_map(Duration::from_millis)
}

fn milliseconds(range: Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::reconfigure::{Ending, Reconfigure};
    use super::Swarm;
    use crate::scenario::draw;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn swarm() -> Swarm {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Swarm {
            kinds: Kind::NAMES.iter().copied().filter(|kind| !["crash_point", "reconfigure"].contains(kind)).collect(),
            victims: names(&["a", "b"]),
            network: names(&["a", "b", "c"]),
            starts: Duration::from_secs(1)..Duration::from_secs(9),
            lasts: Duration::from_millis(10)..Duration::from_secs(3),
            faults_max: 6,
        }
    }

    #[test]
    fn every_kind_is_drawn_within_its_bounds_and_survives_a_file() {
        let strategy = swarm().strategy();
        let mut kinds = BTreeSet::new();
        for seed in 0..400 {
            let faults = draw(&strategy, "swarm", seed);
            assert!(faults.len() <= 6);
            for fault in &faults {
                kinds.insert(fault.fault.name());
                assert!(fault.lasts < Duration::from_secs(3), "{fault}");
                let nodes = fault.fault.nodes();
                assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len(), "{fault}");
            }
            let text = serde_json::to_string(&faults).expect("plain data");
            let back: Vec<super::Fault> = serde_json::from_str(&text).expect("just written");
            assert_eq!(back, faults);
        }
        assert_eq!(kinds.len(), swarm().kinds.len(), "{kinds:?}");
    }

    #[test]
    fn reconfigurations_are_drawn_by_both_endings_and_survive_a_file() {
        let strategy = swarm().reconfigurations(&["small", "large"]);
        let mut drawn = BTreeSet::new();
        for seed in 0..100 {
            let fault = draw(&strategy, "reconfigurations", seed);
            let text = serde_json::to_string(&fault).expect("plain data");
            assert_eq!(serde_json::from_str::<super::Fault>(&text).expect("just written"), fault);
            let Kind::Reconfigure(Reconfigure { node, configuration, by }) = fault.fault else { panic!("{text}") };
            drawn.insert((node, configuration, by == Ending::Crash));
        }
        assert_eq!(drawn.len(), 8, "two nodes, two configurations, two endings: {drawn:?}");
    }

    #[test]
    #[should_panic(expected = "crash_point")]
    fn a_kind_that_cannot_be_drawn_is_refused() {
        let _ = Swarm { kinds: vec!["crash_point"], ..swarm() }.strategy();
    }
}
