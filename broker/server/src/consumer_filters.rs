//! The filter expressions of consumer groups, by topic: what heartbeats told, remembered over a restart (`ConsumerFilterManager`).
//!
//! A pure table. A filter whose group is gone is dead and kept for a while, so that a group that comes back finds it.
use protocol::body::SubscriptionData;
use protocol::filter::{BloomFilter, BloomFilterData, Expression};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

/// Who was alive when the table was saved counts as dead since so long before it is loaded.
const DEAD_SINCE_MS: i64 = 30_000;

/// The table as text: `config/consumerFilter.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FilterTableText {
    pub filter_data_by_topic: BTreeMap<String, TopicText>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TopicText {
    pub group_filter_data: BTreeMap<String, FilterText>,
    pub topic: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FilterText {
    pub bloom_filter_data: Option<BloomFilterData>,
    pub born_time: i64,
    pub client_version: i64,
    pub consumer_group: String,
    pub dead: bool,
    pub dead_time: i64,
    pub expression: String,
    pub expression_type: String,
    pub topic: String,
}

/// A group's filter of a topic. Its type is SQL92: no other one can be understood.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerFilter {
    pub expression: Arc<Expression>,
    /// The client's version of it: the larger is newer.
    pub version: i64,
    text: String,
    bloom: BloomFilterData,
    born_ms: i64,
    /// 0 while it lives.
    dead_ms: i64,
}

/// All filters of a broker.
#[derive(Debug)]
pub(crate) struct FilterTable {
    /// Topic to group to filter.
    topics: BTreeMap<String, BTreeMap<String, ConsumerFilter>>,
    bloom: BloomFilter,
    changes: u64,
}

impl ConsumerFilter {
    fn is_dead(&self) -> bool {
        self.dead_ms >= self.born_ms
    }
}

impl FilterTable {
    pub fn new(bloom: BloomFilter) -> FilterTable {
        FilterTable { topics: BTreeMap::new(), bloom, changes: 0 }
    }

    /// Takes over what was saved. If the bits of one filter are of another bloom filter, the settings have changed, and nothing is.
    pub fn load(&mut self, text: FilterTableText, now_ms: i64) {
        let entries = || text.filter_data_by_topic.values().flat_map(|topic| topic.group_filter_data.values());
        let is_ours =
            |filter: &FilterText| filter.bloom_filter_data.as_ref().is_some_and(|bits| self.bloom.is_valid(bits));
        if !entries().all(is_ours) {
            info!("saved consumer filters have bits of another bloom filter, passed over");
            return;
        }
        for (topic, saved) in text.filter_data_by_topic {
            for (group, filter) in saved.group_filter_data {
                match loaded(filter, now_ms) {
                    Some(filter) => drop(self.topics.entry(topic.clone()).or_default().insert(group, filter)),
                    None => warn!(%topic, %group, "saved consumer filter is no expression, passed over"),
                }
            }
        }
    }

    /// A group's heartbeat: its filters of these topics live, its others are dead.
    pub fn register(&mut self, group: &str, subscriptions: &[SubscriptionData], now_ms: i64) {
        for subscription in subscriptions {
            if subscription.expression_type == SubscriptionData::SQL && !subscription.sub_string.is_empty() {
                self.register_one(group, subscription, now_ms);
            }
        }
        let wanted = |topic: &str| subscriptions.iter().any(|subscription| subscription.topic == topic);
        self.end(now_ms, |topic, of_group| of_group == group && !wanted(topic));
    }

    /// An older version changes nothing, the same one revives a dead filter, a newer one replaces it if it says something else. An
    /// expression that cannot be understood removes the old one, and the group's pulls are told so.
    fn register_one(&mut self, group: &str, subscription: &SubscriptionData, now_ms: i64) {
        let (topic, version, text) = (&subscription.topic, subscription.sub_version, &subscription.sub_string);
        let filters = self.topics.entry(topic.clone()).or_default();
        match filters.get_mut(group) {
            Some(old) if version < old.version => return,
            Some(old) if version == old.version || old.text == *text => {
                if version == old.version && !old.is_dead() {
                    return;
                }
                old.version = version;
                old.dead_ms = 0;
            }
            _ => match Expression::parse(text) {
                Ok(expression) => {
                    let filter = ConsumerFilter {
                        expression: Arc::new(expression),
                        version,
                        text: text.clone(),
                        bloom: self.bloom.of_subscription(group, topic),
                        born_ms: now_ms,
                        dead_ms: 0,
                    };
                    filters.insert(group.to_owned(), filter);
                }
                Err(error) => {
                    warn!(%topic, group, %error, "filter of a consumer group cannot be understood");
                    if filters.remove(group).is_none() {
                        return;
                    }
                }
            },
        }
        self.changes += 1;
    }

    /// The filters, by topic and group, that have lost their consumers are dead from now on.
    pub fn end(&mut self, now_ms: i64, is_over: impl Fn(&str, &str) -> bool) {
        for (topic, filters) in &mut self.topics {
            for (group, filter) in filters {
                if !filter.is_dead() && is_over(topic, group) {
                    // Not before its birth, though a clock may have been set back.
                    filter.dead_ms = now_ms.max(filter.born_ms);
                    self.changes += 1;
                }
            }
        }
    }

    pub fn get(&self, topic: &str, group: &str) -> Option<&ConsumerFilter> {
        self.topics.get(topic)?.get(group)
    }

    /// All filters of a group, by topic.
    pub fn of_group(&self, group: &str) -> BTreeMap<String, Arc<Expression>> {
        let of_topic = |(topic, filters): (&String, &BTreeMap<String, ConsumerFilter>)| {
            Some((topic.clone(), Arc::clone(&filters.get(group)?.expression)))
        };
        self.topics.iter().filter_map(of_topic).collect()
    }

    /// Forgets what has been dead for so long.
    pub fn clean(&mut self, now_ms: i64, keep: Duration) {
        let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let mut removed = 0;
        for filters in self.topics.values_mut() {
            let before = filters.len();
            filters.retain(|_, filter| !filter.is_dead() || now_ms.saturating_sub(filter.dead_ms) < keep_ms);
            removed += before - filters.len();
        }
        self.topics.retain(|_, filters| !filters.is_empty());
        self.changes += u64::from(removed > 0);
    }

    pub fn text(&self) -> FilterTableText {
        let topic_text = |(topic, filters): (&String, &BTreeMap<String, ConsumerFilter>)| {
            let filters = filters.iter().map(|(group, filter)| (group.clone(), saved(topic, group, filter)));
            (topic.clone(), TopicText { group_filter_data: filters.collect(), topic: topic.clone() })
        };
        FilterTableText { filter_data_by_topic: self.topics.iter().map(topic_text).collect() }
    }

    /// A number that differs whenever the table differs; 0 until something was told.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

fn loaded(text: FilterText, now_ms: i64) -> Option<ConsumerFilter> {
    if text.expression_type != SubscriptionData::SQL {
        return None;
    }
    let dead_ms = if text.dead_time == 0 { (now_ms - DEAD_SINCE_MS).max(text.born_time) } else { text.dead_time };
    Some(ConsumerFilter {
        expression: Arc::new(Expression::parse(&text.expression).ok()?),
        version: text.client_version,
        text: text.expression,
        bloom: text.bloom_filter_data?,
        born_ms: text.born_time,
        dead_ms,
    })
}

fn saved(topic: &str, group: &str, filter: &ConsumerFilter) -> FilterText {
    FilterText {
        bloom_filter_data: Some(filter.bloom.clone()),
        born_time: filter.born_ms,
        client_version: filter.version,
        consumer_group: group.to_owned(),
        dead: filter.is_dead(),
        dead_time: filter.dead_ms,
        expression: filter.text.clone(),
        expression_type: SubscriptionData::SQL.to_owned(),
        topic: topic.to_owned(),
    }
}

#[cfg(test)]
mod tests;
