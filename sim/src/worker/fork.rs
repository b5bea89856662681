//! Children: fork, pipe, watchdog.

use super::{Limits, NO_PANIC, PROCESS, Run, Task};
use crate::error::WorkerError;
use crate::report::Report;
use std::any::Any;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::take;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Stack of the thread that runs a world: deep recursion in a debug build should be a finding only when it is endless.
const STACK_BYTES: usize = 16 << 20;

/// Set in children only.
static HAS_RUN: AtomicBool = AtomicBool::new(false);

struct Child {
    task: Task,
    process: libc::pid_t,
    pipe: File,
    started: Instant,
    text: Vec<u8>,
}

/// The children that run now.
pub(super) struct Pool<'a> {
    limits: Limits,
    work: &'a (dyn Fn(&Task) -> Report + Sync),
    children: Vec<Child>,
}

impl<'a> Pool<'a> {
    pub(super) fn new(limits: Limits, work: &'a (dyn Fn(&Task) -> Report + Sync)) -> Pool<'a> {
        Pool { limits, work, children: Vec::new() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.children.len() < self.limits.jobs.get()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.children.is_empty()
    }

    pub(super) fn start(&mut self, task: Task) -> Result<(), WorkerError> {
        let (reading, writing) = pipe()?;
        let memory = self.limits.memory_bytes;
        let process = fork(|| {
            limit_memory(memory);
            let text =
                serde_json::to_vec(&on_fresh_thread(|| caught(|| (self.work)(&task)))).expect("a report is plain data");
            // A parent that is gone needs no answer.
            let _ = File::from(writing).write_all(&text);
        })?;
        self.children.push(Child {
            task,
            process,
            pipe: File::from(reading),
            started: Instant::now(),
            text: Vec::new(),
        });
        Ok(())
    }

    /// Waits until at least one child has ended or the first time limit has passed; the result may be empty.
    pub(super) fn wait(&mut self) -> Result<Vec<Run>, WorkerError> {
        let mut polled: Vec<libc::pollfd> = self
            .children
            .iter()
            .map(|child| libc::pollfd { fd: child.pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        let limit = self.limits.wall_clock;
        let left =
            self.children.iter().map(|child| limit.saturating_sub(child.started.elapsed())).min().unwrap_or_default();
        let milliseconds = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        // SAFETY: the pointer and the length describe `polled`, whose descriptors are open.
        if unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) } < 0 {
            let source = io::Error::last_os_error();
            if source.kind() != io::ErrorKind::Interrupted {
                return Err(WorkerError::System { call: "poll", source });
            }
        }
        let mut runs = Vec::new();
        for (child, poll) in take(&mut self.children).into_iter().zip(polled) {
            match child.proceed(poll.revents != 0, limit)? {
                Progress::Running(child) => self.children.push(child),
                Progress::Ended(run) => runs.push(run),
            }
        }
        Ok(runs)
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        for child in &self.children {
            kill(child.process);
            let _ = wait_for(child.process);
        }
    }
}

enum Progress {
    Running(Child),
    Ended(Run),
}

impl Child {
    fn proceed(mut self, readable: bool, limit: Duration) -> Result<Progress, WorkerError> {
        if readable {
            let mut chunk = [0; 65_536];
            let length = self.pipe.read(&mut chunk).map_err(|source| WorkerError::System { call: "read", source })?;
            self.text.extend_from_slice(&chunk[..length]);
            if length == 0 {
                let status = wait_for(self.process)?;
                let report =
                    serde_json::from_slice(&self.text).unwrap_or_else(|_| Report::broken(PROCESS, describe(status)));
                return Ok(Progress::Ended(self.ended(report)));
            }
        }
        if self.started.elapsed() < limit {
            return Ok(Progress::Running(self));
        }
        kill(self.process);
        wait_for(self.process)?;
        let limit = crate::duration::format(limit);
        let report = Report::broken(
            PROCESS,
            format!("no answer within {limit} of wall clock: an endless loop, or far too much work"),
        );
        Ok(Progress::Ended(self.ended(report)))
    }

    fn ended(self, report: Report) -> Run {
        Run { task: self.task, report, real_time: self.started.elapsed() }
    }
}

/// The report of `work`, or that it panicked: a judge that is wrong must not end its batch.
pub(super) fn caught(work: impl FnOnce() -> Report) -> Report {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Report::broken(NO_PANIC, message_of(&*payload)))
}

/// Runs `work` on a thread that has run nothing before.
pub(super) fn on_fresh_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    HAS_RUN.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("run".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work).expect("a new child can start one thread");
        thread.join().unwrap_or_else(|payload| resume_unwind(payload))
    })
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    format!("a panic outside of the world's nodes: {}", text.as_deref().unwrap_or("(no message)"))
}

/// Forks; the child does `work` and ends.
pub(super) fn fork(work: impl FnOnce()) -> Result<libc::pid_t, WorkerError> {
    assert!(!HAS_RUN.load(Ordering::Relaxed), "this process has run a world: its children would not start clean");
    // SAFETY: the caller's process is single-threaded, or (a worker under libtest) its other thread only waits for this one to
    // end, so the child's memory has no half-done changes and no lock is held by a thread that does not exist in it.
    match unsafe { libc::fork() } {
        -1 => Err(WorkerError::System { call: "fork", source: io::Error::last_os_error() }),
        0 => {
            // SAFETY: plain system call: no orphan outlives a parent that was killed.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let done = catch_unwind(AssertUnwindSafe(work)).is_ok();
            // SAFETY: ends the child without the destructors and buffers that it shares with its parent.
            unsafe { libc::_exit(if done { 0 } else { 101 }) }
        }
        child => Ok(child),
    }
}

/// A pipe that no other program inherits.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), WorkerError> {
    let mut ends: [RawFd; 2] = [0; 2];
    // SAFETY: the array has room for both descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(WorkerError::System { call: "pipe", source: io::Error::last_os_error() });
    }
    // SAFETY: both were just opened and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

fn limit_memory(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: reads one struct. If the system refuses, the run is merely not limited.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
}

fn kill(process: libc::pid_t) {
    // SAFETY: plain system call on a child that was not waited for yet, so the number is still its own.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Waits for a child to end and gives its status.
pub(super) fn wait_for(process: libc::pid_t) -> Result<i32, WorkerError> {
    let mut status = 0;
    loop {
        // SAFETY: writes one integer.
        if unsafe { libc::waitpid(process, &raw mut status, 0) } == process {
            return Ok(status);
        }
        let source = io::Error::last_os_error();
        if source.kind() != io::ErrorKind::Interrupted {
            return Err(WorkerError::System { call: "waitpid", source });
        }
    }
}

/// What a status without a report says.
pub(super) fn describe(status: i32) -> String {
    if !libc::WIFSIGNALED(status) {
        return format!("the process ended with status {} before it had a report", libc::WEXITSTATUS(status));
    }
    match libc::WTERMSIG(status) {
        libc::SIGABRT => {
            "aborted: stack overflow, out of memory, or a panic while unwinding (its last words are on stderr)"
                .to_owned()
        }
        libc::SIGSEGV | libc::SIGBUS => "killed by a bad memory access".to_owned(),
        libc::SIGKILL => "killed from outside, perhaps because the machine ran out of memory".to_owned(),
        signal => format!("killed by signal {signal}"),
    }
}
