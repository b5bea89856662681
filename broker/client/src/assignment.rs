//! The queues a consumer owns: what is held of each, how far it is done, where it is pulled next. One structure under one lock, so
//! that "is it still mine" and "then move its progress" are one step.
//!
//! Each taking of a queue has a *generation*. Whatever was begun under a former generation (a pull in flight, a listener's call, a
//! late result) finds its [`Ticket`] void and changes nothing. `now` is the time since any fixed origin.
use crate::process_queue::{FlowLimits, ProcessQueue};
use protocol::{MessageQueue, QueueOffset, StoredMessage};
use rt::sync::CancellationToken;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// One ownership of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) queue: Arc<MessageQueue>,
    generation: u64,
    /// Cancelled when this ownership ends.
    pub(crate) ended: CancellationToken,
}

#[derive(Debug)]
struct Owned {
    ticket: Ticket,
    held: ProcessQueue,
    /// The next offset to consume, as far as it is known; what commits carry.
    progress: Option<QueueOffset>,
    /// The next offset to pull.
    next: QueueOffset,
    /// When a pull was last considered.
    considered: Duration,
    /// Broker id that the last answer suggested to pull from.
    replica: i64,
}

/// Whether and what to pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PullGate {
    /// The ownership has ended.
    Ended,
    /// Too much is held.
    Full,
    /// Pull from here.
    Open(PullPoint),
}

/// What a pull of a queue starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PullPoint {
    pub(crate) from: QueueOffset,
    pub(crate) progress: Option<QueueOffset>,
    pub(crate) replica: i64,
}

/// All queues of one consumer.
#[derive(Debug)]
pub(crate) struct Assignment {
    owned: BTreeMap<Arc<MessageQueue>, Owned>,
    generations: u64,
    /// Cancelled when the consumer ends, and all ownerships with it.
    ended: CancellationToken,
}

impl Assignment {
    /// No queue is owned yet.
    pub(crate) fn new(ended: CancellationToken) -> Assignment {
        Assignment { owned: BTreeMap::new(), generations: 0, ended }
    }

    /// Takes a queue. `progress`: what is stored for it, if anything. `None`: it is owned already.
    pub(crate) fn take(
        &mut self,
        queue: &MessageQueue,
        from: QueueOffset,
        progress: Option<QueueOffset>,
        now: Duration,
    ) -> Option<Ticket> {
        if self.owned.contains_key(queue) {
            return None;
        }
        let ticket = self.new_ticket(Arc::new(queue.clone()));
        let owned = Owned {
            ticket: ticket.clone(),
            held: ProcessQueue::default(),
            progress,
            next: from,
            considered: now,
            replica: 0,
        };
        self.owned.insert(Arc::clone(&ticket.queue), owned);
        Some(ticket)
    }

    /// Ends the ownership. Returns the progress to be stored, if the queue was owned and has any.
    pub(crate) fn give_up(&mut self, queue: &MessageQueue) -> Option<QueueOffset> {
        let owned = self.owned.remove(queue)?;
        owned.ticket.ended.cancel();
        owned.progress
    }

    /// An explicit reset: ends this ownership and begins the next at `at`, forward or back, so that nothing still being consumed can
    /// move it. `None`: the ownership has ended.
    pub(crate) fn restart(&mut self, ticket: &Ticket, at: QueueOffset, now: Duration) -> Option<Ticket> {
        let replica = self.current(ticket)?.replica;
        self.give_up(&ticket.queue);
        let next = self.take(&ticket.queue, at, Some(at), now);
        if let Some(owned) = self.owned.get_mut(&ticket.queue) {
            owned.replica = replica;
        }
        next
    }

    /// The present ownership of a queue.
    pub(crate) fn ticket(&self, queue: &MessageQueue) -> Option<Ticket> {
        self.owned.get(queue).map(|owned| owned.ticket.clone())
    }

    /// Whether a pull may begin.
    pub(crate) fn consider_pull(&mut self, ticket: &Ticket, limits: FlowLimits, now: Duration) -> PullGate {
        let Some(owned) = self.current_mut(ticket) else { return PullGate::Ended };
        owned.considered = now;
        if owned.held.is_over(limits) {
            return PullGate::Full;
        }
        PullGate::Open(PullPoint { from: owned.next, progress: owned.progress, replica: owned.replica })
    }

    /// Which replica to ask next time.
    pub(crate) fn suggest(&mut self, ticket: &Ticket, replica: i64) {
        if let Some(owned) = self.current_mut(ticket) {
            owned.replica = replica;
        }
    }

    /// A pull found messages; `next` is where to go on. Returns those to consume.
    pub(crate) fn received(
        &mut self,
        ticket: &Ticket,
        messages: Vec<Arc<StoredMessage>>,
        next: QueueOffset,
    ) -> Vec<Arc<StoredMessage>> {
        let Some(owned) = self.current_mut(ticket) else { return Vec::new() };
        let fresh = owned.held.put(messages);
        owned.pulled_up_to(owned.held.end().map_or(next, |end| end.max(next)));
        fresh
    }

    /// A pull found nothing that is wanted up to `next`.
    pub(crate) fn nothing_found(&mut self, ticket: &Ticket, next: QueueOffset) {
        if let Some(owned) = self.current_mut(ticket) {
            owned.pulled_up_to(next);
        }
    }

    /// A listener is about to get the messages. False: the ownership has ended, it must not.
    pub(crate) fn begin_consume(&mut self, ticket: &Ticket, offsets: &[QueueOffset], now: Duration) -> bool {
        let Some(owned) = self.current_mut(ticket) else { return false };
        owned.held.mark_started(offsets, now);
        true
    }

    /// Whether the message is unfinished under this ownership.
    pub(crate) fn is_held(&self, ticket: &Ticket, offset: QueueOffset) -> bool {
        self.current(ticket).is_some_and(|owned| owned.held.contains(offset))
    }

    /// The messages are done: consumed, or safely handed back. Moves the progress, only forward.
    pub(crate) fn finish(&mut self, ticket: &Ticket, offsets: &[QueueOffset]) {
        let Some(owned) = self.current_mut(ticket) else { return };
        if let Some(lowest) = owned.held.remove(offsets) {
            owned.advance(lowest);
        }
    }

    /// The messages will be consumed again here. False: the ownership has ended.
    pub(crate) fn keep_for_retry(&mut self, ticket: &Ticket, offsets: &[QueueOffset]) -> bool {
        let Some(owned) = self.current_mut(ticket) else { return false };
        owned.held.mark_waiting(offsets);
        true
    }

    /// Per queue the lowest unfinished message, where a listener has had it for longer than `timeout`.
    pub(crate) fn expired_heads(&self, now: Duration, timeout: Duration) -> Vec<(Ticket, Arc<StoredMessage>)> {
        let heads = self.owned.values().map(|owned| (owned, owned.held.expired_head(now, timeout)));
        heads.filter_map(|(owned, head)| head.map(|message| (owned.ticket.clone(), message))).collect()
    }

    /// Queues for which no pull was considered for `idle_max`.
    pub(crate) fn idle(&self, now: Duration, idle_max: Duration) -> Vec<MessageQueue> {
        let idle = self.owned.values().filter(|owned| now.saturating_sub(owned.considered) > idle_max);
        idle.map(|owned| owned.ticket.queue.as_ref().clone()).collect()
    }

    /// The owned queues of a topic.
    pub(crate) fn queues_of(&self, topic: &str) -> BTreeSet<MessageQueue> {
        self.owned.keys().filter(|queue| queue.topic == topic).map(|queue| queue.as_ref().clone()).collect()
    }

    /// All owned queues.
    pub(crate) fn queues(&self) -> Vec<MessageQueue> {
        self.owned.keys().map(|queue| queue.as_ref().clone()).collect()
    }

    /// Progress of all owned queues that have any.
    pub(crate) fn progress(&self) -> Vec<(MessageQueue, QueueOffset)> {
        let known = self.owned.iter().filter_map(|(queue, owned)| Some((queue.as_ref().clone(), owned.progress?)));
        known.collect()
    }

    /// Messages held, all queues together.
    pub(crate) fn held(&self) -> usize {
        self.owned.values().map(|owned| owned.held.len()).sum()
    }

    fn new_ticket(&mut self, queue: Arc<MessageQueue>) -> Ticket {
        self.generations += 1;
        Ticket { queue, generation: self.generations, ended: self.ended.child_token() }
    }

    fn current(&self, ticket: &Ticket) -> Option<&Owned> {
        self.owned.get(&ticket.queue).filter(|owned| owned.ticket.generation == ticket.generation)
    }

    fn current_mut(&mut self, ticket: &Ticket) -> Option<&mut Owned> {
        self.owned.get_mut(&ticket.queue).filter(|owned| owned.ticket.generation == ticket.generation)
    }
}

impl Owned {
    /// The next pull starts at `next`, never before what was pulled already: only an explicit reset goes back. (A slave that is behind
    /// may name its own end.)
    fn pulled_up_to(&mut self, next: QueueOffset) {
        self.next = self.next.max(next);
        if self.held.is_empty() {
            // Everything below is done or not wanted.
            self.advance(self.next);
        }
    }

    fn advance(&mut self, to: QueueOffset) {
        // Nothing can be done that was not pulled.
        assert!(to <= self.next);
        self.progress = self.progress.max(Some(to));
    }
}

#[cfg(test)]
mod tests;
