//! A run in words and numbers for its recording: operations, states of nodes, how far queues and groups are.

use crate::evidence::{POWER_LOST, PROCESS_ENDED, STARTED};
use crate::operation::{Ask, Decision, HALF_QUEUE, History, Queue, TIMER_QUEUE, Told};
use crate::plan::Plan;
use sim::history::{Operation, Outcome, What};
use sim::recording::{Band, Line, Recording};
use std::collections::BTreeMap;
use std::time::Duration;

/// The node that the world runs on; the observer asks from there.
const OBSERVER: &str = "observer";

fn name(queue: &Queue) -> String {
    format!("{}/{}", queue.broker, queue.id)
}

/// An operation in words. Reading committed offsets is left to the charts.
pub fn line(operation: &Operation<'_, Ask, Told>) -> Line {
    let told = match operation.outcome {
        Outcome::Ok(told) => in_words(told),
        Outcome::Fail(_) | Outcome::Unknown => String::new(),
    };
    let mut about = Vec::new();
    if let Outcome::Ok(Told::Stored { queue, .. } | Told::Delayed { queue, .. }) = operation.outcome {
        about.push(name(queue));
    }
    let (ask, is_minor) = match operation.input {
        Ask::Send { key } => {
            about.push(key.clone());
            (format!("send {key}"), false)
        }
        Ask::Consume { group, queue, offset, key, reconsume_times } => {
            about.extend([key.clone(), name(queue)]);
            let again = handed_back(*reconsume_times);
            (format!("consume {key} from {} at {offset} for {group}{again}", name(queue)), false)
        }
        Ask::ConsumeAgain { group, queue, offset, key, reconsume_times } => {
            about.extend([key.clone(), retry_name(queue)]);
            let again = handed_back(*reconsume_times);
            (format!("consume {key} again from {} at {offset} for {group}{again}", retry_name(queue)), false)
        }
        Ask::Decide { key, asked } => {
            about.push(key.clone());
            let asked = if *asked > 0 { format!(", asked {asked} times") } else { String::new() };
            (format!("what becomes of {key}{asked}"), false)
        }
        Ask::ReadDelays { node } => (format!("how far is each delay level at {node}"), true),
        Ask::ReadCommitted { node, group, queue } => {
            about.push(name(queue));
            (format!("how far is {group} in {} at {node}", name(queue)), true)
        }
    };
    Line { ask, told, about, is_minor }
}

/// A queue of a group's retry topic.
fn retry_name(queue: &Queue) -> String {
    format!("{} (retry)", name(queue))
}

fn handed_back(times: i32) -> String {
    if times > 0 { format!(", handed back {times} times") } else { String::new() }
}

fn in_words(told: &Told) -> String {
    let stored = |place: String, promised: bool, other_copies_max: u32| {
        let promise = if promised { "" } else { ", without a promise" };
        let copies = if other_copies_max > 0 { format!(", or {other_copies_max} copies more") } else { String::new() };
        format!("{place}{promise}{copies}")
    };
    match told {
        Told::Stored { queue, offset, promised, other_copies_max } => {
            stored(format!("stored in {} at {offset}", name(queue)), *promised, *other_copies_max)
        }
        Told::Delayed { queue, offset, promised, other_copies_max } => {
            let place = match queue.id {
                HALF_QUEUE => format!("stored at {} as a half message at {offset}", queue.broker),
                TIMER_QUEUE => format!("stored at {} for its moment, timer queue at {offset}", queue.broker),
                level => format!("stored at {} for its delay, level queue {level} at {offset}", queue.broker),
            };
            stored(place, *promised, *other_copies_max)
        }
        Told::Later => "to come again".into(),
        Told::Decided(Decision::Commit) => "committed".into(),
        Told::Decided(Decision::RollBack) => "rolled back".into(),
        Told::Decided(Decision::Unknown) => "not decided".into(),
        Told::Delays(levels) => {
            let levels: Vec<String> = levels.iter().map(|(level, offset)| format!("{level}: {offset}")).collect();
            format!("delivered below {}", levels.join(", "))
        }
        Told::Consumed => "done".into(),
        Told::Committed(Some(offset)) => format!("committed {offset}"),
        Told::Committed(None) => "nothing committed".into(),
    }
}

/// Adds charts and states that only the history shows.
pub fn complete(recording: &mut Recording, plan: &Plan, history: &History) {
    if let Some(world) = recording.nodes.first_mut() {
        *world = OBSERVER.to_owned();
    }
    Charts::default().draw(recording, history);
    let brokers = plan.cluster.brokers();
    let is_broker = |node: usize| brokers.contains(&recording.nodes[node]);
    let mut bands: Vec<Band> =
        std::mem::take(&mut recording.bands).into_iter().filter(|band| !is_broker(band.node)).collect();
    for band in bands.iter_mut().filter(|band| band.state == "up") {
        band.state = role(plan, &recording.nodes[band.node]).to_owned();
    }
    for broker in &brokers {
        let Some(node) = recording.node(broker) else { continue };
        bands.extend(broker_bands(plan, history, broker, node));
    }
    recording.bands = bands;
    members_leave(recording);
}

/// A consumer that left has a node that is up.
fn members_leave(recording: &mut Recording) {
    let mut after = Vec::new();
    for event in recording.events.iter().filter(|event| event.text == "left") {
        let node = recording.nodes.iter().position(|name| *name == event.node);
        let spans = |band: &&mut Band| {
            Some(band.node) == node && band.from <= event.at && band.until.is_none_or(|until| until > event.at)
        };
        if let Some(band) = recording.bands.iter_mut().find(spans) {
            after.push(Band { from: event.at, state: "left".into(), ..band.clone() });
            band.until = Some(event.at);
        }
    }
    recording.bands.extend(after);
}

/// What a node is for.
fn role(plan: &Plan, node: &str) -> &'static str {
    let is_one_of = |names: Vec<String>| names.iter().any(|name| name == node);
    if is_one_of(plan.cluster.names()) {
        "name server"
    } else if is_one_of(plan.cluster.masters()) {
        "master"
    } else if is_one_of(plan.cluster.brokers()) {
        "slave"
    } else if is_one_of(plan.clients.producer_names()) {
        "producer"
    } else if node == OBSERVER {
        "observer"
    } else {
        "consumer"
    }
}

/// A broker recovers from its start until it answers the observer for the first time.
fn broker_bands(plan: &Plan, history: &History, broker: &str, node: usize) -> Vec<Band> {
    let serving = role(plan, broker);
    let mut bands: Vec<Band> = Vec::new();
    let mut becomes = |at: Duration, state: &str| {
        if let Some(last) = bands.last_mut() {
            if last.state == state {
                return;
            }
            last.until = Some(at);
        }
        bands.push(Band { node, from: at, until: None, state: state.to_owned() });
    };
    let mut asks = BTreeMap::new();
    let mut is_up = false;
    for event in &history.events {
        match &event.what {
            What::Node { node, event: what } if node == broker => {
                let state = match what.as_str() {
                    STARTED => "recovering",
                    PROCESS_ENDED => "down",
                    POWER_LOST => "no power",
                    _ => continue,
                };
                is_up = what == STARTED;
                // A machine without power has no process that could end.
                becomes(event.at, state);
            }
            What::Invoke { operation, input: Ask::ReadCommitted { node, .. }, .. } if node == broker => {
                asks.insert(*operation, event.at);
            }
            What::Ok { operation, .. } if asks.remove(operation).is_some() && is_up => becomes(event.at, serving),
            What::Fail { operation, .. } => {
                // It was asked a second ago, and may have been started since.
                let asked = asks.remove(operation);
                if asked.is_some() && is_up {
                    becomes(event.at, "no answer");
                }
            }
            _ => {}
        }
    }
    bands
}

/// How far things are, as clients and observer learned it.
#[derive(Default)]
struct Charts {
    /// Behind the last message that a producer was told of.
    stored: BTreeMap<Queue, i64>,
    delivered: BTreeMap<(String, Queue), i64>,
}

impl Charts {
    fn draw(mut self, recording: &mut Recording, history: &History) {
        let operations = history.operations();
        let mut ended: Vec<(Duration, &Operation<'_, Ask, Told>)> =
            operations.iter().filter_map(|operation| Some((operation.ended?.1, operation))).collect();
        ended.sort_by_key(|(at, _)| *at);
        for (at, operation) in ended {
            match (operation.input, &operation.outcome) {
                (_, Outcome::Ok(Told::Stored { queue, offset, .. })) => {
                    let end = self.stored.entry(queue.clone()).or_default();
                    *end = (*end).max(offset + 1);
                }
                (Ask::Consume { group, queue, offset, .. }, Outcome::Ok(_)) => {
                    let end = self.delivered.entry((group.clone(), queue.clone())).or_default();
                    *end = (*end).max(offset + 1);
                }
                (Ask::ReadCommitted { node, group, queue }, Outcome::Ok(Told::Committed(offset))) => {
                    self.committed(recording, at, (node, group, queue), offset.unwrap_or(0));
                }
                _ => {}
            }
        }
        for series in &mut recording.series {
            series.about = series.chart.split(' ').map(str::to_owned).collect();
        }
    }

    /// The observer looks once a second: often enough for the other lines too.
    fn committed(
        &self,
        recording: &mut Recording,
        at: Duration,
        (node, group, queue): (&str, &String, &Queue),
        offset: i64,
    ) {
        let chart = format!("{group} in {}", name(queue));
        recording.add_value(&chart, &format!("committed at {node}"), at, offset);
        let stored = self.stored.get(queue).copied().unwrap_or(0);
        let delivered = self.delivered.get(&(group.clone(), queue.clone())).copied().unwrap_or(0);
        recording.add_value(&chart, "consumed up to", at, delivered);
        recording.add_value(&chart, "stored up to", at, stored);
        if node == queue.broker {
            recording.add_value(&format!("lag of {group}"), &name(queue), at, stored - offset);
        }
    }
}
