//! Faults as data: what, from when, for how long.
//!
//! A fault is applied *and* healed by one file below, and comes back with the amount of its effect: a fault that nothing noticed
//! is told apart from one that the program survived. Overlapping faults compose: a node is up again when the last fault that
//! took it down is over; a link is open again when the last fault that blocked it is over; of several that set one thing (loss and
//! latency of a link, speed of a processor or a disk) the last one begun that is not over counts.
//!
//! The effect of a network fault is read from counters of the whole network, so two network faults of one kind at one time both
//! claim what either did.

pub mod bandwidth;
pub mod bit_rot;
pub mod clock_drift;
pub mod clock_freeze;
pub mod clock_step;
pub mod cloned_disk;
mod configuration;
pub mod crash;
pub mod crash_point;
mod damage;
pub mod disk_error;
pub mod disk_full;
pub mod duplicate;
pub mod firewall;
pub mod isolate;
pub mod latency;
pub mod latent_sector_error;
mod layers;
pub mod loss;
pub mod misdirected_write;
pub mod name_view;
pub mod one_way;
pub mod open_files;
pub mod out_of_memory;
pub mod partition;
pub mod pause;
pub mod power_loss;
pub mod quota;
pub mod reconfigure;
pub mod reorder;
pub mod rolling_restart;
pub mod signals;
pub mod slow_cpu;
pub mod slow_disk;
pub mod stage;
pub mod stale_read;
pub mod stalled_disk;
pub mod stop;
pub mod suspend;
pub mod swarm;
pub mod swizzle_clog;
pub mod wiped_disk;

use crate::report::Effect;
use serde::{Deserialize, Serialize};
use signals::Signals;
use stage::Stage;
use std::fmt::{self, Debug};
use std::time::Duration;

/// One fault of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What happens.
    pub fault: Kind,
    /// When it begins.
    pub start: Moment,
    /// How long until it heals. Healing all at once ends it sooner.
    #[serde(with = "crate::duration")]
    pub lasts: Duration,
}

/// When a fault begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Moment {
    /// That long after the nemesis was let loose.
    At(#[serde(with = "crate::duration")] Duration),
    /// After an event of that name has occurred so often.
    After {
        /// As given to [`Signals::occurred`].
        event: String,
        /// 1 is the first occurrence, counted from the start of the run.
        nth: u64,
        /// And that long after it.
        #[serde(with = "crate::duration", default)]
        then: Duration,
    },
}

impl Moment {
    /// Waits for it.
    pub(crate) async fn come(&self, signals: &Signals) {
        match self {
            Moment::At(after) => rt::time::sleep(*after).await,
            Moment::After { event, nth, then } => {
                signals.nth(event, *nth).await;
                rt::time::sleep(*then).await;
            }
        }
    }
}

/// What a kind of fault must say and do.
pub(crate) trait Act {
    /// What its effect meter counts.
    const UNIT: &'static str;

    /// The nodes it names.
    fn nodes(&self) -> Vec<&str>;

    /// The node and the configuration of it that it names.
    fn configuration(&self) -> Option<(&str, &str)> {
        None
    }

    /// Begins, holds for `lasts` (or until all is to heal), heals, and gives the amount of its effect.
    async fn act(&self, stage: &Stage, lasts: Duration) -> u64;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($path:path) = $name:literal,)*) => {
        /// Every kind of fault.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Kind {
            $($(#[$doc])* #[serde(rename = $name)] $variant($path),)*
        }

        impl Kind {
            /// Names of all kinds, as they stand in plans.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Its name in plans and tables.
            pub fn name(&self) -> &'static str {
                match self { $(Kind::$variant(_) => $name,)* }
            }

            /// What its effect meter counts.
            pub fn unit(&self) -> &'static str {
                match self { $(Kind::$variant(_) => <$path as Act>::UNIT,)* }
            }

            /// The nodes it names.
            pub fn nodes(&self) -> Vec<&str> {
                match self { $(Kind::$variant(fault) => Act::nodes(fault),)* }
            }

            /// The node and the configuration of it that it names.
            pub(crate) fn configuration(&self) -> Option<(&str, &str)> {
                match self { $(Kind::$variant(fault) => Act::configuration(fault),)* }
            }

            async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
                match self { $(Kind::$variant(fault) => Box::pin(Act::act(fault, stage, lasts)).await,)* }
            }
        }
    };
}

kinds! {
    /// The process ends; its page cache stays; it is started again at the end.
    Crash(crash::Crash) = "crash",
    /// The machine ends; what was not synced may be lost; it is started again at the end.
    PowerLoss(power_loss::PowerLoss) = "power_loss",
    /// The program is asked to stop, killed if it does not, and started again at the end.
    Stop(stop::Stop) = "stop",
    /// The process ends at its n-th disk operation or packet from the start; it is started again at the end.
    CrashPoint(crash_point::CrashPoint) = "crash_point",
    /// The program stands still; its sockets stay up.
    Pause(pause::Pause) = "pause",
    /// Each step of the program takes time.
    SlowCpu(slow_cpu::SlowCpu) = "slow_cpu",
    /// Two groups of nodes do not hear each other.
    Partition(partition::Partition) = "partition",
    /// What one node sends does not reach another; the other way works.
    OneWay(one_way::OneWay) = "one_way",
    /// One node hears nobody and nobody hears it.
    Isolate(isolate::Isolate) = "isolate",
    /// Segments between two nodes get lost.
    Loss(loss::Loss) = "loss",
    /// Segments between two nodes take longer.
    Latency(latency::Latency) = "latency",
    /// The disk has no space left.
    DiskFull(disk_full::DiskFull) = "disk_full",
    /// A disk operation fails with an input/output error.
    DiskFails(disk_error::DiskFails) = "disk_error",
    /// Syncs and reads take longer.
    SlowDisk(slow_disk::SlowDisk) = "slow_disk",
    /// No sync and no read returns before the end.
    StalledDisk(stalled_disk::StalledDisk) = "stalled_disk",
    /// The wall clock jumps, and jumps back at the end.
    ClockStep(clock_step::ClockStep) = "clock_step",
    /// The clocks run faster or slower.
    ClockDrift(clock_drift::ClockDrift) = "clock_drift",
    /// The clocks stand still.
    ClockFreeze(clock_freeze::ClockFreeze) = "clock_freeze",
    /// Program and clocks stand still; then the wall clock jumps to the present.
    Suspend(suspend::Suspend) = "suspend",
    /// The kernel ends the process for want of memory, again and again.
    OutOfMemory(out_of_memory::OutOfMemory) = "out_of_memory",
    /// The node comes back with an empty disk, if the atlas permits it.
    WipedDisk(wiped_disk::WipedDisk) = "wiped_disk",
    /// The node comes back with a copy of a peer's disk, if the atlas permits that its own is lost.
    ClonedDisk(cloned_disk::ClonedDisk) = "cloned_disk",
    /// Several programs are stopped and started again in turn.
    RollingRestart(rolling_restart::RollingRestart) = "rolling_restart",
    /// The program is started again with another configuration, and with the first one at the end.
    Reconfigure(reconfigure::Reconfigure) = "reconfigure",
    /// Synced sectors cannot be read until they are written again.
    LatentSectorError(latent_sector_error::LatentSectorError) = "latent_sector_error",
    /// Synced bits flip.
    BitRot(bit_rot::BitRot) = "bit_rot",
    /// A write lands at another place of its file.
    MisdirectedWrite(misdirected_write::MisdirectedWrite) = "misdirected_write",
    /// A read shows what was replaced.
    StaleRead(stale_read::StaleRead) = "stale_read",
    /// The process may have few files open.
    OpenFiles(open_files::OpenFiles) = "open_files",
    /// A directory may take few bytes.
    Quota(quota::Quota) = "quota",
    /// What one node sends to another, or to one port of it, is dropped in silence.
    FirewallDrop(firewall::FirewallDrop) = "firewall_drop",
    /// What one node sends to another, or to one port of it, is refused at once.
    FirewallReject(firewall::FirewallReject) = "firewall_reject",
    /// Links stop one by one, and open one by one in another order.
    SwizzleClog(swizzle_clog::SwizzleClog) = "swizzle_clog",
    /// A link carries few bytes a second.
    Bandwidth(bandwidth::Bandwidth) = "bandwidth",
    /// Datagrams between two nodes arrive twice.
    Duplicate(duplicate::Duplicate) = "duplicate",
    /// Datagrams between two nodes overtake each other.
    Reorder(reorder::Reorder) = "reorder",
    /// A node cannot look a name up.
    NameFailure(name_view::NameFailure) = "name_failure",
    /// A node sees a stale address of a name.
    NameStale(name_view::NameStale) = "name_stale",
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.fault.name(), self.fault.nodes().join(", "))?;
        match &self.start {
            Moment::At(at) => write!(out, " at {}", crate::duration::format(*at))?,
            Moment::After { event, nth, .. } => write!(out, " after {event:?} no. {nth}")?,
        }
        write!(out, " for {}", crate::duration::format(self.lasts))
    }
}

impl Fault {
    /// Its effect before it has begun.
    pub(crate) fn no_effect_yet(&self) -> Effect {
        Effect {
            kind: self.fault.name().to_owned(),
            fault: self.to_string(),
            amount: 0,
            unit: self.fault.unit().to_owned(),
        }
    }

    /// Waits for its start, acts, and gives the amount of its effect.
    pub(crate) async fn run(&self, stage: &Stage) -> u64 {
        if stage.unless_healed(self.start.come(stage.signals())).await.is_none() {
            return 0;
        }
        let (name, nodes) = (self.fault.name(), self.fault.nodes().join(", "));
        stage.tell(&nodes, &format!("{name} begins"));
        let span = stage.desk().fault_begins(self);
        let amount = self.fault.act(stage, self.lasts).await;
        stage.desk().fault_is_over(span, format!("{amount} {}", self.fault.unit()));
        stage.tell(&nodes, &format!("{name} is over ({amount} {})", self.fault.unit()));
        amount
    }
}

#[cfg(test)]
mod tests;
