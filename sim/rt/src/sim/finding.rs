//! What went wrong in a run, and how a panic becomes that.
use super::world::{World, try_world};
use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::fmt;
use std::panic::{Location, PanicHookInfo};
use std::sync::Once;
use std::time::Duration;

/// The first thing that went wrong; it ends the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// Name of the node whose code ran.
    pub node: String,
    /// The panic's message, or what the kind is about.
    pub message: String,
    /// `file:line:column`, where there is one.
    pub place: Option<String>,
    /// World time since the start.
    pub at: Duration,
    /// Of a panic, if the configuration asks for it.
    pub backtrace: Option<String>,
}

/// Kinds of findings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FindingKind {
    /// A task panicked, in a poll or in a destructor.
    Panic,
    /// An `always!` condition did not hold.
    Always,
    /// No task is ready and nothing is to come, but `main` has not ended.
    Deadlock,
    /// Tasks went on and on at one instant.
    Livelock,
    /// The run reached its limit of virtual time.
    TimeLimit,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { kind, node, message, place, at, backtrace } = self;
        write!(f, "{kind:?} on node {node} at {:.9} s: {message}", at.as_secs_f64())?;
        if let Some(place) = place {
            write!(f, " ({place})")?;
        }
        if let Some(backtrace) = backtrace {
            write!(f, "\n{backtrace}")?;
        }
        Ok(())
    }
}

impl World {
    /// Reports something that is no panic, on the current node, at the present instant.
    pub(super) fn report_here(&self, kind: FindingKind, message: String, place: Option<&Location<'_>>) {
        self.report(Finding {
            kind,
            node: self.here().name.to_string(),
            message,
            place: place.map(Location::to_string),
            at: Duration::from_nanos(self.now.get()),
            backtrace: None,
        });
    }

    /// Reports the panic that was just caught with this payload.
    pub(super) fn report_panic(&self, payload: &(dyn Any + Send)) {
        // `resume_unwind` runs no hook, so there may be no note.
        let note =
            LAST_PANIC.take().unwrap_or_else(|| Note { message: text_of(payload), place: None, backtrace: None });
        self.report(Finding {
            kind: FindingKind::Panic,
            node: self.here().name.to_string(),
            message: note.message,
            place: note.place,
            at: Duration::from_nanos(self.now.get()),
            backtrace: note.backtrace,
        });
    }
}

struct Note {
    message: String,
    place: Option<String>,
    backtrace: Option<String>,
}

thread_local! {
    /// The hook runs where the panic starts, and the finding is made where it is caught.
    static LAST_PANIC: RefCell<Option<Note>> = const { RefCell::new(None) };
}

/// Makes panics inside a world silent notes; on threads without a world the previous hook goes on.
pub(super) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match try_world() {
            Some(world) => note(world, info),
            None => previous(info),
        }));
    });
}

fn note(world: &World, info: &PanicHookInfo<'_>) {
    let backtrace = world.config.backtraces.then(|| Backtrace::force_capture().to_string());
    let place = info.location().map(Location::to_string);
    LAST_PANIC.set(Some(Note { message: text_of(info.payload()), place, backtrace }));
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic whose payload is not text".to_owned())
}
