//! I14: a server does not give up by itself, but for what happened to its own disk.
//!
//! A service manager starts it again, and most of what it was in the middle of heals, so no other invariant need notice: a slave
//! that ends at each torn frame still has the whole log in the end. What its disk refused, lost or changed is a cause, and so is a
//! process that may open no more files. A node that is taken down in the same instant is a cause too: the operation at which a crash point
//! ends it fails, and the program may get to see that.

use crate::breach::Breach;
use crate::evidence::{Evidence, POWER_LOST, PROCESS_ENDED};
use crate::plan::Plan;
use sim::fault::Kind;
use sim::history::What;
use sim::verdict::EventId;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I14 no end without a cause";

/// How the event of a server that gives up begins; its reason follows.
pub const GAVE_UP: &str = "gave up: ";

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let events = &evidence.history.events;
    let taken_down = |place: usize, at: Duration, node: &str| {
        // Its own end stands before its reason; what takes the node down comes after it.
        events[place + 1..].iter().take_while(|event| event.at == at).any(|event| {
            matches!(&event.what, What::Node { node: other, event } if other == node && [POWER_LOST, PROCESS_ENDED].contains(&event.as_str()))
        })
    };
    let events = events.iter().enumerate().filter_map(|(place, event)| match &event.what {
        What::Node { node, event: what } => {
            let reason = what.strip_prefix(GAVE_UP)?;
            (!taken_down(place, event.at, node)).then_some((place, event.at, node, reason))
        }
        _ => None,
    });
    let unexcused = events.filter(|(_, _, node, _)| !plan.faults.iter().any(|fault| touches_disk(&fault.fault, node)));
    let told = |(place, at, node, reason): (usize, Duration, &String, &str)| {
        Breach::new(format!("{node} gave up at {:.3} s: {reason}", at.as_secs_f64())).of_events([EventId(place)])
    };
    unexcused.map(told).collect()
}

/// Whether the fault may make an operation on this node's disk fail, or change what is on it.
fn touches_disk(kind: &Kind, node: &str) -> bool {
    let touches = matches!(
        kind,
        Kind::DiskFull(_)
            | Kind::DiskFails(_)
            | Kind::WipedDisk(_)
            | Kind::ClonedDisk(_)
            | Kind::LatentSectorError(_)
            | Kind::BitRot(_)
            | Kind::MisdirectedWrite(_)
            | Kind::StaleRead(_)
            | Kind::OpenFiles(_)
            | Kind::Quota(_)
    );
    touches && kind.nodes().contains(&node)
}
