//! The node ends at an exact point of its own work: its n-th disk operation, or the n-th packet it sends.

use super::{Act, stage::Stage};
use rt::world::CrashKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Disk operations of the node.
    DiskOperation,
    /// Segments that it sends.
    Packet,
}

/// Ends a node in the middle of its work; the operation of that number has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashPoint {
    /// Whose work.
    pub node: String,
    /// What is counted, from the start of the fault.
    pub at: Counted,
    /// 1 is the next one.
    pub nth: u64,
    /// Whether the machine loses power; otherwise only the process ends.
    pub power: bool,
}

impl Act for CrashPoint {
    const UNIT: &'static str = "nodes ended";

    fn nodes(&self) -> Vec<&str> {
        vec![&self.node]
    }

    async fn act(&self, stage: &Stage, lasts: Duration) -> u64 {
        let node = stage.node(&self.node);
        let before = rt::world::incarnation(node);
        let point = match self.at {
            Counted::DiskOperation => rt::world::CrashPoint::DiskOperation(self.nth),
            Counted::Packet => rt::world::CrashPoint::Packet(self.nth),
        };
        let kind = if self.power { CrashKind::Power } else { CrashKind::Process };
        rt::world::crash_at(node, point, kind);
        stage.hold(lasts).await;
        rt::world::forget_crash_points(node);
        // Ended by another fault meanwhile: that one starts it again, and the point is forgotten.
        let reached = rt::world::incarnation(node) != before && rt::world::tasks(node) == 0;
        if reached {
            stage.take_down(&self.node, |_| {});
            stage.bring_up(&self.node);
        }
        u64::from(reached)
    }
}
