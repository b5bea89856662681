//! Who produces: the connections of each producer group, as heartbeats tell it.
use crate::consumers::{Member, Peer};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All producer groups with at least one member.
#[derive(Debug, Default)]
pub(crate) struct ProducerTable {
    groups: BTreeMap<String, BTreeMap<Peer, Member>>,
}

impl ProducerTable {
    pub fn join(&mut self, connection: Peer, member: Member, group: &str) {
        self.groups.entry(group.to_owned()).or_default().insert(connection, member);
    }

    pub fn leave(&mut self, connection: Peer, group: &str) {
        self.retain(|of, id, _| of != group || id != connection);
    }

    pub fn disconnected(&mut self, connection: Peer) {
        self.retain(|_, id, _| id != connection);
    }

    /// Removes members that have been silent for longer than `expiry` and answers their connections, to be closed.
    pub fn expire(&mut self, now: Duration, expiry: Duration) -> BTreeSet<Peer> {
        let silent = |member: &Member| now.saturating_sub(member.last_heartbeat) > expiry;
        let gone = self.groups.values().flatten().filter(|(_, member)| silent(member)).map(|(id, _)| *id).collect();
        self.retain(|_, _, member| !silent(member));
        gone
    }

    /// The connection by which a client produces; of several the newest.
    pub fn connection_of(&self, client_id: &str) -> Option<Peer> {
        let members = self.groups.values().flatten();
        members.filter(|(_, member)| member.client_id == client_id).map(|(peer, _)| *peer).max()
    }

    pub fn members(&self, group: &str) -> Option<&BTreeMap<Peer, Member>> {
        self.groups.get(group)
    }

    fn retain(&mut self, keep: impl Fn(&str, Peer, &Member) -> bool) {
        self.groups.retain(|group, members| {
            members.retain(|id, member| keep(group, *id, member));
            !members.is_empty()
        });
    }
}
