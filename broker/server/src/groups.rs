//! The subscription groups of a broker: which exist, what they may do, how a consumer creates its own.
use crate::names::check_group;
use protocol::body::{DataVersion, SubscriptionGroupConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Groups that exist on every broker.
const SYSTEM_GROUPS: &[&str] = &[
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    crate::transaction::GROUP,
];
/// The prefix of groups that may create themselves even if others may not.
const SYSTEM_PREFIX: &str = "CID_RMQ_SYS_";

/// The table as text: `config/subscriptionGroup.json` and the body of GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GroupTableText {
    pub data_version: DataVersion,
    pub forbidden_table: BTreeMap<String, BTreeMap<String, i32>>,
    pub subscription_group_table: BTreeMap<String, SubscriptionGroupConfig>,
}

/// All subscription groups of a broker.
#[derive(Debug)]
pub(crate) struct GroupTable {
    groups: BTreeMap<String, SubscriptionGroupConfig>,
    /// Bits by group and topic; kept for the file's sake, set by no request yet.
    forbidden: BTreeMap<String, BTreeMap<String, i32>>,
    version: DataVersion,
    auto_create: bool,
    /// Counts changes, so that a writer knows whether its snapshot is still the newest.
    changes: u64,
}

impl GroupTable {
    pub fn new(auto_create: bool) -> GroupTable {
        let groups = SYSTEM_GROUPS.iter().map(|name| ((*name).to_owned(), named(name))).collect();
        GroupTable { groups, forbidden: BTreeMap::new(), version: DataVersion::default(), auto_create, changes: 0 }
    }

    /// Lays the groups of a file over the system's.
    pub fn load(&mut self, text: GroupTableText) {
        self.groups
            .extend(text.subscription_group_table.into_iter().filter(|(name, config)| *name == config.group_name));
        self.forbidden = text.forbidden_table;
        self.version = text.data_version;
    }

    pub fn get(&self, group: &str) -> Option<&SubscriptionGroupConfig> {
        self.groups.get(group)
    }

    /// The group, created if groups may create themselves. The flag says whether it is new.
    pub fn find_or_create(&mut self, group: &str, now_ms: i64) -> Option<(SubscriptionGroupConfig, bool)> {
        if let Some(found) = self.groups.get(group) {
            return Some((found.clone(), false));
        }
        if !(self.auto_create || group.starts_with(SYSTEM_PREFIX)) || check_group(group).is_err() {
            return None;
        }
        let config = named(group);
        self.update(config.clone(), now_ms);
        Some((config, true))
    }

    /// Creates or replaces a group.
    pub fn update(&mut self, config: SubscriptionGroupConfig, now_ms: i64) {
        self.groups.insert(config.group_name.clone(), config);
        self.raise_version(now_ms);
    }

    /// Forgets a group; false if there was none.
    pub fn delete(&mut self, group: &str, now_ms: i64) -> bool {
        let existed = self.groups.remove(group).is_some();
        if existed {
            self.forbidden.remove(group);
            self.raise_version(now_ms);
        }
        existed
    }

    /// Whether the group must not read the topic (bit 2 = the read permission's place).
    pub fn read_forbidden(&self, group: &str, topic: &str) -> bool {
        self.forbidden.get(group).and_then(|topics| topics.get(topic)).is_some_and(|bits| bits & (1 << 2) != 0)
    }

    /// Becomes the master's table, in one step, with its version. True if anything differs.
    pub fn become_copy(&mut self, text: GroupTableText) -> bool {
        if text.data_version == self.version {
            return false;
        }
        self.groups = text.subscription_group_table;
        self.forbidden = text.forbidden_table;
        self.version = text.data_version;
        self.changes += 1;
        true
    }

    #[cfg(test)]
    fn version(&self) -> &DataVersion {
        &self.version
    }

    pub fn text(&self) -> GroupTableText {
        GroupTableText {
            data_version: self.version,
            forbidden_table: self.forbidden.clone(),
            subscription_group_table: self.groups.clone(),
        }
    }

    /// A number that differs whenever the table differs.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn raise_version(&mut self, now_ms: i64) {
        self.version.counter += 1;
        self.version.timestamp = now_ms;
        self.changes += 1;
    }
}

fn named(group: &str) -> SubscriptionGroupConfig {
    SubscriptionGroupConfig::new(group)
}

#[cfg(test)]
mod tests {
    use super::GroupTable;

    #[test]
    fn who_may_create_itself() {
        let check = |auto_create: bool, group: &str, expected: Option<bool>| {
            let mut table = GroupTable::new(auto_create);
            assert_eq!(table.find_or_create(group, 1).map(|(_, new)| new), expected, "{auto_create} {group}");
            assert_eq!(table.version().counter, i64::from(expected == Some(true)));
        };
        check(true, "g", Some(true));
        check(true, "bad name", None);
        check(false, "g", None);
        check(false, "CID_RMQ_SYS_x", Some(true));
        check(false, "TOOLS_CONSUMER", Some(false));
    }
}
