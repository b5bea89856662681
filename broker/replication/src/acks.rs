//! Which slaves hold what, and who waits for it. Pure.
use protocol::PhysicalOffset;
use rt::sync::oneshot;
use rt::time::Duration;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// What makes two connections the same slave's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identity {
    /// The slave said so in a comparison request.
    Announced(String),
    /// The stream itself carries no identity (an Apache slave): the host counts. Two slaves on one host then count once, which errs on
    /// the safe side.
    Host(IpAddr),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Announced(id) => f.write_str(id),
            Identity::Host(host) => host.fmt(f),
        }
    }
}

impl Identity {
    /// The identity that is told as this text: an announced name is more than an address.
    fn told(text: &str) -> Identity {
        text.parse().map_or_else(|_| Identity::Announced(text.to_owned()), Identity::Host)
    }
}

/// What a master knows of a slave, for its next life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSlave {
    /// How far it holds the log.
    pub acked: PhysicalOffset,
    /// For how long it has been away; zero: it is connected.
    pub away: Duration,
}

/// Numbers the connections of a master, rising.
pub(crate) type ConnectionNumber = u64;

#[derive(Debug)]
struct Slave {
    identity: Identity,
    acked: Option<PhysicalOffset>,
}

/// Names one waiting caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitKey {
    copies: usize,
    end: PhysicalOffset,
    number: u64,
}

/// A slave whose last connection has ended.
#[derive(Clone, Copy, Debug)]
struct Away {
    acked: PhysicalOffset,
    /// When it ended, since the start of the master.
    since: Duration,
    /// For how long it had been away when the master started.
    before: Duration,
}

impl Away {
    fn lasts(&self, now: Duration) -> Duration {
        self.before + now.saturating_sub(self.since)
    }
}

/// Slaves that are away and remembered, at most; those that are away for longest are forgotten first.
const AWAY_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct AckTable {
    slaves: BTreeMap<ConnectionNumber, Slave>,
    away: BTreeMap<Identity, Away>,
    waiting: BTreeMap<WaitKey, oneshot::Sender<()>>,
    waits: u64,
}

impl AckTable {
    pub(crate) fn connect(&mut self, number: ConnectionNumber, identity: Identity) {
        let before = self.slaves.insert(number, Slave { identity, acked: None });
        assert!(before.is_none());
    }

    /// A slave has told its name: its older connections are returned, they are dead.
    pub(crate) fn announce(&mut self, number: ConnectionNumber, id: &str) -> Vec<ConnectionNumber> {
        let identity = Identity::Announced(id.to_owned());
        let older =
            self.slaves.range(..number).filter(|(_, slave)| slave.identity == identity).map(|(n, _)| *n).collect();
        if let Some(slave) = self.slaves.get_mut(&number) {
            self.away.remove(&slave.identity);
            slave.identity = identity;
        }
        self.wake();
        older
    }

    /// The connection has ended, `now` after the start of the master. An older one of the same slave speaks for it again only once it reports again: a dead one never does.
    pub(crate) fn disconnect(&mut self, number: ConnectionNumber, now: Duration) {
        let Some(gone) = self.slaves.remove(&number) else { return };
        // An empty one begins with the last segment when it returns: it needs nothing.
        if let Some(acked) = gone.acked.filter(|acked| *acked > PhysicalOffset::ZERO) {
            self.remember(gone.identity.clone(), Away { acked, since: now, before: Duration::ZERO });
        }
        let newest = self.slaves.iter_mut().rev().find(|(_, slave)| slave.identity == gone.identity);
        if let Some((older, slave)) = newest
            && *older < number
        {
            slave.acked = None;
        }
    }

    pub(crate) fn identity(&self, number: ConnectionNumber) -> Option<&Identity> {
        self.slaves.get(&number).map(|slave| &slave.identity)
    }

    /// The slave of that connection holds the log up to `end`; whoever waited for that is woken.
    pub(crate) fn acknowledge(&mut self, number: ConnectionNumber, end: PhysicalOffset) {
        let Some(slave) = self.slaves.get_mut(&number) else { return };
        slave.acked = Some(end);
        self.away.remove(&slave.identity);
        self.wake();
    }

    fn remember(&mut self, identity: Identity, away: Away) {
        let now = away.since;
        self.away.insert(identity, away);
        if self.away.len() > AWAY_MAX {
            let longest =
                self.away.iter().max_by_key(|(_, away)| away.lasts(now)).map(|(identity, _)| identity.clone());
            longest.and_then(|identity| self.away.remove(&identity));
        }
    }

    /// The least that a slave holds which is away, but not for longer than `away_max`.
    pub(crate) fn least_away(&self, now: Duration, away_max: Duration) -> Option<PhysicalOffset> {
        self.away.values().filter(|away| away.lasts(now) <= away_max).map(|away| away.acked).min()
    }

    /// Slaves that are connected, or away but not for longer than `away_max`, by what they are counted by.
    pub(crate) fn known(&self, now: Duration, away_max: Duration) -> BTreeMap<String, KnownSlave> {
        let away = self.away.iter().filter(|(_, away)| away.lasts(now) <= away_max);
        let away = away.map(|(id, away)| (id, KnownSlave { acked: away.acked, away: away.lasts(now) }));
        let connected = self.slaves.values().filter_map(|slave| {
            let acked = slave.acked.filter(|acked| *acked > PhysicalOffset::ZERO)?;
            Some((&slave.identity, KnownSlave { acked, away: Duration::ZERO }))
        });
        away.chain(connected).map(|(identity, slave)| (identity.to_string(), slave)).collect()
    }

    /// Takes over what an earlier life of the master knew, before any slave is connected.
    pub(crate) fn remember_known(&mut self, known: BTreeMap<String, KnownSlave>) {
        for (id, KnownSlave { acked, away }) in known {
            self.remember(Identity::told(&id), Away { acked, since: Duration::ZERO, before: away });
        }
    }

    /// How far each slave is, once per slave and largest first. Of several connections of one slave the newest speaks for it: an older
    /// one may be from before its disk was wiped.
    fn ends(&self) -> Vec<PhysicalOffset> {
        let mut by_identity = BTreeMap::new();
        for slave in self.slaves.values() {
            by_identity.insert(&slave.identity, slave.acked);
        }
        let mut ends: Vec<_> = by_identity.into_values().flatten().collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends
    }

    /// Slaves that hold the log up to `end`.
    pub(crate) fn holding(&self, end: PhysicalOffset) -> usize {
        self.ends().partition_point(|acked| *acked >= end)
    }

    /// Slaves that are less than `gap` bytes behind `end`.
    pub(crate) fn within(&self, end: PhysicalOffset, gap: u64) -> usize {
        self.ends().partition_point(|acked| u64::try_from(end - *acked).unwrap_or(0) < gap)
    }

    /// Waits until `copies` slaves hold the log up to `end`; `None`: they do.
    pub(crate) fn wait(&mut self, end: PhysicalOffset, copies: usize) -> Option<(WaitKey, oneshot::Receiver<()>)> {
        if self.holding(end) >= copies {
            return None;
        }
        self.waits += 1;
        let key = WaitKey { copies, end, number: self.waits };
        let (wake, woken) = oneshot::channel();
        self.waiting.insert(key, wake);
        Some((key, woken))
    }

    /// The caller gives up.
    pub(crate) fn forget(&mut self, key: WaitKey) {
        self.waiting.remove(&key);
    }

    /// Nobody is waited for any longer; the waiting callers see their channel closed.
    pub(crate) fn stop(&mut self) {
        self.waiting.clear();
    }

    fn wake(&mut self) {
        let ends = self.ends();
        for (index, end) in ends.into_iter().enumerate() {
            // This end is held by index + 1 slaves: all who wait for so many copies of it or less are served.
            let copies = index + 1;
            let first = WaitKey { copies, end: PhysicalOffset(i64::MIN), number: 0 };
            let last = WaitKey { copies, end, number: u64::MAX };
            while let Some((key, _)) = self.waiting.range(first..=last).next() {
                let key = *key;
                if let Some(wake) = self.waiting.remove(&key) {
                    // The caller may have been dropped in this moment.
                    let _ = wake.send(());
                }
            }
        }
    }

    pub(crate) fn check_invariants(&self) {
        for key in self.waiting.keys() {
            assert!(key.copies > 0);
            assert!(self.holding(key.end) < key.copies, "{key:?} waits for what is there");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AckTable, Identity, KnownSlave};
    use protocol::PhysicalOffset;
    use rt::time::Duration;
    use std::net::{IpAddr, Ipv4Addr};

    fn host(last: u8) -> Identity {
        Identity::Host(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)))
    }

    fn at(offset: i64) -> PhysicalOffset {
        PhysicalOffset(offset)
    }

    #[test]
    fn two_connections_of_one_host_are_one_copy() {
        let mut acks = AckTable::default();
        acks.connect(1, host(1));
        acks.connect(2, host(1));
        acks.acknowledge(1, at(100));
        acks.acknowledge(2, at(100));
        assert_eq!(acks.holding(at(100)), 1);
        let (_, mut woken) = acks.wait(at(100), 2).expect("one slave is not two");
        assert!(woken.try_recv().is_err());
        acks.connect(3, host(2));
        acks.acknowledge(3, at(100));
        assert!(woken.try_recv().is_ok());
        acks.check_invariants();
    }

    #[test]
    fn announced_slaves_on_one_host_are_two_copies_and_the_newest_connection_speaks() {
        let mut acks = AckTable::default();
        for number in 1..=3 {
            acks.connect(number, host(1));
        }
        assert!(acks.announce(1, "a:1").is_empty());
        assert!(acks.announce(2, "a:2").is_empty());
        acks.acknowledge(1, at(50));
        acks.acknowledge(2, at(70));
        assert_eq!((acks.holding(at(50)), acks.holding(at(51))), (2, 1));
        assert_eq!(acks.announce(3, "a:1"), [1]);
        acks.check_invariants();
        // Slave a:1 came back and has reported nothing yet: what its old connection said counts no longer.
        assert_eq!(acks.holding(at(50)), 1);
        acks.acknowledge(3, at(20));
        assert_eq!((acks.holding(at(20)), acks.holding(at(50))), (2, 1));
        acks.disconnect(3, Duration::ZERO);
        assert_eq!(acks.holding(at(20)), 1, "the old connection must report again before it counts");
        acks.acknowledge(1, at(50));
        assert_eq!(acks.holding(at(50)), 2);
    }

    #[test]
    fn an_acknowledgement_wakes_exactly_those_it_serves() {
        let mut acks = AckTable::default();
        acks.connect(1, host(1));
        acks.connect(2, host(2));
        let mut waits: Vec<_> = [(10, 1), (20, 1), (10, 2), (20, 2)]
            .map(|(end, copies)| acks.wait(at(end), copies).expect("nothing is acked").1)
            .into();
        let mut woken = || waits.iter_mut().map(|w| w.try_recv().is_ok()).collect::<Vec<_>>();
        acks.acknowledge(1, at(15));
        assert_eq!(woken(), [true, false, false, false]);
        acks.acknowledge(2, at(20));
        assert_eq!(woken(), [false, true, true, false]);
        acks.disconnect(2, Duration::ZERO);
        acks.acknowledge(1, at(30));
        assert_eq!(woken(), [false, false, false, false]);
        acks.check_invariants();
        assert_eq!(acks.within(at(40), 10), 0);
        assert_eq!(acks.within(at(40), 11), 1);
        assert_eq!(acks.within(at(20), 1), 1, "a slave ahead of the end asked for is in sync");
        assert!(acks.wait(at(30), 0).is_none());
    }

    #[test]
    fn the_next_life_of_a_master_knows_the_slaves_that_were_there_or_away() {
        let (begin, hour) = (Duration::from_secs(7), Duration::from_secs(3600));
        let mut acks = AckTable::default();
        acks.connect(1, host(1));
        assert!(acks.announce(1, "10.0.0.1:10911").is_empty());
        acks.acknowledge(1, at(50));
        acks.connect(2, host(2));
        acks.acknowledge(2, at(70));
        acks.disconnect(2, begin);
        acks.connect(3, host(3));
        acks.acknowledge(3, at(0));
        let known = acks.known(begin + hour, hour);
        let expected = [("10.0.0.1:10911", at(50), Duration::ZERO), ("10.0.0.2", at(70), hour)];
        let expected = expected.map(|(id, acked, away)| (id.to_owned(), KnownSlave { acked, away }));
        assert_eq!(known, expected.into());
        assert_eq!(acks.known(begin + hour + Duration::from_millis(1), hour).len(), 1, "for longer than that");

        let mut next = AckTable::default();
        next.remember_known(known);
        assert_eq!(next.least_away(Duration::ZERO, hour), Some(at(50)));
        // One is back with more than was known; the other one has been away for an hour already.
        next.connect(1, host(1));
        assert!(next.announce(1, "10.0.0.1:10911").is_empty());
        assert_eq!(next.least_away(Duration::ZERO, hour), Some(at(50)), "it has said nothing yet");
        next.acknowledge(1, at(60));
        assert_eq!(next.least_away(Duration::ZERO, hour), Some(at(70)));
        assert_eq!(next.least_away(begin, hour), None);
    }

    #[test]
    fn what_a_slave_has_is_remembered_until_it_returns_or_has_been_away_for_long() {
        let (begin, hour) = (Duration::from_secs(7), Duration::from_secs(3600));
        let mut acks = AckTable::default();
        for (last, end) in [(1, 50), (2, 70), (3, 0)] {
            acks.connect(u64::from(last), host(last));
            acks.acknowledge(u64::from(last), at(end));
        }
        assert_eq!(acks.least_away(begin, hour), None);
        acks.disconnect(3, begin);
        assert_eq!(acks.least_away(begin, hour), None, "an empty slave needs nothing");
        acks.disconnect(1, begin);
        acks.disconnect(2, begin + hour / 2);
        assert_eq!(acks.least_away(begin + hour, hour), Some(at(50)));
        assert_eq!(acks.least_away(begin + hour * 5 / 4, hour), Some(at(70)));
        assert_eq!(acks.least_away(begin + hour * 2, hour), None);
        // Back, but silent; then it speaks for itself.
        acks.connect(4, host(1));
        assert_eq!(acks.least_away(begin + hour, hour), Some(at(50)));
        acks.acknowledge(4, at(60));
        assert_eq!(acks.least_away(begin + hour, hour), Some(at(70)));
        for last in 10..100 {
            let number = u64::from(last);
            acks.connect(number, host(last));
            acks.acknowledge(number, at(i64::from(last)));
            acks.disconnect(number, begin + Duration::from_secs(number));
        }
        assert_eq!(acks.least_away(begin, hour), Some(at(37)), "those that are away for longest are forgotten first");
    }
}
