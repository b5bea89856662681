//! The stage on which the claims of suites `service` and `returns` play: servers, links and a schedule, drawn.

use crate::draw;
use crate::plan::{Cluster, Network, Plan, Schedule};
use proptest::array::uniform3;
use proptest::prelude::{Strategy, any};
use proptest::strategy::BoxedStrategy;
use std::time::Duration;

/// By then each slave replicates: it learns of its master when it registers again (`registerNameServerPeriod`, 30 s).
pub const WARM_UP: Duration = Duration::from_secs(35);

/// The drawn part of a run.
#[derive(Debug, Clone)]
pub struct Draw {
    /// Picks, latencies.
    pub schedule: Schedule,
    /// Servers and durability.
    pub cluster: Cluster,
    /// Links.
    pub network: Network,
    /// Whether a machine that ends falls silent; otherwise only its process ends.
    pub power: bool,
    /// Small shifts of what happens.
    pub shifts: [Duration; 3],
    /// Whether the marked places make rare choices.
    pub rare_choices: bool,
}

impl Draw {
    /// A plan with so many clients of each kind that does nothing yet.
    pub fn plan(&self, producers: u32, consumers: usize, duration: Duration) -> Plan {
        Plan {
            schedule: self.schedule,
            cluster: self.cluster.clone(),
            network: self.network,
            clients: draw::clients(producers, consumers),
            operations: Vec::new(),
            faults: Vec::new(),
            duration,
            rare_choices: self.rare_choices,
        }
    }
}

/// Any stage.
pub fn strategy() -> BoxedStrategy<Draw> {
    let shifts = uniform3((0_u64..4_000).prop_map(Duration::from_millis));
    (draw::schedule(), draw::cluster(), draw::network(), any::<bool>(), shifts, any::<bool>())
        .prop_map(|(schedule, cluster, network, power, shifts, rare_choices)| Draw {
            schedule,
            cluster,
            network,
            power,
            shifts,
            rare_choices,
        })
        .boxed()
}
