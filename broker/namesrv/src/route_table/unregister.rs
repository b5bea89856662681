//! A broker goes away: by its own word, by the end of its connection, by silence.

use std::time::Duration;

use super::{BrokerKey, ConnectionNumber, RouteTable, WRITE};

impl RouteTable {
    /// A broker says goodbye. Passed over if the address has been heard over a newer connection since: then the word is that of an
    /// earlier life of the broker. Returns whether it was removed.
    pub fn unregister(&mut self, key: &BrokerKey, connection: ConnectionNumber) -> bool {
        let is_current = self.live.get(key).is_some_and(|live| live.connection <= connection);
        if is_current {
            self.remove(key);
        }
        is_current
    }

    /// A connection has ended: what was last heard over it is gone.
    pub fn connection_lost(&mut self, connection: ConnectionNumber) -> Vec<BrokerKey> {
        let lost: Vec<BrokerKey> =
            self.live.iter().filter(|(_, live)| live.connection == connection).map(|(key, _)| key.clone()).collect();
        for key in &lost {
            self.remove(key);
        }
        lost
    }

    /// Removes what has been silent for too long; returns it with the connections that are to be closed.
    pub fn expire(&mut self, now: Duration) -> Vec<(BrokerKey, ConnectionNumber)> {
        let expired: Vec<_> = self
            .live
            .iter()
            .filter(|(_, live)| live.heard_at.saturating_add(live.expiry) < now)
            .map(|(key, live)| (key.clone(), live.connection))
            .collect();
        for (key, _) in &expired {
            self.remove(key);
        }
        expired
    }

    /// Removes one address, and the broker name with everything it serves if that was its last.
    pub(super) fn remove(&mut self, key: &BrokerKey) {
        self.live.remove(key);
        let Some(broker) = self.brokers.get_mut(&key.name) else { return };
        // By address, not by id: a late goodbye of an old master must not remove the new one.
        broker.broker_addrs.retain(|_, addr| *addr != key.addr);
        let Some((&smallest, _)) = broker.broker_addrs.first_key_value() else {
            self.remove_name(&key.name);
            return;
        };
        if broker.enable_acting_master && smallest > 0 {
            self.withhold_write(&key.name);
        }
    }

    fn remove_name(&mut self, name: &str) {
        self.brokers.remove(name);
        self.clusters.retain(|_, names| {
            names.remove(name);
            !names.is_empty()
        });
        self.retain_rows(name, |_| false);
        self.mappings.retain(|_, rows| {
            rows.remove(name);
            !rows.is_empty()
        });
    }

    /// Without a master nobody may send, until a master registers.
    fn withhold_write(&mut self, name: &str) {
        for rows in self.topics.values_mut() {
            if let Some(row) = rows.get_mut(name) {
                row.perm_here = Some(row.perm() & !WRITE);
            }
        }
    }
}
