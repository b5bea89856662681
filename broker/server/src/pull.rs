//! PULL_MESSAGE: checks, the commit it may carry, reading, and waiting for a message (long polling).
use crate::broker::Broker;
use crate::consumer_filters::FilterByBits;
use crate::dispatch::Call;
use crate::filter::{Filter, PropertyFilter, TagFilter, expression};
use crate::hold::{QueueKey, WaiterId};
use crate::names::RETRY_PREFIX;
use crate::offset_requests::{bounds, commit};
use crate::offsets::CommitSource;
use crate::property_read::read;
use crate::refusal::Refusal;
use crate::reply::{pull_code, status_name};
use crate::topics::perm;
use bytes::Bytes;
use protocol::body::{MessageModel, SubscriptionData, SubscriptionGroupConfig};
use protocol::filter::Expression;
use protocol::frame::Command;
use protocol::header::{PullMessageRequest, PullMessageResponse, PullSysFlag};
use protocol::{QueueOffset, ResponseCode};
use rt::sync::oneshot;
use rt::time::{Instant, sleep_until};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{GetRequest, GetStatus};

/// Most messages one pull gets, whatever it asks for.
const MESSAGES_MAX: i32 = 32 * 1024;
/// Most bytes one pull gets; below the largest frame, so that the answer fits.
const BYTES_MAX: u32 = 8 * 1024 * 1024;

/// A pull that passed its checks.
struct Pull {
    header: PullMessageRequest,
    group: SubscriptionGroupConfig,
    filter: Filter,
}

/// What one look into the store says.
struct Look {
    code: ResponseCode,
    remark: &'static str,
    next: QueueOffset,
    min: QueueOffset,
    max: QueueOffset,
    suggest: i64,
    body: Bytes,
    messages: usize,
    /// Nothing for this reader now, and more may come: hold it if it may be held.
    waits: bool,
    /// Messages up to the queue's end, and by their properties none for this reader: one that is held already goes on waiting.
    passed_over: bool,
}

/// Serves a pull: answers at once, or when a message comes, or at the deadline.
pub(crate) async fn pull(broker: &Broker, call: &Call) -> Result<Command, Refusal> {
    let pull = check(broker, call).await?;
    let header = &pull.header;
    let reset = broker.offsets().take_reset(&header.topic, &header.consumer_group, header.queue_id);
    if let Some(offset) = reset {
        return Ok(answer(broker, call, &pull, reset_look(broker, header, offset)));
    }
    commit_flag(broker, header);
    let flags = PullSysFlag(header.sys_flag);
    let mut look = look(broker, &pull, header.queue_offset).await?;
    if look.waits && flags.may_suspend() && !rt::buggify!("server.pull_not_held") {
        look = hold(broker, &pull, look).await?;
    }
    Ok(answer(broker, call, &pull, look))
}

/// The commit a pull carries counts once, before it waits, and not on a slave: a slave's copy comes from its master.
fn commit_flag(broker: &Broker, header: &PullMessageRequest) {
    let offset = header.commit_offset.get();
    if PullSysFlag(header.sys_flag).commits_offset() && offset >= 0 && !broker.is_slave() {
        commit(broker, &header.topic, &header.consumer_group, header.queue_id, offset, CommitSource::Pull);
    }
}

/// Waits until the store has something for this pull, the deadline passes, or the broker closes; then looks a last time. A
/// connection that ends drops this future. Messages that are not wanted by their properties wake it, are passed over, and it waits
/// behind them: their properties are read here and not by the store's dispatch, which everybody waits for.
async fn hold(broker: &Broker, pull: &Pull, first: Look) -> Result<Look, Refusal> {
    let header = &pull.header;
    let asked = Duration::from_millis(u64::try_from(header.suspend_timeout_millis).unwrap_or(0));
    let wait = if broker.config.long_polling {
        asked.min(broker.config.timing.hold_max)
    } else {
        broker.config.timing.short_polling
    };
    let wait = if rt::buggify!("server.hold_ends_early") { wait / 10 } else { wait };
    let deadline = Instant::now() + wait;
    let mut last = first;
    loop {
        let (wake, woken) = oneshot::channel();
        let from = if last.passed_over { last.next } else { header.queue_offset };
        let Some(waiter) = Waiter::register(broker, pull, from, wake) else {
            rt::probe!("server.hold.full");
            return Ok(last);
        };
        // A message may have come between the look and the registration.
        let (_, end) = bounds(broker, &header.topic, header.queue_id);
        if end == last.max {
            rt::select! {
                () = broker.closing.cancelled() => return Ok(last),
                _ = woken => {}
                () = sleep_until(deadline) => {}
            }
        }
        drop(waiter);
        let found = look(broker, pull, from).await?;
        // What was passed over before is still what there is to say.
        if !(last.passed_over && found.waits) {
            last = found;
        }
        if !(last.waits || last.passed_over) || Instant::now() >= deadline {
            return Ok(last);
        }
    }
}

/// A registration in the table of held pulls that ends with its pull.
struct Waiter<'a> {
    broker: &'a Broker,
    key: QueueKey,
    id: WaiterId,
}

impl<'a> Waiter<'a> {
    fn register(broker: &'a Broker, pull: &Pull, from: QueueOffset, wake: oneshot::Sender<()>) -> Option<Waiter<'a>> {
        let key = QueueKey { topic: pull.header.topic.clone(), queue_id: pull.header.queue_id };
        let id = broker.held().hold(key.clone(), from, pull.filter.tags(), wake).ok()?;
        Some(Waiter { broker, key, id })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.broker.held().remove(&self.key, self.id);
    }
}

async fn check(broker: &Broker, call: &Call) -> Result<Pull, Refusal> {
    let header: PullMessageRequest = call.request.header()?;
    if broker.is_slave() && !broker.config.slave_read {
        return Err(Refusal::Slave);
    }
    if broker.config.permission & perm::READ == 0 {
        return Err(Refusal::BrokerNotReadable(broker.own_ip()));
    }
    let group = broker
        .find_group(&header.consumer_group)
        .await
        .ok_or_else(|| Refusal::NoPullGroup(header.consumer_group.clone()))?;
    if !group.consume_enable {
        return Err(Refusal::GroupDisabled(header.consumer_group));
    }
    let (topic_perm, queues) = {
        let known = broker.topic(&header.topic).map(|topic| (topic.perm, topic.read_queue_nums));
        known.or_else(|| of_replicated_queue(broker, &header)).ok_or_else(|| Refusal::NoTopic(header.topic.clone()))?
    };
    if topic_perm & perm::READ == 0 {
        return Err(Refusal::TopicNotReadable(header.topic));
    }
    if header.queue_id < 0 || header.queue_id >= queues {
        return Err(Refusal::PullQueue { queue_id: header.queue_id, topic: header.topic, queues });
    }
    let filter = filter(broker, &header, &group)?;
    Ok(Pull { header, group, filter })
}

/// A slave may hold messages of a topic that was made after its last copy of the table; its master may be gone by now.
fn of_replicated_queue(broker: &Broker, header: &PullMessageRequest) -> Option<(i32, i32)> {
    if !broker.is_slave() {
        return None;
    }
    broker.store.queue_bounds(&header.topic, header.queue_id)?;
    Some((perm::READ, header.queue_id.saturating_add(1)))
}

/// What the reader wants: by the request's own expression if it carries one, else by its group's heartbeat.
fn filter(broker: &Broker, header: &PullMessageRequest, group: &SubscriptionGroupConfig) -> Result<Filter, Refusal> {
    if PullSysFlag(header.sys_flag).has_subscription() {
        let subscription = own_subscription(header);
        let filter = if subscription.is_tag_type() {
            Filter::Tags(TagFilter::parse(header.subscription.as_deref().unwrap_or("*"))?)
        } else {
            allow_properties(broker, &subscription)?;
            by_properties(broker, header, Arc::new(expression(&subscription)?), None)
        };
        broker.consumers().note_pull(&header.consumer_group, subscription);
        return Ok(filter);
    }
    let consumers = broker.consumers();
    let live = consumers.group(&header.consumer_group).ok_or(Refusal::NoGroupInfo)?;
    if !group.consume_broadcast_enable && live.message_model == MessageModel::Broadcasting {
        return Err(Refusal::BroadcastDisabled(header.consumer_group.clone()));
    }
    if broker.groups().read_forbidden(&header.consumer_group, &header.topic) {
        return Err(Refusal::SubscriptionForbidden {
            group: header.consumer_group.clone(),
            topic: header.topic.clone(),
        });
    }
    let subscription = live.subscriptions.get(&header.topic).ok_or(Refusal::NoSubscription)?;
    if subscription.sub_version < header.sub_version {
        return Err(Refusal::OldSubscription);
    }
    if subscription.class_filter_mode {
        return Err(Refusal::FilterType("class".to_owned()));
    }
    if subscription.is_tag_type() {
        return Ok(Filter::Tags(TagFilter::parse(&subscription.sub_string)?));
    }
    let (told, bits) = {
        let filters = broker.filters();
        let filter = filters.get(&header.topic, &header.consumer_group).ok_or(Refusal::NoFilterData)?;
        if filter.version < header.sub_version {
            return Err(Refusal::OldFilterData);
        }
        (Arc::clone(&filter.expression), filter.by_bits())
    };
    allow_properties(broker, subscription)?;
    Ok(by_properties(broker, header, told, Some(bits)))
}

/// The subscription that a pull carries.
fn own_subscription(header: &PullMessageRequest) -> SubscriptionData {
    let (topic, version) = (header.topic.clone(), header.sub_version);
    match header.expression_type.as_deref() {
        None | Some("" | "TAG") => {
            SubscriptionData::by_tags(topic, header.subscription.as_deref().unwrap_or("*"), version)
        }
        Some(other) => SubscriptionData {
            expression_type: other.to_owned(),
            ..SubscriptionData::by_sql(topic, header.subscription.clone().unwrap_or_default(), version)
        },
    }
}

fn allow_properties(broker: &Broker, subscription: &SubscriptionData) -> Result<(), Refusal> {
    if broker.config.filter.by_properties {
        Ok(())
    } else {
        Err(Refusal::FilterType(subscription.expression_type.clone()))
    }
}

fn by_properties(
    broker: &Broker,
    header: &PullMessageRequest,
    expression: Arc<Expression>,
    bits: Option<FilterByBits>,
) -> Filter {
    let retried_group = header.topic.strip_prefix(RETRY_PREFIX).filter(|_| broker.config.filter.of_retries);
    Filter::Properties(match retried_group {
        Some(group) => PropertyFilter::ByRetriedTopic(broker.filters().of_group(group)),
        None => PropertyFilter::Expression(expression, bits),
    })
}

/// Looks into the store from an offset on.
async fn look(broker: &Broker, pull: &Pull, asked: QueueOffset) -> Result<Look, Refusal> {
    let header = &pull.header;
    let request = GetRequest {
        topic: header.topic.clone(),
        queue_id: header.queue_id,
        from: asked,
        max_messages: u32::try_from(header.max_msg_nums.clamp(1, MESSAGES_MAX)).expect("positive"),
        max_bytes: BYTES_MAX,
        tags: store_filter(&pull.filter.tags()),
    };
    let outcome = match &pull.filter {
        Filter::Tags(_) => broker.store.get(request).await?,
        Filter::Properties(filter) => read(&broker.store, &broker.config.store, request, filter).await?,
    };
    broker.stats.gets.add(1);
    let mut look = Look {
        code: pull_code(outcome.status, asked),
        remark: status_name(outcome.status),
        next: outcome.next,
        min: outcome.min,
        max: outcome.max,
        suggest: 0,
        body: Bytes::new(),
        messages: outcome.records.len(),
        waits: false,
        passed_over: outcome.status == GetStatus::NoMatchedMessage
            && outcome.next == outcome.max
            && matches!(pull.filter, Filter::Properties(_)),
    };
    look.waits = look.code == ResponseCode::PullNotFound && look.next == asked;
    if outcome.status == GetStatus::Found {
        look.body = outcome.body;
    }
    suggest_broker(broker, pull, outcome.suggest_slave, &mut look);
    Ok(look)
}

/// Where the reader should pull next. A slave sends a reader that is not far behind back to the master, and never corrects an
/// offset, because its log may be shorter than the master's. While it has no master its readers have nobody to go to: they
/// wait here, instead of asking again and again. So they do at a master that is not whole.
fn suggest_broker(broker: &Broker, pull: &Pull, far_behind: bool, look: &mut Look) {
    if broker.config.slave_read && far_behind {
        look.suggest = pull.group.which_broker_when_consume_slowly;
    } else if broker.config.slave_read {
        look.suggest = pull.group.broker_id;
    }
    if broker.is_whole() || look.code == ResponseCode::Success {
        return;
    }
    let nothing_here = look.code != ResponseCode::PullRetryImmediately;
    if look.code == ResponseCode::PullOffsetMoved {
        rt::probe!("server.pull.slave_keeps_offset");
        look.next = pull.header.queue_offset;
        look.suggest = pull.group.broker_id;
    }
    if nothing_here {
        look.code = ResponseCode::PullRetryImmediately;
        look.waits = !broker.replicas.master_connected();
    }
}

fn reset_look(broker: &Broker, header: &PullMessageRequest, offset: i64) -> Look {
    let (min, max) = bounds(broker, &header.topic, header.queue_id);
    Look {
        code: ResponseCode::PullOffsetMoved,
        remark: "OFFSET_RESET",
        next: QueueOffset(offset),
        min,
        max,
        suggest: 0,
        body: Bytes::new(),
        messages: 0,
        waits: false,
        passed_over: false,
    }
}

fn answer(broker: &Broker, call: &Call, pull: &Pull, look: Look) -> Command {
    let header = &pull.header;
    broker.offsets().note_pulled(&header.topic, &header.consumer_group, header.queue_id, look.next.get());
    if look.code == ResponseCode::Success {
        broker.stats.gets_found.add(1);
        broker.stats.messages_got.add(u64::try_from(look.messages).expect("a count"));
    } else {
        broker.stats.gets_missed.add(1);
    }
    let reply = PullMessageResponse {
        suggest_which_broker_id: look.suggest,
        next_begin_offset: look.next,
        min_offset: look.min,
        max_offset: look.max,
        offset_delta: None,
        topic_sys_flag: None,
        group_sys_flag: Some(pull.group.group_sys_flag),
        forbidden_type: None,
    };
    Command::reply(&call.request, look.code).with_remark(look.remark).with_header(&reply).with_body(look.body)
}

/// The store's filter takes an empty set as "all"; ours is a reader that wants no tag at all. No tag has this code.
fn store_filter(filter: &TagFilter) -> store::TagFilter {
    match filter.codes() {
        None => store::TagFilter::All,
        Some(codes) if codes.is_empty() => store::TagFilter::Codes(BTreeSet::from([i64::MIN])),
        Some(codes) => store::TagFilter::Codes(codes.clone()),
    }
}
