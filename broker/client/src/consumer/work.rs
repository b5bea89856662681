//! Giving messages to the listener, and what becomes of them.
use crate::assignment::Ticket;
use crate::config::MessageModel;
use crate::consumer::core::Core;
use crate::consumer::{ConsumeContext, ConsumeOutcome};
use protocol::message::{is_retry_topic, property};
use protocol::{QueueOffset, StoredMessage};
use rt::sync::{Semaphore, cancelled};
use rt::time::sleep;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::warn;

/// How late a worker may go on on a busy machine, in simulation.
const LATE: Duration = Duration::from_millis(20);

/// Messages for one listener call.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    ticket: Ticket,
    messages: Vec<Arc<StoredMessage>>,
}

/// Jobs that no worker has taken yet, first come, first served. Bounded by what the process queues may hold.
pub(crate) struct Jobs {
    queue: Mutex<VecDeque<Job>>,
    ready: Semaphore,
}

impl Default for Jobs {
    fn default() -> Jobs {
        Jobs { queue: Mutex::default(), ready: Semaphore::new(0) }
    }
}

impl Jobs {
    /// Cuts messages into jobs of at most `size`.
    pub(crate) fn push(&self, ticket: &Ticket, messages: Vec<Arc<StoredMessage>>, size: usize) {
        let mut queue = self.lock();
        let before = queue.len();
        queue.extend(messages.chunks(size).map(|part| Job { ticket: ticket.clone(), messages: part.to_vec() }));
        self.ready.add_permits(queue.len() - before);
    }

    /// The next job; waits for one.
    async fn next(&self) -> Option<Job> {
        self.ready.acquire().await.ok()?.forget();
        self.lock().pop_front()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Job>> {
        self.queue.lock().expect("no code that can panic runs under this lock")
    }
}

/// One worker: listener calls one after the other.
pub(crate) async fn worker(core: Arc<Core>) {
    let ended = core.tasks.token().clone();
    rt::select! {
        () = cancelled(&ended) => {}
        () = async {
            while let Some(job) = core.jobs.next().await {
                core.consume(job).await;
            }
        } => {}
    }
}

/// Hands back messages that a listener has had for too long, so that they no longer pin the progress.
pub(crate) async fn expire(core: Arc<Core>) {
    let ended = core.tasks.token().clone();
    loop {
        rt::select! {
            () = ended.cancelled() => return,
            () = sleep(core.config.consume_timeout) => {}
        }
        rt::select! {
            () = ended.cancelled() => return,
            () = core.hand_back_expired() => {}
        }
    }
}

impl Core {
    async fn consume(self: &Arc<Self>, job: Job) {
        let offsets: Vec<QueueOffset> = job.messages.iter().map(|message| message.queue_offset).collect();
        if !self.assignment().begin_consume(&job.ticket, &offsets, self.client.now()) {
            return;
        }
        rt::dawdle!("client.listener_called_late", LATE);
        let messages = job.messages.iter().map(|message| self.as_delivered(message)).collect();
        let context = ConsumeContext { queue: job.ticket.queue.as_ref().clone() };
        let outcome = self.listener.consume(messages, context).await;
        let (accepted, delay_level) = match outcome {
            ConsumeOutcome::Success => (job.messages.len(), 0),
            ConsumeOutcome::Later { delay_level } => (0, delay_level),
            ConsumeOutcome::Partly { accepted, delay_level } => (accepted.min(job.messages.len()), delay_level),
        };
        rt::dawdle!("client.outcome_noted_late", LATE);
        let kept = match self.config.model {
            MessageModel::Clustering => self.hand_back(&job, accepted, delay_level).await,
            MessageModel::Broadcasting => {
                for message in &job.messages[accepted..] {
                    warn!(queue = ?job.ticket.queue, offset = %message.queue_offset, "message not consumed, and not again in broadcasting");
                }
                Vec::new()
            }
        };
        let done: Vec<QueueOffset> =
            offsets.into_iter().filter(|offset| !kept.iter().any(|message| message.queue_offset == *offset)).collect();
        self.assignment().finish(&job.ticket, &done);
        self.retry_here(job.ticket, kept);
    }

    /// Hands the messages from `accepted` on back to their broker. Returns those that nobody took: they stay unfinished here.
    async fn hand_back(&self, job: &Job, accepted: usize, delay_level: i32) -> Vec<Arc<StoredMessage>> {
        let mut kept = Vec::new();
        for message in &job.messages[accepted..] {
            // No longer held: the queue is another's now, or the message was handed back because the call took too long.
            if !self.assignment().is_held(&job.ticket, message.queue_offset) {
                continue;
            }
            if let Err(error) = self.send_back(&job.ticket.queue, message, delay_level).await {
                warn!(queue = ?job.ticket.queue, offset = %message.queue_offset, %error, "message could not be handed back, it is tried again here");
                kept.push(Arc::clone(message));
            }
        }
        kept
    }

    /// Consumes messages again here after a while.
    fn retry_here(self: &Arc<Self>, ticket: Ticket, messages: Vec<Arc<StoredMessage>>) {
        if messages.is_empty() {
            return;
        }
        let again: Vec<Arc<StoredMessage>> = messages
            .into_iter()
            .map(|mut message| {
                Arc::make_mut(&mut message).reconsume_times += 1;
                message
            })
            .collect();
        let offsets: Vec<QueueOffset> = again.iter().map(|message| message.queue_offset).collect();
        if !self.assignment().keep_for_retry(&ticket, &offsets) {
            return;
        }
        let core = Arc::clone(self);
        self.tasks.spawn(async move {
            rt::select! {
                () = ticket.ended.cancelled() => {}
                () = sleep(core.config.local_retry_delay) => {
                    core.jobs.push(&ticket, again, core.config.consume_message_batch_max_size);
                }
            }
        });
    }

    async fn hand_back_expired(&self) {
        /// How often a round may look for the next head.
        const ROUNDS_MAX: usize = 16;
        /// Level 3: ten seconds.
        const EXPIRED_DELAY_LEVEL: i32 = 3;
        for _ in 0..ROUNDS_MAX {
            let heads = self.assignment().expired_heads(self.client.now(), self.config.consume_timeout);
            let mut handed_back = false;
            for (ticket, message) in heads {
                match self.send_back(&ticket.queue, &message, EXPIRED_DELAY_LEVEL).await {
                    Ok(()) => {
                        self.assignment().finish(&ticket, &[message.queue_offset]);
                        handed_back = true;
                    }
                    Err(error) => {
                        warn!(queue = ?ticket.queue, offset = %message.queue_offset, %error, "expired message stays")
                    }
                }
            }
            if !handed_back {
                return;
            }
        }
    }

    /// The message as the listener sees it: one that comes again has its first topic.
    fn as_delivered(&self, message: &StoredMessage) -> StoredMessage {
        let mut message = message.clone();
        if is_retry_topic(&message.topic)
            && let Some(topic) = message.properties.get(property::RETRY_TOPIC)
        {
            message.topic = topic.to_owned();
        }
        message
    }
}
