//! Pulling one queue for as long as it is owned: one task per ownership, so there is never more than one pull under way.
use crate::assignment::{PullGate, PullPoint, Ticket};
use crate::consumer::core::Core;
use crate::error::CallError;
use crate::process_queue::FlowLimits;
use crate::pull::{self, Pulled, Status};
use protocol::QueueOffset;
use protocol::body::SubscriptionData;
use rt::sync::cancelled;
use rt::time::sleep;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info, warn};

/// Why an ownership begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    /// The queue was taken.
    Taken,
    /// Progress was put elsewhere, which is to be stored before anything else.
    AfterReset(QueueOffset),
}

/// Starts the task.
pub(crate) fn spawn(core: &Arc<Core>, ticket: Ticket, begin: Begin) {
    let (core, ended) = (Arc::clone(core), ticket.ended.clone());
    core.clone().tasks.spawn(async move {
        rt::select! {
            () = cancelled(&ended) => {}
            () = run(&core, &ticket, begin) => {}
        }
    });
}

async fn run(core: &Arc<Core>, ticket: &Ticket, begin: Begin) {
    if let Begin::AfterReset(at) = begin {
        core.store_now(&[(ticket.queue.as_ref().clone(), at)]).await;
    }
    let mut delay = core.config.first_pull_delay;
    loop {
        if !delay.is_zero() {
            sleep(delay).await;
        }
        rt::dawdle!("client.pull_late", Duration::from_millis(50));
        match core.pull_once(ticket).await {
            Some(next) => delay = next,
            None => return,
        }
    }
}

impl Core {
    /// One round. Returns the wait before the next; `None` ends the loop.
    async fn pull_once(self: &Arc<Self>, ticket: &Ticket) -> Option<Duration> {
        let limits = FlowLimits {
            messages: self.config.pull_threshold_for_queue,
            mib: self.config.pull_threshold_size_mib_for_queue,
            span: self.config.consume_concurrently_max_span,
        };
        let gate = self.assignment().consider_pull(ticket, limits, self.client.now());
        let point = match gate {
            PullGate::Ended => return None,
            PullGate::Full => return Some(self.config.flow_control_delay),
            PullGate::Open(point) => point,
        };
        let on_error = self.client.config().pull_delay_on_error;
        let Some(subscription) = self.subscription(&ticket.queue.topic) else { return Some(on_error) };
        match self.pull(ticket, point, &subscription).await {
            Ok(pulled) if matches!(pulled.status, Status::Nothing) && self.has_only_slaves(ticket) => {
                self.take_in(ticket, point, pulled, &subscription);
                Some(on_error)
            }
            Ok(pulled) => self.take_in(ticket, point, pulled, &subscription),
            Err(error) => {
                debug!(queue = ?ticket.queue, %error, "pull failed");
                Some(pull::delay_after(&error, on_error))
            }
        }
    }

    /// A slave with nothing more sends its readers to the master at once. As long as the route lists none, they come straight back:
    /// without a wait this member would ask as fast as the network carries, from the master's return to the next route refresh.
    fn has_only_slaves(&self, ticket: &Ticket) -> bool {
        self.client.routes(|routes| routes.master(&ticket.queue.broker_name).is_none())
    }

    async fn pull(
        &self,
        ticket: &Ticket,
        point: PullPoint,
        subscription: &SubscriptionData,
    ) -> Result<Pulled, CallError> {
        let replica = self.client.replica_of(&ticket.queue, point.replica).await?;
        let request = pull::request(&self.config, subscription, &ticket.queue, point, replica.is_slave);
        let answer = self.client.call(&replica.addr, request, self.config.pull_timeout).await?;
        pull::read(&replica.addr, &answer)
    }

    fn take_in(
        self: &Arc<Self>,
        ticket: &Ticket,
        point: PullPoint,
        pulled: Pulled,
        subscription: &SubscriptionData,
    ) -> Option<Duration> {
        self.assignment().suggest(ticket, pulled.replica);
        match pulled.status {
            Status::Found(messages) => {
                if messages.first().is_some_and(|first| first.queue_offset < point.from) {
                    warn!(queue = ?ticket.queue, from = %point.from, "broker answered with messages below the offset asked for");
                }
                let messages = pull::wanted(messages, subscription);
                let fresh = self.assignment().received(ticket, messages, pulled.next);
                self.jobs.push(ticket, fresh, self.config.consume_message_batch_max_size);
                Some(self.config.pull_interval)
            }
            Status::Nothing => {
                self.assignment().nothing_found(ticket, pulled.next);
                Some(Duration::ZERO)
            }
            Status::OffsetIllegal => {
                info!(queue = ?ticket.queue, from = %point.from, to = %pulled.next, "offset is illegal, going on elsewhere");
                self.restart(ticket, pulled.next);
                None
            }
        }
    }
}
