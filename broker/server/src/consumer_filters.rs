//! The filter expressions of consumer groups, by topic: what heartbeats told, remembered over a restart (`ConsumerFilterManager`).
//!
//! A pure table. A filter whose group is gone is dead and kept for a while, so that a group that comes back finds it.
use protocol::body::SubscriptionData;
use protocol::filter::{BitsArray, BloomFilter, BloomFilterData, Expression};
use protocol::message::RecordView;
use protocol::{PhysicalOffset, Properties};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{BitMaps, EntryFilter};
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
    /// From this place of the log on, bit maps of messages tell of this expression.
    bits_from: PhysicalOffset,
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

    /// What of it can be seen in the bit maps of messages.
    pub fn by_bits(&self) -> FilterByBits {
        FilterByBits { bloom: self.bloom.clone(), from: self.bits_from }
    }
}

/// A filter by the bit map that a queue has of each message (`ExpressionMessageFilter.isMatchedByConsumeQueue`). Apache asks whether a
/// message was stored after the filter came, by the clock; a clock that was set back would hide messages. The place in the log does not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FilterByBits {
    bloom: BloomFilterData,
    from: PhysicalOffset,
}

impl EntryFilter for FilterByBits {
    /// A message without a bit map may be wanted, and so may one of which the bits tell by chance.
    fn wants(&self, physical: PhysicalOffset, _: Option<i64>, bit_map: &[u8]) -> bool {
        if bit_map.is_empty() || physical < self.from {
            return true;
        }
        let is_hit = self.bloom.is_hit(&BitsArray::from_bytes(bit_map.to_vec()));
        if !is_hit {
            rt::probe!("server.filter.passed_over_by_bits");
        }
        is_hit
    }
}

/// Tells the store which filters a message passes (`CommitLogDispatcherCalcBitMap`).
pub(crate) struct FiltersInBits(pub Arc<Mutex<FilterTable>>);

impl BitMaps for FiltersInBits {
    fn bit_map(&self, record: &RecordView<'_>) -> Vec<u8> {
        let filters = self.0.lock().expect("no code that can panic runs under this lock");
        std::str::from_utf8(record.topic()).map(|topic| filters.bit_map(topic, record.properties())).unwrap_or_default()
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

    /// Bit maps of messages tell of all filters from this place of the log on.
    pub fn bits_begin_at(&mut self, log_end: PhysicalOffset) {
        for filter in self.topics.values_mut().flat_map(BTreeMap::values_mut) {
            filter.bits_from = log_end;
        }
    }

    /// A group's heartbeat: its filters of these topics live, its others are dead. `log_end`: the log's end now, while nobody else has the
    /// table.
    pub fn register(&mut self, group: &str, subscriptions: &[SubscriptionData], now_ms: i64, log_end: PhysicalOffset) {
        for subscription in subscriptions {
            if subscription.expression_type == SubscriptionData::SQL && !subscription.sub_string.is_empty() {
                self.register_one(group, subscription, now_ms, log_end);
            }
        }
        let wanted = |topic: &str| subscriptions.iter().any(|subscription| subscription.topic == topic);
        self.end(now_ms, |topic, of_group| of_group == group && !wanted(topic));
    }

    /// An older version changes nothing, the same one revives a dead filter, a newer one replaces it if it says something else. An
    /// expression that cannot be understood removes the old one, and the group's pulls are told so.
    fn register_one(&mut self, group: &str, subscription: &SubscriptionData, now_ms: i64, log_end: PhysicalOffset) {
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
                        bits_from: log_end,
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

    /// Which filters of the topic a message passes; nothing if there are none.
    fn bit_map(&self, topic: &str, properties: &[u8]) -> Vec<u8> {
        let Some(filters) = self.topics.get(topic).filter(|filters| !filters.is_empty()) else { return Vec::new() };
        let properties = Properties::parse_bytes(properties);
        let mut bits = self.bloom.empty();
        for filter in filters.values().filter(|filter| filter.expression.matches(&properties)) {
            filter.bloom.put(&mut bits);
        }
        bits.into_bytes()
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
        // Not known before the store is.
        bits_from: PhysicalOffset(i64::MAX),
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
