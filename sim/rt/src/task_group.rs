use crate::sync::CancellationToken;
use crate::task::{AbortHandle, JoinHandle, spawn};
use std::future::Future;
use std::sync::Mutex;

/// Tasks with an owner. Each task gets the group's [`CancellationToken`] by [`TaskGroup::token`]; [`TaskGroup::shutdown`] cancels
/// it and waits for all; dropping the group aborts what is left, so no task outlives its owner.
#[derive(Debug, Default)]
pub struct TaskGroup {
    token: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl TaskGroup {
    /// A group that ends when `parent` is cancelled, or by its own [`shutdown`](Self::shutdown).
    pub fn child_of(parent: &CancellationToken) -> TaskGroup {
        TaskGroup { token: parent.child_token(), tasks: Mutex::default() }
    }

    /// Cancelled when the group is asked to end.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Starts a task that this group owns. Ended tasks are forgotten here, so a group may spawn for ever.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let handle = spawn(future);
        let abort = handle.abort_handle();
        let mut tasks = self.lock();
        if tasks.len() == tasks.capacity() {
            tasks.retain(|task| !task.is_finished());
        }
        tasks.push(handle);
        abort
    }

    /// Number of tasks that have not ended.
    pub fn running(&self) -> usize {
        self.lock().iter().filter(|task| !task.is_finished()).count()
    }

    /// Cancels the token and waits until each task has ended.
    pub async fn shutdown(&self) {
        self.token.cancel();
        loop {
            let Some(task) = self.lock().pop() else { return };
            // A task that was aborted or has panicked has ended too; the runtime reports the panic itself.
            let _ = task.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.tasks.lock().expect("no code that can panic runs under this lock")
    }
}

impl Drop for TaskGroup {
    fn drop(&mut self) {
        self.token.cancel();
        for task in self.lock().drain(..) {
            task.abort();
        }
    }
}
