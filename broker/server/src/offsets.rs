//! Committed consumer offsets: how far each group got in each queue.
//!
//! An offset is stored with the number of times it was lowered on purpose ([`Progress::lowered`]). Two copies of the table
//! merge by taking the greater pair `(lowered, offset)`, whatever the order and however often: a copy that has not seen a
//! reset never undoes it, and a copy that is merely old never pulls a group back. A peer that does not write the counter
//! (Apache's broker) reads and sends the plain table.
use protocol::body::DataVersion;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use store::is_light;

/// After so many commits the data version rises (`consumerOffsetUpdateVersionStep`).
const COMMITS_PER_VERSION: u32 = 500;

/// The queue whose offset `lmqOffsetTable` has.
const LIGHT_QUEUE_ID: i32 = 0;

type PerQueue = BTreeMap<i32, i64>;

/// How far a group got in one queue. Ordered first by `lowered`, so the greater of two copies is the one to believe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress {
    /// How often this entry was lowered on purpose.
    pub lowered: i64,
    /// The next queue offset to consume.
    pub offset: i64,
}

/// Where a commit comes from; it decides whether it may lower the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitSource {
    /// UPDATE_CONSUMER_OFFSET: a client may seek back.
    Update,
    /// The commit flag of a pull: a late or doubled pull must not set the group back.
    Pull,
    /// UPDATE_CONSUMER_OFFSET at a slave: its table may be as old as the last copy, so a client that took a queue there commits less
    /// than the group has got, and that must not set the master back when it returns.
    UpdateAtSlave,
}

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    Advanced,
    Unchanged,
    /// Accepted although smaller than before.
    Lowered {
        before: i64,
    },
    /// Smaller than before, from a source that may not lower, and not taken.
    Stale {
        kept: i64,
    },
    /// A reset waits for its consumer; nothing else counts until it was delivered.
    ResetPending,
}

/// The table as text: `config/consumerOffset.json` and the body of GET_ALL_CONSUMER_OFFSET. The last two fields are Hotfire's own;
/// Apache's broker ignores them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OffsetTableText {
    pub data_version: DataVersion,
    /// Derived from `offset_table`; written as Apache's broker does, never read.
    #[serde(skip_deserializing)]
    pub group_topic_map: BTreeMap<String, BTreeSet<String>>,
    /// `topic@group` to queue to offset.
    pub offset_table: BTreeMap<String, PerQueue>,
    /// Offsets in queue 0 of groups of light queues, where these are kept apart (`LmqConsumerOffsetManager`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lmq_offset_table: Option<BTreeMap<String, i64>>,
    /// Present iff the writer merges by `(lowered, offset)`; holds the counters above zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowered_table: Option<BTreeMap<String, PerQueue>>,
    /// Resets that no consumer has seen yet.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reset_table: BTreeMap<String, PerQueue>,
}

impl OffsetTableText {
    /// All offsets, those of light queues too.
    fn offsets(&self) -> Cow<'_, BTreeMap<String, PerQueue>> {
        let Some(light) = self.lmq_offset_table.as_ref().filter(|light| !light.is_empty()) else {
            return Cow::Borrowed(&self.offset_table);
        };
        let mut offsets = self.offset_table.clone();
        for (key, offset) in light {
            offsets.entry(key.clone()).or_default().insert(LIGHT_QUEUE_ID, *offset);
        }
        Cow::Owned(offsets)
    }

    /// Moves the offsets of light queues into their own table.
    fn keep_light_apart(&mut self) {
        let mut light = BTreeMap::new();
        for (key, queues) in &mut self.offset_table {
            if split(key).is_some_and(|(_, group)| is_light(group))
                && let Some(offset) = queues.remove(&LIGHT_QUEUE_ID)
            {
                light.insert(key.clone(), offset);
            }
        }
        self.offset_table.retain(|_, queues| !queues.is_empty());
        self.lmq_offset_table = Some(light);
    }
}

/// All committed offsets of a broker.
#[derive(Debug, Default)]
pub(crate) struct OffsetTable {
    entries: BTreeMap<String, BTreeMap<i32, Progress>>,
    pending_resets: BTreeMap<String, PerQueue>,
    /// The last pull's next offset, for monitoring. Not persisted.
    pulled: BTreeMap<String, PerQueue>,
    version: DataVersion,
    /// Whether the text has the offsets of light queues apart.
    keeps_light_apart: bool,
    commits_since_version: u32,
    /// Counts changes, so that a writer knows whether its snapshot is still the newest.
    changes: u64,
}

impl OffsetTable {
    /// Stores `offset` as the group's progress in that queue.
    pub fn commit(
        &mut self,
        topic: &str,
        group: &str,
        queue_id: i32,
        offset: i64,
        source: CommitSource,
        now_ms: i64,
    ) -> Committed {
        assert!(offset >= 0, "callers refuse negative offsets");
        let key = key(topic, group);
        if self.pending_resets.get(&key).is_some_and(|queues| queues.contains_key(&queue_id)) {
            return Committed::ResetPending;
        }
        let progress = self.entries.entry(key).or_default().entry(queue_id);
        let outcome = match progress {
            std::collections::btree_map::Entry::Vacant(slot) => {
                slot.insert(Progress { lowered: 0, offset });
                Committed::Advanced
            }
            std::collections::btree_map::Entry::Occupied(mut slot) => {
                let progress = slot.get_mut();
                let before = progress.offset;
                match (offset.cmp(&before), source) {
                    (std::cmp::Ordering::Equal, _) => return Committed::Unchanged,
                    (std::cmp::Ordering::Less, CommitSource::Pull | CommitSource::UpdateAtSlave) => {
                        return Committed::Stale { kept: before };
                    }
                    (std::cmp::Ordering::Less, CommitSource::Update) => {
                        *progress = Progress { lowered: progress.lowered + 1, offset };
                        Committed::Lowered { before }
                    }
                    (std::cmp::Ordering::Greater, _) => {
                        progress.offset = offset;
                        Committed::Advanced
                    }
                }
            }
        };
        self.changes += 1;
        self.commits_since_version += 1;
        if self.commits_since_version >= COMMITS_PER_VERSION {
            self.raise_version(now_ms);
        }
        outcome
    }

    /// The offset to start from: a reset that waits, else the committed one.
    pub fn query(&self, topic: &str, group: &str, queue_id: i32) -> Option<i64> {
        let key = key(topic, group);
        let reset = self.pending_resets.get(&key).and_then(|queues| queues.get(&queue_id));
        reset.copied().or_else(|| Some(self.entries.get(&key)?.get(&queue_id)?.offset))
    }

    /// An operator's order: the group continues at `offset`, whatever its members say, until one of them has pulled.
    pub fn reset(&mut self, topic: &str, group: &str, queue_id: i32, offset: i64, now_ms: i64) {
        assert!(offset >= 0, "callers refuse negative offsets");
        let key = key(topic, group);
        let progress = self.entries.entry(key.clone()).or_default().entry(queue_id).or_default();
        *progress = Progress { lowered: progress.lowered + 1, offset };
        self.pending_resets.entry(key).or_default().insert(queue_id, offset);
        self.raise_version(now_ms);
    }

    /// Takes the waiting reset of a queue: the pull that gets it tells its client.
    pub fn take_reset(&mut self, topic: &str, group: &str, queue_id: i32) -> Option<i64> {
        // Each pull asks, and nearly always none waits.
        if self.pending_resets.is_empty() {
            return None;
        }
        let key = key(topic, group);
        let queues = self.pending_resets.get_mut(&key)?;
        let offset = queues.remove(&queue_id)?;
        if queues.is_empty() {
            self.pending_resets.remove(&key);
        }
        self.changes += 1;
        Some(offset)
    }

    /// Notes the end of the last pull, for monitoring.
    pub fn note_pulled(&mut self, topic: &str, group: &str, queue_id: i32, next: i64) {
        self.pulled.entry(key(topic, group)).or_default().insert(queue_id, next);
    }

    /// The end of the last pull, or the committed offset.
    pub fn pulled(&self, topic: &str, group: &str, queue_id: i32) -> Option<i64> {
        let noted = self.pulled.get(&key(topic, group)).and_then(|queues| queues.get(&queue_id).copied());
        noted.or_else(|| self.query(topic, group, queue_id))
    }

    /// Topics in which the group has committed something.
    pub fn topics_of(&self, group: &str) -> BTreeSet<String> {
        self.entries
            .keys()
            .filter_map(|key| split(key))
            .filter(|(_, of)| *of == group)
            .map(|(topic, _)| topic.to_owned())
            .collect()
    }

    /// Groups that have committed something in the topic.
    pub fn groups_of(&self, topic: &str) -> BTreeSet<String> {
        self.entries
            .keys()
            .filter_map(|key| split(key))
            .filter(|(of, _)| *of == topic)
            .map(|(_, group)| group.to_owned())
            .collect()
    }

    /// Forgets a group.
    pub fn remove_group(&mut self, group: &str, now_ms: i64) {
        self.remove_where(|_, of| of == group, now_ms);
    }

    /// Forgets a topic.
    pub fn remove_topic(&mut self, topic: &str, now_ms: i64) {
        self.remove_where(|of, _| of == topic, now_ms);
    }

    fn remove_where(&mut self, gone: impl Fn(&str, &str) -> bool, now_ms: i64) {
        let keep = |key: &String| split(key).is_none_or(|(topic, group)| !gone(topic, group));
        self.entries.retain(|key, _| keep(key));
        self.pending_resets.retain(|key, _| keep(key));
        self.pulled.retain(|key, _| keep(key));
        self.raise_version(now_ms);
    }

    /// Lowers each offset above the end of its queue to that end: the log lost a suffix, and what is written there next is new to every
    /// group. `end_of` answers the first unused offset. Returns what was lowered: `(key, queue, before, after)`.
    pub fn lower_to_ends(&mut self, end_of: impl Fn(&str, i32) -> i64, now_ms: i64) -> Vec<(String, i32, i64, i64)> {
        let mut lowered = Vec::new();
        for (key, queues) in &mut self.entries {
            let Some((topic, _)) = split(key) else { continue };
            for (&queue_id, progress) in queues {
                let end = end_of(topic, queue_id);
                if progress.offset > end {
                    lowered.push((key.clone(), queue_id, progress.offset, end));
                    *progress = Progress { lowered: progress.lowered + 1, offset: end };
                }
            }
        }
        if !lowered.is_empty() {
            self.raise_version(now_ms);
        }
        lowered
    }

    /// From now on the text has the offsets of light queues apart, as Apache's broker writes them with `enableLmq`.
    pub fn keep_light_apart(&mut self) {
        self.keeps_light_apart = true;
    }

    /// Takes in another copy of the table: by `(lowered, offset)` if its writer keeps that, else each of its `topic@group` entries
    /// whole, as Apache's slave does. `own_version` of the other side becomes this table's.
    pub fn merge(&mut self, other: &OffsetTableText) {
        let merges = other.lowered_table.is_some();
        for (key, queues) in other.offsets().iter().filter(|(key, _)| split(key).is_some()) {
            let lowered = other.lowered_table.as_ref().and_then(|table| table.get(key));
            let theirs = queues.iter().filter(|(_, offset)| **offset >= 0).map(|(&queue_id, &offset)| {
                let lowered = lowered.and_then(|table| table.get(&queue_id)).copied().unwrap_or(0);
                (queue_id, Progress { lowered, offset })
            });
            let ours = self.entries.entry(key.clone()).or_default();
            let mut merged = if merges { ours.clone() } else { BTreeMap::new() };
            for (queue_id, progress) in theirs {
                let entry = merged.entry(queue_id).or_insert(progress);
                *entry = progress.max(*entry);
            }
            if *ours != merged {
                *ours = merged;
                self.changes += 1;
            }
        }
    }

    /// Copies the other side's version, as a slave does after each copy.
    pub fn adopt_version(&mut self, version: DataVersion) {
        if self.version != version {
            self.version = version;
            self.changes += 1;
        }
    }

    /// The table as text.
    pub fn text(&self) -> OffsetTableText {
        let mut text = OffsetTableText {
            data_version: self.version,
            reset_table: self.pending_resets.clone(),
            ..OffsetTableText::default()
        };
        let mut lowered_table: BTreeMap<String, PerQueue> = BTreeMap::new();
        for (key, queues) in &self.entries {
            if let Some((topic, group)) = split(key) {
                text.group_topic_map.entry(group.to_owned()).or_default().insert(topic.to_owned());
            }
            text.offset_table
                .insert(key.clone(), queues.iter().map(|(&queue, progress)| (queue, progress.offset)).collect());
            let lowered: PerQueue =
                queues.iter().filter(|(_, p)| p.lowered > 0).map(|(&queue, p)| (queue, p.lowered)).collect();
            if !lowered.is_empty() {
                lowered_table.insert(key.clone(), lowered);
            }
        }
        text.lowered_table = Some(lowered_table);
        if self.keeps_light_apart {
            text.keep_light_apart();
        }
        text
    }

    /// The table that was written as `text`.
    pub fn from_text(text: &OffsetTableText) -> OffsetTable {
        let mut table = OffsetTable { version: text.data_version, ..OffsetTable::default() };
        table.merge(text);
        for (key, queues) in &text.reset_table {
            let valid: PerQueue =
                queues.iter().filter(|(_, offset)| **offset >= 0).map(|(&queue, &offset)| (queue, offset)).collect();
            if split(key).is_some() && !valid.is_empty() {
                table.pending_resets.insert(key.clone(), valid);
            }
        }
        table.changes = 0;
        table
    }

    /// A number that differs whenever the table differs.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn raise_version(&mut self, now_ms: i64) {
        self.version.counter += 1;
        self.version.timestamp = now_ms;
        self.commits_since_version = 0;
        self.changes += 1;
    }
}

fn key(topic: &str, group: &str) -> String {
    [topic, "@", group].concat()
}

/// `topic@group` into its parts; a key with more or fewer parts belongs to nobody.
fn split(key: &str) -> Option<(&str, &str)> {
    let (topic, group) = key.split_once('@')?;
    (!group.contains('@')).then_some((topic, group))
}

#[cfg(test)]
mod tests;
