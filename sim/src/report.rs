//! What one run tells its parent: verdict, fingerprint, effects. Plain data; it crosses a pipe as JSON.

use crate::recording::Recording;
use crate::verdict::Violation;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What one fault of the plan did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The kind of fault, as in the plan: `power_loss`, `partition`.
    pub kind: String,
    /// The fault with its target, readable.
    pub fault: String,
    /// How much it did, in `unit`. Zero: it was enabled and nothing noticed.
    pub amount: u64,
    /// What is counted: `bytes lost`, `packets dropped`.
    pub unit: String,
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Hash over every event of the world; equal for equal plans.
    pub hash: u64,
    /// Number of events in the hash.
    pub events: u64,
    /// How long the run lasted on the world's clock.
    #[serde(with = "crate::duration")]
    pub virtual_time: Duration,
    /// Broken promises: of the program's invariants, or of the run itself (panic, deadlock, livelock).
    pub violations: Vec<Violation>,
    /// One entry per fault of the plan.
    pub effects: Vec<Effect>,
    /// How often each probe was reached, and how often each rare choice was made.
    pub probes: BTreeMap<String, u64>,
    /// Numbers that a scenario wants in the summary of a run: operations done, messages acknowledged.
    pub counts: BTreeMap<String, u64>,
    /// States of the whole system that the run went through, in the scenario's own words: what a guided campaign looks for.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub states: BTreeSet<String>,
    /// The whole history, if somebody asked to see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// Everything that a page shows, if somebody asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Box<Recording>>,
}

impl Report {
    /// A run of which nothing is known but what broke.
    pub fn broken(invariant: &str, summary: impl Into<String>) -> Report {
        Report { violations: vec![Violation::new(invariant, summary)], ..Report::default() }
    }

    /// Whether no promise was broken.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// The same outcome in another process: everything that a run may not vary in.
    pub fn fingerprint(&self) -> u64 {
        let text = serde_json::to_vec(self).expect("a report is plain data");
        xxhash_rust::xxh3::xxh3_64(&text)
    }
}
