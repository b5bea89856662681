//! What happened in one run, for a page that people look at: plain data, kept only if somebody asked for it.
//!
//! | file | what it owns |
//! |---|---|
//! | `frame.rs` | how a scenario says what a message means |
//! | `tape.rs` | what is taken down while the world runs: packets, syncs, the life of nodes |
//! | `line.rs` | how a scenario puts an operation into words |
//! | `telling.rs` | the few events that tell the story of a violation |

mod frame;
mod line;
mod tape;
mod telling;

pub use frame::{Call, Frame, ReadFrame};
pub use line::Line;
pub(crate) use tape::Tape;
pub(crate) use telling::{Moment, Tale, telling};

use crate::history::{History, Operation, What};
use crate::verdict::{EventId, Violation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// One run, taken down. Times are world times since the start; nodes are named by their place in [`nodes`](Self::nodes).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recording {
    /// Names of the nodes, in the order in which they were added.
    pub nodes: Vec<String>,
    /// In which state each node was, when.
    pub bands: Vec<Band>,
    /// What messages are called.
    pub kinds: Vec<String>,
    /// Messages between nodes, in the order in which they were sent.
    pub messages: Vec<Message>,
    /// What was made durable, in the order of the beginnings.
    pub syncs: Vec<DiskSync>,
    /// Names of what was synced.
    pub files: Vec<String>,
    /// The faults that began.
    pub faults: Vec<FaultSpan>,
    /// What clients asked and were told, in the order of asking.
    pub operations: Vec<OperationLine>,
    /// What happened to nodes.
    pub events: Vec<NodeEvent>,
    /// Numbers over time.
    pub series: Vec<Series>,
}

/// A node is in one state for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Band {
    /// The node.
    pub node: usize,
    /// From when.
    #[serde(with = "micros")]
    pub from: Duration,
    /// Until when; none: to the end of the run.
    #[serde(with = "optional_micros")]
    pub until: Option<Duration>,
    /// In one or two words: `up`, `master`, `recovering`, `no power`.
    pub state: String,
}

/// A message on its way from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who sent it.
    pub from: usize,
    /// To whom.
    pub to: usize,
    /// When it left.
    #[serde(with = "micros")]
    pub sent: Duration,
    /// When it was there; none: never.
    #[serde(with = "optional_micros")]
    pub arrived: Option<Duration>,
    /// Its place in [`Recording::kinds`].
    pub kind: usize,
    /// Length in bytes.
    pub bytes: usize,
}

/// A program waited for its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSync {
    /// Whose.
    pub node: usize,
    /// Its place in [`Recording::files`].
    pub file: usize,
    /// From when.
    #[serde(with = "micros")]
    pub began: Duration,
    /// Until when; none: it never ended.
    #[serde(with = "optional_micros")]
    pub ended: Option<Duration>,
    /// Whether it is durable.
    pub ok: bool,
}

/// A fault from its beginning to its healing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultSpan {
    /// The kind, as in plans.
    pub kind: String,
    /// The fault as its plan says it.
    pub text: String,
    /// Names of the nodes that it hits.
    pub nodes: Vec<String>,
    /// From when.
    #[serde(with = "micros")]
    pub from: Duration,
    /// Until when; none: to the end of the run.
    #[serde(with = "optional_micros")]
    pub until: Option<Duration>,
    /// What it did: `7 packets dropped`.
    pub effect: String,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It had its effect.
    Ok,
    /// It had none.
    Fail,
    /// Nobody knows.
    Unknown,
}

/// An operation of a client in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationLine {
    /// Who asked.
    pub client: String,
    /// When.
    #[serde(with = "micros")]
    pub asked: Duration,
    /// When it ended; none: never.
    #[serde(with = "optional_micros")]
    pub ended: Option<Duration>,
    /// How.
    pub ending: Ending,
    /// For what.
    pub ask: String,
    /// The answer, or why there is none.
    pub told: String,
    /// What it is about: what shares a word with a proof belongs to its story.
    pub about: Vec<String>,
    /// Events of the history: of the invocation, and of the end.
    pub events: (EventId, Option<EventId>),
}

/// Something happened to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEvent {
    /// Its name, or several.
    pub node: String,
    /// When.
    #[serde(with = "micros")]
    pub at: Duration,
    /// What.
    pub text: String,
    /// Event of the history.
    pub event: EventId,
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Lines of one chart are drawn together.
    pub chart: String,
    /// Name of the line.
    pub line: String,
    /// What the chart is about, as in [`OperationLine::about`].
    pub about: Vec<String>,
    /// Microseconds since the start of the run, and the value from then on.
    pub points: Vec<(u64, i64)>,
}

impl Recording {
    /// Adds what a history says, operations as `line` puts them; minor ones only if they prove a violation.
    pub fn add_history<I: std::fmt::Debug, O: std::fmt::Debug>(
        &mut self,
        history: &History<I, O>,
        violations: &[Violation],
        line: impl Fn(&Operation<'_, I, O>) -> Line,
    ) {
        let proofs: BTreeSet<EventId> =
            violations.iter().flat_map(|violation| &violation.evidence).map(|proof| proof.event).collect();
        for operation in history.operations() {
            let proves = operation.events().any(|event| proofs.contains(&event));
            let line = line(&operation);
            if proves || !line.is_minor {
                self.operations.push(OperationLine::new(history, &operation, line));
            }
        }
        for (place, event) in history.events.iter().enumerate() {
            if let What::Node { node, event: text } = &event.what {
                let (node, text) = (node.clone(), text.clone());
                self.events.push(NodeEvent { node, at: event.at, text, event: EventId(place) });
            }
        }
    }

    /// Adds a value to a line of a chart. A value that repeats the last one of its line says nothing new and is left out.
    pub fn add_value(&mut self, chart: &str, line: &str, at: Duration, value: i64) {
        let place = self.series.iter().position(|series| series.chart == chart && series.line == line);
        let place = place.unwrap_or_else(|| {
            let (chart, line) = (chart.to_owned(), line.to_owned());
            self.series.push(Series { about: vec![chart.clone()], chart, line, points: Vec::new() });
            self.series.len() - 1
        });
        let points = &mut self.series[place].points;
        if points.last().is_none_or(|(_, last)| *last != value) {
            points.push((micros_of(at), value));
        }
    }

    /// An event of the history in the words of the scenario.
    pub(crate) fn words(&self, event: EventId) -> Option<String> {
        let happened = self.events.iter().find(|other| other.event == event);
        let of_node = happened.map(|event| format!("{}: {}", event.node, event.text));
        of_node.or_else(|| {
            let told = |operation: &&OperationLine| operation.events.1 == Some(event);
            let asked = |operation: &&OperationLine| operation.events.0 == event;
            let ended = self.operations.iter().find(told).map(OperationLine::to_text);
            ended.or_else(|| {
                let operation = self.operations.iter().find(asked)?;
                // Of what never ended, its beginning is all.
                let is_all = operation.events.1.is_none();
                Some(if is_all { operation.to_text() } else { format!("{}: {}", operation.client, operation.ask) })
            })
        })
    }

    /// The place of a node by name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node == name)
    }
}

/// Microseconds: finer than any message travels.
pub(crate) fn micros_of(at: Duration) -> u64 {
    u64::try_from(at.as_micros()).expect("a run is shorter than 500,000 years")
}

/// Serde: a duration as microseconds, since a recording has 100,000 of them.
mod micros {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(super::micros_of(*at))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

/// As [`micros`], for what may never come.
mod optional_micros {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(at: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(super::micros_of).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_micros))
    }
}
