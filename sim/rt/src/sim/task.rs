//! Spawning, and handles of tasks.
use super::executor::{Local, drop_future};
use super::node::NodeId;
use super::sight::Sight;
use super::world::{World, try_world, world};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TaskId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl TaskId {
    /// Of a task that has never run.
    const NONE: TaskId = TaskId { slot: u32::MAX, generation: u32::MAX };
}

/// Starts a task on the current node. Dropping the handle detaches it. (In production code use [`TaskGroup`](crate::task::TaskGroup).)
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn_on(world().node.get(), future)
}

/// Starts a task on `node`, which is started first if it was without power. On a node that is just being ended (a destructor
/// spawns) the future is dropped at once.
pub(super) fn spawn_on<F>(node: NodeId, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let world = world();
    let (sender, receiver) = oneshot::channel();
    let id = start(world, node, Box::pin(Joined { future, sender: Some(sender) }));
    JoinHandle { receiver, id }
}

pub(super) fn start(world: &World, node: NodeId, future: Local) -> TaskId {
    let machine = world.at(node);
    if machine.dying.get() {
        drop_future(world, future);
        return TaskId::NONE;
    }
    machine.up.set(true);
    if world.is_looked_at() && world.executor.tasks_of(node) == 0 {
        world.show(&Sight::Starts { node });
    }
    world.executor.insert(world, node, future)
}

/// A future that hands its output over. Not an `async` block, which would hold the future twice.
struct Joined<F: Future> {
    future: F,
    sender: Option<oneshot::Sender<F::Output>>,
}

impl<F: Future> Future for Joined<F> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: `future` is pinned with `self`, never moved out, and `Joined` has no `Drop`; `sender` is not pinned.
        let (future, sender) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &mut this.sender)
        };
        let output = ready!(future.poll(cx));
        // What a doomed node still computes reaches nobody.
        if let Some(sender) = sender.take()
            && world().here().doomed.get().is_none()
        {
            // The handle may have been dropped: the output is then nobody's.
            let _ = sender.send(output);
        }
        Poll::Ready(())
    }
}

/// Waits for a task's output.
#[derive(Debug)]
pub struct JoinHandle<T> {
    receiver: oneshot::Receiver<T>,
    id: TaskId,
}

impl<T> JoinHandle<T> {
    /// Asks that the task be dropped: at its next pick, or when its present poll returns.
    pub fn abort(&self) {
        self.abort_handle().abort();
    }

    /// Aborts the task from elsewhere.
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle(self.id)
    }

    /// Whether the task has ended, in whatever way.
    pub fn is_finished(&self) -> bool {
        self.abort_handle().is_finished()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(cx).map(|output| output.map_err(|_| JoinError(())))
    }
}

/// Ends a task.
#[derive(Clone, Debug)]
pub struct AbortHandle(TaskId);

impl AbortHandle {
    /// Asks that the task be dropped: at its next pick, or when its present poll returns.
    pub fn abort(&self) {
        // Destructors abort, and may run after the end of the world, where no task is left.
        if let Some(world) = try_world() {
            world.executor.abort(self.0);
        }
    }

    /// Whether the task has ended, in whatever way.
    pub fn is_finished(&self) -> bool {
        try_world().is_none_or(|world| world.executor.is_finished(self.0))
    }
}

/// The task was aborted, or its node was ended. (A panic ends the run, so nobody sees one here.)
#[derive(Debug)]
pub struct JoinError(());

impl JoinError {
    /// Always true, see [`JoinError`].
    pub fn is_cancelled(&self) -> bool {
        true
    }

    /// Always false, see [`JoinError`].
    pub fn is_panic(&self) -> bool {
        false
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("task was cancelled")
    }
}

impl std::error::Error for JoinError {}

/// Lets other tasks run first.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        let world = world();
        world.executor.yielded(world);
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
