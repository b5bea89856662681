//! An operation in words.

use super::{Ending, OperationLine};
use crate::history::{History, Operation, Outcome, What};
use std::fmt::Debug;

/// What a scenario says of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// For what a client asked: `send p-1.7`.
    pub ask: String,
    /// What it was told, if it was: `stored in broker-a/3 at 52`.
    pub told: String,
    /// Names of what it is about: `p-1.7`, `broker-a/3`.
    pub about: Vec<String>,
    /// Too frequent to be shown unless it proves something.
    pub is_minor: bool,
}

impl Line {
    /// What can be said of any operation.
    pub fn of<I: Debug, O: Debug>(operation: &Operation<'_, I, O>) -> Line {
        let told = if let Outcome::Ok(output) = operation.outcome { format!("{output:?}") } else { String::new() };
        Line { ask: format!("{:?}", operation.input), told, ..Line::default() }
    }
}

impl OperationLine {
    pub(super) fn new<I, O>(history: &History<I, O>, operation: &Operation<'_, I, O>, line: Line) -> OperationLine {
        let reason = operation.ended.and_then(|(event, _)| match &history.events[event.0].what {
            What::Fail { reason, .. } | What::Unknown { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        let ending = match operation.outcome {
            Outcome::Ok(_) => Ending::Ok,
            Outcome::Fail(_) => Ending::Fail,
            Outcome::Unknown => Ending::Unknown,
        };
        OperationLine {
            client: operation.client.to_owned(),
            asked: operation.invoked_at,
            ended: operation.ended.map(|(_, at)| at),
            ending,
            ask: line.ask,
            told: reason.unwrap_or(line.told),
            about: line.about,
            events: (operation.invoked, operation.ended.map(|(event, _)| event)),
        }
    }
}
