//! The experimenter's desk: what a scenario holds on to while its world runs, and what is left when that ends early.

use crate::fault::Fault;
use crate::fault::signals::Signals;
use crate::history::{History, Operation};
use crate::leak;
use crate::recording::{FaultSpan, Line, ReadFrame, Recording, Tape};
use crate::report::{Effect, Report};
use crate::verdict::Violation;
use crate::worker::NO_PANIC;
use rt::world::{Checkpoint, Finding, FindingKind, Outcome, WorldConfig};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Nothing is ready and nothing is to come, but the scenario has not ended.
pub const NO_DEADLOCK: &str = "the run goes on";
/// Tasks go on and on at one instant.
pub const NO_LIVELOCK: &str = "time goes on";
/// The scenario takes more virtual time than its limit.
pub const ENDS_IN_TIME: &str = "the run ends in time";

/// Made before the world, so that what was noted outlives a run that a finding ends. Clones are the same desk.
#[derive(Debug, Clone, Default)]
pub struct Desk {
    signals: Signals,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    effects: Vec<Effect>,
    counts: BTreeMap<String, u64>,
    violations: Vec<Violation>,
    wants_history: bool,
    read_frame: Option<ReadFrame>,
    /// What is to be added to the tape of this run; none: nobody asked for a recording.
    recording: Option<Recording>,
}

impl Desk {
    /// An empty desk.
    pub fn new() -> Desk {
        Desk::default()
    }

    /// The named events of the run.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Adds to a number that the summary of the run shows.
    pub fn count(&self, name: &str, more: u64) {
        self.noted(|notes| *notes.counts.entry(name.to_owned()).or_default() += more);
    }

    /// Notes a violation while the run goes on; whether to go on is the scenario's choice.
    pub fn violated(&self, violation: Violation) {
        self.noted(|notes| notes.violations.push(violation));
    }

    /// Completes the report of a run: with what its history breaks, and with the history itself for those who asked to see it
    /// (`run --history`).
    #[must_use]
    pub fn judged<I: Debug, O: Debug>(
        &self,
        report: Report,
        history: &History<I, O>,
        violations: Vec<Violation>,
    ) -> Report {
        self.judged_in_words(report, history, violations, Line::of)
    }

    /// As [`judged`](Self::judged), with the words of a scenario for its operations, if the run was recorded.
    #[must_use]
    pub fn judged_in_words<I: Debug, O: Debug>(
        &self,
        mut report: Report,
        history: &History<I, O>,
        violations: Vec<Violation>,
        line: impl Fn(&Operation<'_, I, O>) -> Line,
    ) -> Report {
        report.violations.extend(violations);
        if let Some(recording) = &mut report.recording {
            recording.add_history(history, &report.violations, line);
        }
        report.history = self.noted(|notes| notes.wants_history).then(|| history.to_text());
        report
    }

    /// Whether this run is recorded. What is done for the recording alone must change nothing else.
    pub fn is_recording(&self) -> bool {
        self.noted(|notes| notes.recording.is_some())
    }

    /// Lets a recording of this desk's runs name messages as `read` reads them.
    pub fn reads_frames(&self, read: ReadFrame) {
        self.noted(|notes| notes.read_frame = Some(read));
    }

    /// Adds a value to a line of a chart, if the run is recorded.
    pub fn sample(&self, chart: &str, line: &str, value: i64) {
        self.recorded(|recording| recording.add_value(chart, line, rt::world::elapsed(), value));
    }

    /// A fault begins; the number is for [`fault_is_over`](Self::fault_is_over).
    pub(crate) fn fault_begins(&self, fault: &Fault) -> Option<usize> {
        self.recorded(|recording| {
            recording.faults.push(FaultSpan {
                kind: fault.fault.name().to_owned(),
                text: fault.to_string(),
                nodes: fault.fault.nodes().into_iter().map(str::to_owned).collect(),
                from: rt::world::elapsed(),
                until: None,
                effect: String::new(),
            });
            recording.faults.len() - 1
        })
    }

    pub(crate) fn fault_is_over(&self, number: Option<usize>, effect: String) {
        let Some(number) = number else { return };
        self.recorded(|recording| {
            let span = &mut recording.faults[number];
            (span.until, span.effect) = (Some(rt::world::elapsed()), effect);
        });
    }

    fn recorded<T>(&self, change: impl FnOnce(&mut Recording) -> T) -> Option<T> {
        self.noted(|notes| notes.recording.as_mut().map(change))
    }

    /// The effects noted so far.
    pub fn effects(&self) -> Vec<Effect> {
        self.noted(|notes| notes.effects.clone())
    }

    pub(crate) fn add_effects(&self, effects: impl Iterator<Item = Effect>) -> usize {
        self.noted(|notes| {
            let first = notes.effects.len();
            notes.effects.extend(effects);
            first
        })
    }

    pub(crate) fn set_effect(&self, index: usize, amount: u64) {
        self.noted(|notes| notes.effects[index].amount = amount);
    }

    fn noted<T>(&self, change: impl FnOnce(&mut Notes) -> T) -> T {
        change(&mut self.notes.lock().expect("no code that can panic runs under this lock"))
    }

    /// Runs `main` on the desk's own node of a new world (it has no faults) and reports; the value is `None` if a finding ended the
    /// run, and then the finding is the report's first violation.
    pub fn run<M, F>(&self, mut config: WorldConfig, main: M) -> (Option<F::Output>, Report)
    where
        M: FnOnce() -> F + 'static,
        F: Future + 'static,
    {
        let observation = OBSERVATION.take();
        config.backtraces |= observation.backtraces;
        config.hash_payload |= observation.on_checkpoint.is_some();
        let read = self.noted(|notes| {
            notes.wants_history = observation.history;
            notes.recording = observation.recording.then(Recording::default);
            notes.read_frame
        });
        let tape = Rc::new(OnceCell::new());
        let desk = self.clone();
        let started = Rc::clone(&tape);
        let outcome = rt::world::run(config, move || {
            if observation.recording {
                started.set(Tape::start(read)).expect("a run starts once");
            }
            // Before every hook of the scenario, which may start the node again.
            leak::look_at_ends(&desk);
            if let Some(hook) = observation.on_checkpoint {
                rt::world::on_checkpoint(hook);
            }
            main()
        });
        let (value, mut report) = self.report(outcome);
        report.recording = tape.get().map(|tape| self.recording(tape));
        (value, report)
    }

    /// What the tape has, and what was added here.
    fn recording(&self, tape: &Tape) -> Box<Recording> {
        let added = self.noted(|notes| notes.recording.take()).unwrap_or_default();
        let Recording { faults, series, .. } = added;
        Box::new(Recording { faults, series, ..tape.take() })
    }

    fn report<T>(&self, outcome: Outcome<T>) -> (Option<T>, Report) {
        let mut probes: BTreeMap<String, u64> = BTreeMap::new();
        let marks = outcome.probes.hits.iter().map(|(name, hits)| (*name, *hits));
        let sometimes = outcome.probes.sometimes.iter().map(|(name, counts)| (*name, counts.held));
        let rare = outcome.probes.buggified.iter().map(|(name, fired)| (*name, *fired));
        for (name, hits) in marks.chain(sometimes).chain(rare) {
            probes.insert(name.to_owned(), hits);
        }
        let (effects, counts) = self.noted(|notes| (notes.effects.clone(), std::mem::take(&mut notes.counts)));
        let noted = self.noted(|notes| std::mem::take(&mut notes.violations));
        let violations = outcome.finding.iter().map(violation).chain(noted).collect();
        let Outcome { hash, events, virtual_time, value, .. } = outcome;
        (value, Report { hash, events, virtual_time, violations, effects, probes, counts, ..Report::default() })
    }
}

fn violation(finding: &Finding) -> Violation {
    let invariant = match finding.kind {
        FindingKind::Panic => NO_PANIC.to_owned(),
        FindingKind::Always => format!("always: {}", finding.message),
        FindingKind::Deadlock => NO_DEADLOCK.to_owned(),
        FindingKind::Livelock => NO_LIVELOCK.to_owned(),
        FindingKind::TimeLimit => ENDS_IN_TIME.to_owned(),
    };
    Violation::new(invariant, finding.to_string())
}

/// What somebody outside of the scenario wants to see of the next run on this thread.
#[derive(Default)]
pub(crate) struct Observation {
    pub(crate) on_checkpoint: Option<Box<dyn FnMut(Checkpoint)>>,
    pub(crate) backtraces: bool,
    pub(crate) history: bool,
    pub(crate) recording: bool,
}

thread_local! {
    static OBSERVATION: RefCell<Observation> = RefCell::default();
}

/// Asks for it. A child does so on the thread of its run, before that.
pub(crate) fn observe(observation: Observation) {
    OBSERVATION.set(observation);
}

/// The longest run that a scenario should need, as a limit for [`rt::world::Limits`].
pub const VIRTUAL_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
