//! A worker process: this executable, started again, single-minded. It reads requests (JSON lines) from its standard input and
//! answers (JSON lines) on a descriptor of its own, because a test harness writes to standard output.
//!
//! The environment variable [`WORKER`] holds the number of that descriptor and so tells the executable what it is. A command line
//! looks for it first thing ([`crate::cli::main`]); a test executable is started with the name of one test that serves
//! ([`crate::testing::Stand::serve`]).

use super::{Limits, Run, Task};
use crate::check;
use crate::error::WorkerError;
use crate::scenario::Registry;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Set for a worker process: the descriptor of its answers.
pub const WORKER: &str = "HOTFIRE_WORKER";

/// What a worker is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// To run these, each in a child.
    Runs {
        /// In that order.
        tasks: Vec<Task>,
        /// What each child may use.
        limits: Limits,
        /// Whether to go no further than the first violation.
        stop_at_violation: bool,
    },
    /// To run this one in a child that stops at each checkpoint of its trace; the child speaks for itself: see [`check`].
    Lockstep(Task),
}

/// What it answers to [`Request::Runs`]: each run as it ends, then `Done`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Run(Box<Run>),
    Done,
    Failed(String),
}

/// How to start a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Launch {
    /// This executable, whose `main` is [`crate::cli::main`].
    pub fn this_command_line() -> Launch {
        Launch { program: PathBuf::from("/proc/self/exe"), arguments: Vec::new() }
    }

    /// This test executable, running only the test of that full name, which serves.
    pub fn this_test(name: &str) -> Launch {
        let arguments = [name, "--exact", "--nocapture", "--test-threads=1"].map(str::to_owned).to_vec();
        Launch { program: PathBuf::from("/proc/self/exe"), arguments }
    }
}

/// The near end of a worker process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<File>,
}

impl Process {
    /// Starts one.
    pub fn start(launch: &Launch) -> Result<Process, WorkerError> {
        let (reading, writing) = super::fork::pipe()?;
        let descriptor = writing.as_raw_fd();
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).env(WORKER, descriptor.to_string()).stdin(Stdio::piped()).stdout(Stdio::null());
        // SAFETY: one system call, on a descriptor that is open in the new process as in this one.
        unsafe { command.pre_exec(move || keep_open(descriptor)) };
        let mut child =
            command.spawn().map_err(|source| WorkerError::System { call: "starting the worker", source })?;
        let input = child.stdin.take();
        Ok(Process { child, input, output: BufReader::new(File::from(reading)) })
    }

    /// Has the tasks run, each in a child of the worker, until they are used up, the sink breaks off, or a run violates something
    /// and `stop_at_violation` is set. See [`super::run`].
    pub fn run(
        &mut self,
        tasks: Vec<Task>,
        limits: Limits,
        stop_at_violation: bool,
        mut sink: impl FnMut(Run) -> ControlFlow<()>,
    ) -> Result<(), WorkerError> {
        self.send(&Request::Runs { tasks, limits, stop_at_violation })?;
        loop {
            match self.receive()? {
                Answer::Run(run) => {
                    if sink(*run).is_break() {
                        return Ok(());
                    }
                }
                Answer::Done => return Ok(()),
                Answer::Failed(reason) => return Err(WorkerError::Protocol(reason)),
            }
        }
    }

    pub(crate) fn send<T: Serialize>(&mut self, message: &T) -> Result<(), WorkerError> {
        let mut line = serde_json::to_vec(message).expect("messages are plain data");
        line.push(b'\n');
        let input = self.input.as_mut().expect("only drop takes it");
        input.write_all(&line).map_err(|source| WorkerError::System { call: "asking the worker", source })
    }

    pub(crate) fn receive<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, WorkerError> {
        receive(&mut self.output)?
            .ok_or_else(|| WorkerError::Protocol("it ended; its last words are on stderr".to_owned()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A worker ends at the end of its input; one in the middle of its work (after a break) is ended, its children with it.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn receive<T: for<'de> Deserialize<'de>>(from: &mut impl BufRead) -> Result<Option<T>, WorkerError> {
    let mut line = String::new();
    let length =
        from.read_line(&mut line).map_err(|source| WorkerError::System { call: "reading a message", source })?;
    if length == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).map_err(|error| WorkerError::Protocol(format!("{error} in {line:?}")))
}

fn keep_open(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: plain system call.
    if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The far end of the conversation, in a worker or in its child. Input is read without looking ahead beyond what was sent, so a
/// child may go on with the conversation where its parent stands.
pub(crate) struct Line {
    input: BufReader<File>,
    output: File,
}

impl Line {
    /// The conversation that this process was started for.
    pub(crate) fn of_this_process(descriptor: RawFd) -> Line {
        // SAFETY: standard input, and the descriptor that the near end left open for this; neither is used by anyone else, and a
        // child that opens both again ends without running destructors.
        let (input, output) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(descriptor)) };
        Line { input: BufReader::new(File::from(input)), output: File::from(output) }
    }

    /// The same, for a process that goes on using both descriptors by another name when this is dropped.
    pub(crate) fn lasting(self) -> ManuallyDrop<Line> {
        ManuallyDrop::new(self)
    }

    pub(crate) fn send<T: Serialize>(&mut self, message: &T) -> Result<(), WorkerError> {
        let mut line = serde_json::to_vec(message).expect("messages are plain data");
        line.push(b'\n');
        self.output.write_all(&line).map_err(|source| WorkerError::System { call: "answering", source })
    }

    pub(crate) fn receive<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<T>, WorkerError> {
        receive(&mut self.input)
    }
}

/// The descriptor for answers, if this process was started as a worker.
pub fn descriptor() -> Option<RawFd> {
    std::env::var(WORKER).ok()?.parse().ok()
}

/// Serves requests until the near end hangs up.
pub(crate) fn serve(registry: &Registry, descriptor: RawFd) -> Result<(), WorkerError> {
    let mut line = Line::of_this_process(descriptor);
    while let Some(request) = line.receive()? {
        match request {
            Request::Runs { tasks, limits, stop_at_violation } => {
                serve_runs(registry, &mut line, tasks, limits, stop_at_violation)?
            }
            Request::Lockstep(task) => check::serve_lockstep(registry, descriptor, &task)?,
        }
    }
    Ok(())
}

fn serve_runs(
    registry: &Registry,
    line: &mut Line,
    tasks: Vec<Task>,
    limits: Limits,
    stop: bool,
) -> Result<(), WorkerError> {
    let mut hung_up = Ok(());
    let result = super::run(registry, limits, tasks, |run| {
        let violated = !run.report.is_clean();
        hung_up = line.send(&Answer::Run(Box::new(run)));
        if hung_up.is_err() || (violated && stop) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    hung_up?;
    match result {
        Ok(()) => line.send(&Answer::Done),
        Err(error) => line.send(&Answer::Failed(error.to_string())),
    }
}
