//! Push consumers at work: each listener call becomes an operation of the history.

use crate::kinds::Failing;
use crate::machines::Machines;
use crate::operation::{Ask, Queue, Recorder, Told};
use crate::plan::{Consumer, Model, Plan, TOPIC};
use crate::producers::client_config;
use client::{
    ClientInstance, ConsumeContext, ConsumeFrom, ConsumeOutcome, ConsumerConfig, Listener, MessageModel,
    MessageSelector, PushConsumer,
};
use protocol::StoredMessage;
use protocol::message::is_retry_topic;
use remoting::BoxFuture;
use rt::sync::{CancellationToken, Notify};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Which consumers are to run, and those that do. Clones are the same roster.
#[derive(Clone, Default)]
pub struct Roster(Arc<Mutex<BTreeMap<String, Member>>>);

#[derive(Default)]
struct Member {
    /// Whether the plan wants it to run.
    wanted: bool,
    /// Incarnation of its node, and the consumer that runs there.
    running: Option<(u32, Arc<PushConsumer>)>,
    leave: Arc<Notify>,
}

impl Roster {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Member>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }

    /// Queues that the node's consumer owns; none if it does not run.
    pub fn owned(&self, machines: &Machines, name: &str) -> Option<Vec<Queue>> {
        let consumer = {
            let members = self.lock();
            let (incarnation, consumer) = members.get(name)?.running.as_ref()?;
            (rt::world::incarnation(machines.node(name)) == *incarnation).then(|| Arc::clone(consumer))?
        };
        let ours = |queue: protocol::MessageQueue| {
            (queue.topic == TOPIC).then_some(Queue { broker: queue.broker_name, id: queue.queue_id })
        };
        Some(consumer.assigned().into_iter().filter_map(ours).collect())
    }

    /// Consumers that the plan wants to run.
    pub fn wanted(&self) -> Vec<String> {
        self.lock().iter().filter(|(_, member)| member.wanted).map(|(name, _)| name.clone()).collect()
    }

    /// The plan wants it to run from now on. Whether that is news.
    pub fn join(&self, name: &str) -> bool {
        let mut members = self.lock();
        !std::mem::replace(&mut members.entry(name.to_owned()).or_default().wanted, true)
    }

    /// The plan wants it to leave in order.
    pub fn leave(&self, name: &str) {
        if let Some(member) = self.lock().get_mut(name) {
            member.wanted = false;
            member.leave.notify_one();
        }
    }
}

/// What a consumer node does from its (re)start on, if the plan wants it to run.
pub fn boot(
    plan: &Plan,
    machines: &Machines,
    name: &str,
    roster: &Roster,
    recorder: &Recorder,
) -> impl Fn() + Send + Sync + 'static + use<> {
    let names = plan.clients.consumer_names();
    let consumer = names.iter().find(|(node, _)| node == name).map(|(_, consumer)| (*consumer).clone());
    let consumer = consumer.expect("the caller asks for consumers of the plan");
    let mut instance = client_config(plan, machines, name);
    instance.persist_consumer_offset_interval = consumer.persist_interval;
    let node = machines.node(name);
    let (name, roster, recorder) = (name.to_owned(), roster.clone(), recorder.clone());
    move || {
        let leave = {
            let mut members = roster.lock();
            let member = members.entry(name.clone()).or_default();
            member.running = None;
            if !member.wanted {
                return;
            }
            // A wish to leave that an earlier life did not hear of.
            member.leave = Arc::new(Notify::new());
            Arc::clone(&member.leave)
        };
        let (consumer, instance) = (consumer.clone(), instance.clone());
        let (name, roster, recorder) = (name.clone(), roster.clone(), recorder.clone());
        drop(rt::world::spawn_on(node, async move {
            let token = CancellationToken::new();
            let client = ClientInstance::start(instance, &token).expect("the configuration is made here");
            let recording = Recording {
                client: name.clone(),
                group: consumer.group.clone(),
                work: consumer.work,
                failing: consumer.failing,
                recorder: recorder.clone(),
            };
            let topics = vec![(TOPIC.to_owned(), selector(&consumer))];
            let started = PushConsumer::start(&client, config(&consumer), topics, Arc::new(recording)).await;
            let running = Arc::new(started.expect("the first of its instance, with a sound configuration"));
            let incarnation = rt::world::incarnation(node);
            roster.lock().entry(name.clone()).or_default().running = Some((incarnation, running));
            recorder.node(&name, "joined");
            leave.notified().await;
            let running = roster.lock().get_mut(&name).and_then(|member| member.running.take());
            if let Some(consumer) = running.and_then(|(_, consumer)| Arc::into_inner(consumer)) {
                consumer.shutdown().await;
            }
            recorder.node(&name, "left");
            client.shutdown().await;
        }));
    }
}

/// By tags, or by an expression that must be true for the same messages and null for those without a tag.
fn selector(consumer: &Consumer) -> MessageSelector {
    if !consumer.by_sql || consumer.tags.is_empty() {
        return MessageSelector::tags(&consumer.tags.join(" || "));
    }
    MessageSelector::sql(&format!("NOT (TAGS NOT IN ('{}'))", consumer.tags.join("', '")))
}

fn config(consumer: &Consumer) -> ConsumerConfig {
    let mut config = ConsumerConfig::new(&consumer.group);
    config.consume_from = ConsumeFrom::FirstOffset;
    config.model = match consumer.model {
        Model::Clustering => MessageModel::Clustering,
        Model::Broadcasting => MessageModel::Broadcasting,
    };
    config.local_offset_dir = PathBuf::from("/data/offsets");
    config.max_reconsume_times = consumer.failing.and_then(|failing| failing.retries_max);
    config
}

struct Recording {
    client: String,
    group: String,
    work: Duration,
    failing: Option<Failing>,
    recorder: Recorder,
}

impl Recording {
    /// What the history says of a call of the listener.
    fn asks(&self, message: &StoredMessage, context: &ConsumeContext) -> Ask {
        let group = self.group.clone();
        let queue = Queue { broker: context.queue.broker_name.clone(), id: message.queue_id };
        let (offset, reconsume_times) = (message.queue_offset.0, message.reconsume_times);
        let key = message.properties.keys().next().unwrap_or_default().to_owned();
        if is_retry_topic(&context.queue.topic) {
            Ask::ConsumeAgain { group, queue, offset, key, reconsume_times }
        } else {
            Ask::Consume { group, queue, offset, key, reconsume_times }
        }
    }

    fn fails(&self, message: &StoredMessage) -> bool {
        let key = message.properties.keys().next().unwrap_or_default();
        self.failing.is_some_and(|failing| failing.fails(key, message.reconsume_times))
    }
}

impl Listener for Recording {
    fn consume(&self, messages: Vec<StoredMessage>, context: ConsumeContext) -> BoxFuture<'static, ConsumeOutcome> {
        let (client, recorder, mut work) = (self.client.clone(), self.recorder.clone(), Duration::ZERO);
        let mut begun = Vec::new();
        let delay_level = self.failing.map_or(0, |failing| failing.level);
        let accepted = messages.iter().position(|message| self.fails(message)).unwrap_or(messages.len());
        for message in messages {
            let ask = self.asks(&message, &context);
            work += self.work * u32::try_from(message.queue_offset.0.rem_euclid(3)).expect("below 3");
            begun.push(recorder.invoke(&client, ask));
        }
        Box::pin(async move {
            if !work.is_zero() {
                rt::time::sleep(work).await;
            }
            let all = begun.len();
            for (place, asked) in begun.into_iter().enumerate() {
                asked.ok(if place < accepted { Told::Consumed } else { Told::Later });
            }
            if accepted == all { ConsumeOutcome::Success } else { ConsumeOutcome::Partly { accepted, delay_level } }
        })
    }
}
