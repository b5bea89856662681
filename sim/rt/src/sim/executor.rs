//! Tasks and the poll of one of them.
use super::crash;
use super::finding::FindingKind;
use super::node::{Node, NodeId};
use super::policy::{Picker, Policy};
use super::task::TaskId;
use super::trace::Event;
use super::waker::waker;
use super::world::{Coming, World};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A task's future.
pub(super) type Local = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    /// Bumped when the task ends: its wakers and handles find nothing.
    generation: u32,
    node: NodeId,
    /// It is among the ready or the parked, so a wake has nothing to do.
    queued: bool,
    live: bool,
    /// To be dropped instead of polled.
    aborted: bool,
    /// Out of its slot while it is polled.
    future: Option<Local>,
}

pub(crate) struct Executor {
    tasks: RefCell<Vec<Task>>,
    free: RefCell<Vec<u32>>,
    ready: RefCell<VecDeque<u32>>,
    picker: RefCell<Picker>,
    /// The node of the task that is being polled: it cannot be ended before the poll returns.
    pub(super) polled: Cell<Option<NodeId>>,
    polls: Cell<u64>,
    /// Value of `polls` when time last moved.
    polls_before_instant: Cell<u64>,
}

impl Executor {
    pub(super) fn new(seed: u64, policy: &Policy) -> Executor {
        Executor {
            tasks: RefCell::default(),
            free: RefCell::default(),
            ready: RefCell::default(),
            picker: RefCell::new(Picker::new(seed, policy)),
            polled: Cell::new(None),
            polls: Cell::new(0),
            polls_before_instant: Cell::new(0),
        }
    }

    pub(super) fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// Tells that time has moved on.
    pub(super) fn new_instant(&self) {
        self.polls_before_instant.set(self.polls.get());
    }

    /// Makes the task ready, unless it has ended or is ready.
    #[inline]
    pub(super) fn wake(&self, slot: u32, generation: u32) {
        let mut tasks = self.tasks.borrow_mut();
        // A waker kept over the end of its world may name a slot that this world does not have.
        if let Some(task) = tasks.get_mut(slot as usize)
            && task.generation == generation
            && !task.queued
        {
            task.queued = true;
            self.ready.borrow_mut().push_back(slot);
        }
    }

    /// Polls one ready task, or sees that it may not run now. False: none is ready.
    pub(super) fn turn(&self, world: &World) -> bool {
        let (slot, choices) = {
            let mut ready = self.ready.borrow_mut();
            let choices = ready.len() as u64;
            let picked = self.picker.borrow_mut().pick(&mut ready, self.polls.get());
            let Some(slot) = picked else { return false };
            (slot, choices)
        };
        if let Some((future, generation, node)) = self.take(world, slot) {
            world.node.set(node.id);
            world.task.set(slot);
            world.record(Event::Pick, choices << 32 | u64::from(slot));
            self.poll(world, slot, generation, node, future);
            world.task.set(u32::MAX);
            if let Some(kind) = node.doomed.get() {
                crash::end(world, node, kind);
            }
        }
        true
    }

    /// Takes the future of a picked task out of its slot, if it may run.
    #[inline]
    fn take<'w>(&self, world: &'w World, slot: u32) -> Option<(Local, u32, &'w Node)> {
        let mut tasks = self.tasks.borrow_mut();
        let task = &mut tasks[slot as usize];
        let node = world.at(task.node);
        if node.paused.get() || node.busy_until.get() > world.now.get() {
            // Still `queued`: it waits in another line, and a wake need not put it into the first.
            if task.live {
                node.parked.borrow_mut().push(slot);
                drop(tasks);
                await_processor(world, node);
            } else {
                task.queued = false;
            }
            return None;
        }
        task.queued = false;
        let future = task.future.take()?;
        if task.aborted {
            self.release(&mut tasks, slot);
            drop(tasks);
            world.node.set(node.id);
            drop_future(world, future);
            return None;
        }
        Some((future, task.generation, node))
    }

    #[inline]
    fn poll(&self, world: &World, slot: u32, generation: u32, node: &Node, mut future: Local) {
        let polls = self.polls.get() + 1;
        self.polls.set(polls);
        if polls - self.polls_before_instant.get() > world.config.limits.polls_per_instant_max {
            let message = format!(
                "{} polls at one instant, the last of task {slot}",
                polls - self.polls_before_instant.get() - 1
            );
            world.report_here(FindingKind::Livelock, message, None);
        }
        let waker = waker(slot, generation);
        let mut context = Context::from_waker(&waker);
        self.polled.set(Some(node.id));
        let result = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
        self.polled.set(None);
        if node.poll_cost.get() > 0 {
            node.busy_until.set(world.now.get() + node.poll_cost.get());
        }
        {
            let mut tasks = self.tasks.borrow_mut();
            let task = &mut tasks[slot as usize];
            if matches!(result, Ok(Poll::Pending)) && !task.aborted {
                task.future = Some(future);
                return;
            }
            self.release(&mut tasks, slot);
        }
        if let Err(payload) = result {
            world.report_panic(&*payload);
        }
        drop_future(world, future);
    }

    fn release(&self, tasks: &mut [Task], slot: u32) {
        let task = &mut tasks[slot as usize];
        assert!(task.live, "a task ends once");
        task.live = false;
        task.generation = task.generation.wrapping_add(1);
        self.free.borrow_mut().push(slot);
    }

    /// Adds a ready task.
    pub(super) fn insert(&self, world: &World, node: NodeId, future: Local) -> TaskId {
        let mut tasks = self.tasks.borrow_mut();
        let slot = self.free.borrow_mut().pop().unwrap_or_else(|| {
            tasks.push(Task { generation: 0, node, queued: false, live: false, aborted: false, future: None });
            u32::try_from(tasks.len() - 1).expect("tasks are fewer than 2^32")
        });
        let task = &mut tasks[slot as usize];
        task.node = node;
        task.live = true;
        task.aborted = false;
        task.future = Some(future);
        // The slot of a task that was ended while ready still stands in the line.
        if !task.queued {
            task.queued = true;
            self.ready.borrow_mut().push_back(slot);
        }
        let id = TaskId { slot, generation: task.generation };
        drop(tasks);
        self.picker.borrow_mut().started(slot);
        world.record(Event::Spawn, u64::from(slot));
        id
    }

    /// Asks that the task be dropped when it is picked next, or when its present poll returns.
    pub(super) fn abort(&self, id: TaskId) {
        {
            let mut tasks = self.tasks.borrow_mut();
            let Some(task) =
                tasks.get_mut(id.slot as usize).filter(|task| task.live && task.generation == id.generation)
            else {
                return;
            };
            task.aborted = true;
        }
        self.wake(id.slot, id.generation);
    }

    pub(super) fn is_finished(&self, id: TaskId) -> bool {
        self.tasks.borrow().get(id.slot as usize).is_none_or(|task| task.generation != id.generation)
    }

    /// Lets the polled task fall below all others, under a policy of priorities.
    pub(super) fn yielded(&self, world: &World) {
        if self.polled.get().is_some() {
            self.picker.borrow_mut().yielded(world.task.get());
        }
    }

    /// Puts what waited for the end of a pause, or for the processor, back among the ready.
    pub(super) fn unpark(&self, node: &Node) {
        self.ready.borrow_mut().extend(node.parked.borrow_mut().drain(..));
    }

    /// Drops every task of the node in slot order; the caller has marked the node as dying and current.
    pub(super) fn kill(&self, world: &World, node: &Node) {
        let mut ended = Vec::new();
        {
            let mut tasks = self.tasks.borrow_mut();
            for slot in node.parked.borrow_mut().drain(..) {
                tasks[slot as usize].queued = false;
            }
            for slot in 0..tasks.len() {
                let task = &mut tasks[slot];
                if task.node == node.id && task.live {
                    ended.extend(task.future.take());
                    self.release(&mut tasks, slot as u32);
                }
            }
        }
        for future in ended {
            drop_future(world, future);
        }
    }

    /// How many tasks `node` has.
    pub(super) fn tasks_of(&self, node: NodeId) -> usize {
        self.tasks.borrow().iter().filter(|task| task.live && task.node == node).count()
    }
}

/// Schedules the end of the node's busy time once, if that is what its parked tasks wait for.
fn await_processor(world: &World, node: &Node) {
    if !node.paused.get() && !node.processor_awaited.replace(true) {
        world.schedule(node.busy_until.get(), Coming::Processor(node.id));
    }
}

/// A panic in a destructor is a finding too. (A second one while unwinding aborts the process: nobody can catch that.)
pub(super) fn drop_future(world: &World, future: Local) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(future))) {
        world.report_panic(&*payload);
    }
}
