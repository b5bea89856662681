//! Who consumes: the members of each consumer group and what the group subscribes to, as heartbeats tell it.
//!
//! A pure table. Every step answers which groups changed, so that their members can be told; it sends nothing itself.
use protocol::Language;
use protocol::body::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

/// The connection of a client, by its number ([`remoting::ConnectionId`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer(pub u64);

/// One client of a group, known by its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub client_id: String,
    pub address: SocketAddr,
    pub language: Language,
    pub version: i32,
    /// Since the broker's start.
    pub last_heartbeat: Duration,
}

/// A consumer group's live state.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerGroup {
    pub members: BTreeMap<Peer, Member>,
    /// By topic.
    pub subscriptions: BTreeMap<String, SubscriptionData>,
    pub consume_type: ConsumeType,
    pub message_model: MessageModel,
    pub consume_from: ConsumeFromWhere,
}

/// What one heartbeat says of one group.
#[derive(Clone, Debug)]
pub(crate) struct Joining {
    pub group: String,
    pub consume_type: ConsumeType,
    pub message_model: MessageModel,
    pub consume_from: ConsumeFromWhere,
    /// `None`: the heartbeat carries none on purpose, the group keeps what it has.
    pub subscriptions: Option<Vec<SubscriptionData>>,
}

/// Who has to hear of a change: the group's members after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub group: String,
    pub members: Vec<Peer>,
}

/// All consumer groups with at least one member.
#[derive(Debug, Default)]
pub(crate) struct ConsumerTable {
    groups: BTreeMap<String, ConsumerGroup>,
    /// What pulls of clients without a heartbeat carried, so that monitoring knows the topic: `group` to `topic` to subscription.
    from_pulls: BTreeMap<String, BTreeMap<String, SubscriptionData>>,
}

impl ConsumerTable {
    /// Takes in a heartbeat's word on one group. Answers a change if a member is new or the set of topics differs, unless the
    /// group is broadcasting, whose members do not share queues.
    pub fn join(&mut self, connection: Peer, member: Member, joining: Joining) -> Option<Change> {
        let group = self.groups.entry(joining.group.clone()).or_insert_with(|| ConsumerGroup {
            members: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            consume_type: joining.consume_type,
            message_model: joining.message_model,
            consume_from: joining.consume_from,
        });
        group.consume_type = joining.consume_type;
        group.message_model = joining.message_model;
        group.consume_from = joining.consume_from;
        let joined = group.members.insert(connection, member).is_none();
        let resubscribed =
            joining.subscriptions.is_some_and(|subscriptions| update(&mut group.subscriptions, subscriptions));
        (joined || resubscribed).then(|| group.change(joining.group)).flatten()
    }

    /// A client leaves one group in order.
    pub fn leave(&mut self, connection: Peer, group: &str) -> Option<Change> {
        self.remove(group, |id, _| id == connection)
    }

    /// A connection has ended: its client leaves every group.
    pub fn disconnected(&mut self, connection: Peer) -> Vec<Change> {
        self.remove_everywhere(|id, _| id == connection)
    }

    /// Removes members that have been silent for longer than `expiry`. Also answers their connections, to be closed.
    pub fn expire(&mut self, now: Duration, expiry: Duration) -> (Vec<Change>, BTreeSet<Peer>) {
        let silent = |member: &Member| now.saturating_sub(member.last_heartbeat) > expiry;
        let gone = self
            .groups
            .values()
            .flat_map(|group| &group.members)
            .filter(|(_, member)| silent(member))
            .map(|(id, _)| *id)
            .collect();
        (self.remove_everywhere(|_, member| silent(member)), gone)
    }

    fn remove_everywhere(&mut self, gone: impl Fn(Peer, &Member) -> bool) -> Vec<Change> {
        let names: Vec<String> = self.groups.keys().cloned().collect();
        names.iter().filter_map(|name| self.remove(name, &gone)).collect()
    }

    fn remove(&mut self, name: &str, gone: impl Fn(Peer, &Member) -> bool) -> Option<Change> {
        let group = self.groups.get_mut(name)?;
        let before = group.members.len();
        group.members.retain(|id, member| !gone(*id, member));
        if group.members.len() == before {
            return None;
        }
        if group.members.is_empty() {
            self.groups.remove(name);
            return None;
        }
        group.change(name.to_owned())
    }

    pub fn group(&self, name: &str) -> Option<&ConsumerGroup> {
        self.groups.get(name)
    }

    /// Client ids of the group, each once, in order.
    pub fn client_ids(&self, group: &str) -> BTreeSet<String> {
        self.groups
            .get(group)
            .map(|group| group.members.values().map(|m| m.client_id.clone()).collect())
            .unwrap_or_default()
    }

    /// Groups that subscribe to the topic now.
    pub fn groups_of(&self, topic: &str) -> BTreeSet<String> {
        self.groups
            .iter()
            .filter(|(_, group)| group.subscriptions.contains_key(topic))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Remembers a subscription that came with a pull. Bounded by the topics that exist: callers check the topic first.
    pub fn note_pull(&mut self, group: &str, subscription: SubscriptionData) {
        self.from_pulls.entry(group.to_owned()).or_default().insert(subscription.topic.clone(), subscription);
    }

    /// What the group reads of the topic: by heartbeat, or by its pulls.
    pub fn subscription(&self, group: &str, topic: &str) -> Option<&SubscriptionData> {
        let live = self.groups.get(group).and_then(|group| group.subscriptions.get(topic));
        live.or_else(|| self.from_pulls.get(group)?.get(topic))
    }
}

impl ConsumerGroup {
    fn change(&self, group: String) -> Option<Change> {
        (self.message_model != MessageModel::Broadcasting)
            .then(|| Change { group, members: self.members.keys().copied().collect() })
    }
}

/// Takes over a heartbeat's subscriptions; true if the set of topics differs. An older version of a subscription is ignored.
fn update(known: &mut BTreeMap<String, SubscriptionData>, told: Vec<SubscriptionData>) -> bool {
    let topics: BTreeSet<String> = told.iter().map(|subscription| subscription.topic.clone()).collect();
    let before = known.len();
    known.retain(|topic, _| topics.contains(topic));
    let mut changed = known.len() != before;
    for subscription in told {
        match known.get_mut(&subscription.topic) {
            None => {
                changed = true;
                known.insert(subscription.topic.clone(), subscription);
            }
            Some(old) if subscription.sub_version > old.sub_version => *old = subscription,
            Some(_) => {}
        }
    }
    changed
}

#[cfg(test)]
mod tests;
