//! Determinism: each seed twice, in two processes in lockstep, and the first event in which they differ.
//!
//! One side is a process of its own that runs this seed and nothing else; the other is a child of a batch that has forked many
//! before. The system gives both their own addresses. Each stops after every 1,024 events of its trace, tells its hash, and
//! waits: at the first difference both still hold the events since the last agreement, so no second run is needed (a run that
//! is not deterministic need not differ in the same place twice).

use crate::desk::{Observation, observe};
use crate::error::{CampaignError, WorkerError};
use crate::plan::Case;
use crate::report::Report;
use crate::scenario::Registry;
use crate::text::grouped;
use crate::worker::process::{Launch, Line, Process, Request};
use crate::worker::{Task, fork_once, run_here};
use rt::world::Checkpoint;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fmt;
use std::os::fd::RawFd;
use std::rc::Rc;

/// Events that both sides show at a difference: those since the last checkpoint that was equal, and some before.
const TAIL: usize = 1_100;
/// A child that takes longer by the wall clock is ended.
const SECONDS_MAX: u32 = 120;

/// What a child says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// First: the plan that the seed drew, as a hash.
    Plan(u64),
    /// After every 1,024 events, and after the last one. It then waits for a [`Reply`].
    Checkpoint { events: u64, hash: u64 },
    /// The last events, on demand; then it ends.
    Tail(Vec<Seen>),
    /// The run has ended.
    End(Box<Report>),
    /// Said by its parent: it died.
    Died(String),
}

/// What a child is told at a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Go,
    Show,
}

/// An event as one side saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its number.
    pub index: u64,
    /// The event, readable.
    pub text: String,
}

/// Two runs of one seed that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// In what.
    pub what: Difference,
}

/// In what two runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The seed drew two plans.
    Plan,
    /// In an event.
    Event {
        /// The last event that both saw.
        before: Option<Seen>,
        /// What the process of its own saw next; none: its run had ended.
        alone: Option<Seen>,
        /// What the child of the batch saw next; none: its run had ended.
        batch: Option<Seen>,
    },
    /// The traces agree, the reports do not: something that the trace does not see decides a verdict.
    Report {
        /// The first line in which they differ, of each side.
        alone: String,
        /// The other side's.
        batch: String,
    },
    /// One side died, or went on where the other ended.
    Shape {
        /// What each side did.
        alone: String,
        /// The other side's.
        batch: String,
    },
}

impl fmt::Display for Divergence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Divergence { scenario, seed, what } = self;
        writeln!(out, "{scenario} seed {seed} is not deterministic:")?;
        let side = |seen: &Option<Seen>| {
            seen.as_ref().map_or_else(|| "(the run has ended)".to_owned(), |seen| seen.text.clone())
        };
        let (title, before, alone, batch) = match what {
            Difference::Plan => return write!(out, "  the seed draws different plans"),
            Difference::Event { before, alone, batch } => {
                ("first different event", before.as_ref(), side(alone), side(batch))
            }
            Difference::Report { alone, batch } => {
                ("equal traces, different reports", None, alone.clone(), batch.clone())
            }
            Difference::Shape { alone, batch } => ("one run is cut short", None, alone.clone(), batch.clone()),
        };
        writeln!(out, "  {title}")?;
        if let Some(before) = before {
            writeln!(out, "    before  {}", before.text)?;
        }
        write!(out, "    alone   {alone}\n    batch   {batch}")
    }
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds run twice.
    pub seeds: u64,
    /// Events compared.
    pub events: u64,
    /// Seeds that differ.
    pub divergences: Vec<Divergence>,
}

impl Summary {
    /// What people read.
    pub fn to_text(&self) -> String {
        let found: String = self.divergences.iter().map(|divergence| format!("{divergence}\n\n")).collect();
        let (seeds, events) = (grouped(self.seeds), grouped(self.events));
        format!("{found}{seeds} seeds twice, {events} events, divergences: {}\n", self.divergences.len())
    }
}

/// Runs `seeds` seeds, dealt to the scenarios in turn. `progress` is called after each.
pub fn run(
    registry: &Registry,
    launch: &Launch,
    scenarios: &[String],
    seeds: impl IntoIterator<Item = u64>,
    mut progress: impl FnMut(&Summary),
) -> Result<Summary, CampaignError> {
    let entries = registry.select(scenarios)?;
    if entries.is_empty() {
        return Err(CampaignError::NothingToRun);
    }
    let mut batch = Process::start(launch)?;
    let mut summary = Summary::default();
    for (seed, entry) in seeds.into_iter().zip(entries.iter().cycle()) {
        let mut alone = Process::start(launch)?;
        let task = Task::Seed { scenario: entry.name().to_owned(), seed };
        let mut pair = Pair { alone: &mut alone, batch: &mut batch, events: 0 };
        let difference = pair.compare(&task)?;
        summary.seeds += 1;
        summary.events += pair.events;
        summary.divergences.extend(difference.map(|what| Divergence { scenario: entry.name().to_owned(), seed, what }));
        progress(&summary);
    }
    Ok(summary)
}

struct Pair<'a> {
    alone: &'a mut Process,
    batch: &'a mut Process,
    events: u64,
}

impl Pair<'_> {
    fn compare(&mut self, task: &Task) -> Result<Option<Difference>, WorkerError> {
        let request = Request::Lockstep(task.clone());
        self.alone.send(&request)?;
        self.batch.send(&request)?;
        let mut plans_differ = false;
        loop {
            let words: (Word, Word) = (self.alone.receive()?, self.batch.receive()?);
            match words {
                (Word::Plan(alone), Word::Plan(batch)) => plans_differ = alone != batch,
                // Compared before anything else, because a child that waits must be answered.
                (Word::Checkpoint { events, .. }, _) if words.0 == words.1 && !plans_differ => {
                    self.events = events;
                    self.alone.send(&Reply::Go)?;
                    self.batch.send(&Reply::Go)?;
                }
                (Word::End(_) | Word::Died(_), _) if words.0 == words.1 => {
                    return Ok(plans_differ.then_some(Difference::Plan));
                }
                (Word::End(alone), Word::End(batch)) if !plans_differ => {
                    return Ok(Some(different_reports(&alone, &batch)));
                }
                (alone, batch) => {
                    let tails = (show(self.alone, alone)?, show(self.batch, batch)?);
                    return Ok(Some(if plans_differ { Difference::Plan } else { different_events(tails.0, tails.1) }));
                }
            }
        }
    }
}

/// Has a side that waits at a checkpoint show its last events.
fn show(side: &mut Process, last: Word) -> Result<Result<Vec<Seen>, String>, WorkerError> {
    match last {
        Word::Checkpoint { .. } => {
            side.send(&Reply::Show)?;
            match side.receive()? {
                Word::Tail(tail) => Ok(Ok(tail)),
                other => Err(WorkerError::Protocol(format!("{other:?} in the place of the last events"))),
            }
        }
        Word::Died(how) => Ok(Err(how)),
        other => Ok(Err(format!("{other:?}"))),
    }
}

fn different_events(alone: Result<Vec<Seen>, String>, batch: Result<Vec<Seen>, String>) -> Difference {
    let (alone, batch) = match (alone, batch) {
        (Ok(alone), Ok(batch)) => (alone, batch),
        (alone, batch) => return Difference::Shape { alone: place(alone), batch: place(batch) },
    };
    let first = alone.first().map_or(0, |seen| seen.index).max(batch.first().map_or(0, |seen| seen.index));
    let from = |side: Vec<Seen>| side.into_iter().skip_while(move |seen| seen.index < first);
    let (mut alone, mut batch) = (from(alone), from(batch));
    let mut before = None;
    loop {
        match (alone.next(), batch.next()) {
            (Some(left), Some(right)) if left == right => before = Some(left),
            (alone, batch) => return Difference::Event { before, alone, batch },
        }
    }
}

/// Where a side stands that cannot be compared with the other.
fn place(side: Result<Vec<Seen>, String>) -> String {
    match side {
        Ok(tail) => tail.last().map_or_else(|| "no event yet".to_owned(), |seen| format!("stands at {}", seen.text)),
        Err(how) => how,
    }
}

fn different_reports(alone: &Report, batch: &Report) -> Difference {
    let text = |report: &Report| serde_json::to_string_pretty(report).expect("a report is plain data");
    let (alone, batch) = (text(alone), text(batch));
    let pair = alone.lines().zip(batch.lines()).find(|(left, right)| left != right);
    let (alone, batch) = pair.map_or((alone.as_str(), batch.as_str()), |pair| pair);
    Difference::Report { alone: alone.trim().to_owned(), batch: batch.trim().to_owned() }
}

/// In a worker: has a child run the task and speak for itself.
pub(crate) fn serve_lockstep(registry: &Registry, descriptor: RawFd, task: &Task) -> Result<(), WorkerError> {
    registry.get(task.scenario())?;
    let death = fork_once(|| speak(registry, descriptor, task))?;
    match death {
        Some(how) => Line::of_this_process(descriptor).lasting().send(&Word::Died(how)),
        None => Ok(()),
    }
}

/// In the child. Whatever breaks here breaks the conversation, and the near end tells.
fn speak(registry: &Registry, descriptor: RawFd, task: &Task) -> Result<(), WorkerError> {
    // SAFETY: plain system call; the signal's default action ends this child only.
    unsafe { libc::alarm(SECONDS_MAX) };
    let entry = registry.get(task.scenario())?;
    let plan = match task {
        Task::Seed { seed, .. } => entry.draw(*seed),
        Task::Plan(Case { plan, .. }) => plan.clone(),
    };
    let line = Rc::new(RefCell::new(Line::of_this_process(descriptor)));
    line.borrow_mut().send(&Word::Plan(xxhash_rust::xxh3::xxh3_64(plan.to_string().as_bytes())))?;
    let hook = {
        let line = Rc::clone(&line);
        move |checkpoint: Checkpoint| stop_at(&mut line.borrow_mut(), checkpoint)
    };
    observe(Observation { on_checkpoint: Some(Box::new(hook)), ..Observation::default() });
    let report = run_here(&entry, &plan);
    line.borrow_mut().send(&Word::End(Box::new(report)))
}

/// At a checkpoint: tells it, and waits for the word to go on.
fn stop_at(line: &mut Line, Checkpoint { events, hash }: Checkpoint) {
    let reply = line.send(&Word::Checkpoint { events, hash }).and_then(|()| line.receive::<Reply>());
    match reply {
        Ok(Some(Reply::Go)) => return,
        Ok(Some(Reply::Show)) => {
            let seen = |event: rt::world::TraceEvent| Seen { index: event.index, text: event.to_string() };
            let _ = line.send(&Word::Tail(rt::world::trace_tail(TAIL).into_iter().map(seen).collect()));
        }
        // The near end is gone.
        Ok(None) | Err(_) => {}
    }
    // SAFETY: ends the child at once: its world is in the middle of an event and must not go on, not even to be dropped.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests;
