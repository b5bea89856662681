//! Packets between two nodes, or to one port, that a firewall does not let through: in silence, or with a refusal at once.
//!
//! The two look alike in a diagram and are far apart for a program: the first costs it a time-out, the second an error.

use super::{Act, stage::Stage};
use rt::world::{Packet, Verdict, network};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Drops what goes one way, in silence. What comes back the other way passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirewallDrop {
    /// Whose packets.
    pub from: String,
    /// To whom.
    pub to: String,
    /// To this port only; none means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// Answers what goes one way with a reset: connecting is refused, and a stream that sends is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirewallReject {
    /// Whose packets.
    pub from: String,
    /// To whom.
    pub to: String,
    /// To this port only; none means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

impl Act for FirewallDrop {
    const UNIT: &'static str = "packets dropped";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.from, &self.to]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        close(stage, (&self.from, &self.to), self.port, Verdict::Drop, lasts).await
    }
}

impl Act for FirewallReject {
    const UNIT: &'static str = "packets rejected";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.from, &self.to]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        close(stage, (&self.from, &self.to), self.port, Verdict::Reject, lasts).await
    }
}

/// Sets a rule for as long as the fault lasts; how many packets met it.
async fn close(stage: &Stage, (from, to): (&str, &str), port: Option<u16>, verdict: Verdict, lasts: Duration) -> u64 {
    let (from, to) = (stage.node(from), stage.node(to));
    let met = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&met);
    let rule = move |packet: &Packet| {
        let meets = (packet.from, packet.to) == (from, to) && port.is_none_or(|port| packet.destination.port() == port);
        count.fetch_add(u64::from(meets), Ordering::Relaxed);
        if meets { verdict } else { Verdict::Pass }
    };
    let name = stage.new_rule();
    network::set_rule(&name, Box::new(rule));
    stage.hold(lasts).await;
    network::clear_rule(&name);
    met.load(Ordering::Relaxed)
}
