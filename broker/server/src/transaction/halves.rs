//! Which halves are open. A core without IO: it is told what the two queues hold and what is decided, and says who is to be asked.
//!
//! A half is known by its offset in the queue of halves, and a transaction by its id, the message's unique key: a producer that was not
//! answered in time sends its half again, and a half whose producer was asked is stored again, so one transaction may have several. What
//! is decided of one is decided of all.
use indexmap::IndexSet;
use protocol::PhysicalOffset;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// What must be known of a half that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Half {
    /// The transaction's id.
    pub id: String,
    /// Place of its record.
    pub physical: PhysicalOffset,
    /// When its producer made it, or it was stored if that was earlier, Unix milliseconds.
    pub since_ms: i64,
    /// When it was stored, Unix milliseconds.
    pub stored_ms: i64,
    /// How often its producer was asked.
    pub checks: u32,
    /// How long its producer asked not to be asked.
    pub immunity: Option<Duration>,
}

/// What is to be done with a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Its producer is to be asked.
    Ask,
    /// It was asked too often, or the half is about to expire.
    GiveUp,
}

/// When halves are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckRules {
    /// A producer is not asked before (`transactionTimeOut`).
    pub timeout: Duration,
    /// It is asked so often at most (`transactionCheckMax`).
    pub checks_max: u32,
    /// A half that was stored longer ago is about to be removed with its segment (`fileReservedTime`).
    pub age_max: Duration,
}

/// Halves of one transaction that somebody decides now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim(BTreeMap<i64, Half>);

impl Claim {
    /// Their offsets in the queue of halves.
    pub fn offsets(&self) -> Vec<i64> {
        self.0.keys().copied().collect()
    }
}

/// So many transactions that were given up are remembered.
const GIVEN_UP_MAX: usize = 10_000;

/// All open halves.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    open: BTreeMap<i64, Half>,
    of_transaction: BTreeMap<String, BTreeSet<i64>>,
    /// In a claim.
    claimed: BTreeSet<i64>,
    /// Transactions whose producer did not say in time: what it says later counts. The last ones only.
    given_up: IndexSet<String>,
    /// Decided, and not read yet.
    decided_early: BTreeSet<i64>,
    /// Next to be read of the halves and of the op messages.
    next: [i64; 2],
    /// Offset of each op message that may be needed, and the greatest half that it names.
    ops: VecDeque<(i64, i64)>,
}

impl Halves {
    /// Nothing below these offsets is needed.
    pub fn starting_at(half: i64, op: i64) -> Halves {
        Halves { next: [half, op], ..Halves::default() }
    }

    /// The next half to be read.
    pub fn next_half(&self) -> i64 {
        self.next[0]
    }

    /// The next op message to be read.
    pub fn next_op(&self) -> i64 {
        self.next[1]
    }

    /// Nothing is there before `next`.
    pub fn skip_halves(&mut self, next: i64) {
        self.next[0] = self.next[0].max(next);
    }

    /// Nothing is there before `next`.
    pub fn skip_ops(&mut self, next: i64) {
        self.next[1] = self.next[1].max(next);
    }

    /// A half of the queue was read.
    pub fn read_half(&mut self, offset: i64, half: Half) {
        self.next[0] = self.next[0].max(offset + 1);
        if !self.decided_early.remove(&offset) && !self.claimed.contains(&offset) {
            self.insert(offset, half);
        }
    }

    /// An op message was read: these halves are decided.
    pub fn read_op(&mut self, op: i64, decided: &[i64]) {
        self.next[1] = self.next[1].max(op + 1);
        for &offset in decided {
            self.remove(offset);
            if offset >= self.next_half() {
                self.decided_early.insert(offset);
            }
        }
        if let Some(greatest) = decided.iter().max() {
            self.ops.push_back((op, *greatest));
        }
    }

    /// A half was stored again, because its producer is asked: it is open in place of those that were claimed.
    pub fn stored_again(&mut self, offset: i64, half: Half) {
        self.insert(offset, half);
    }

    /// Takes all halves of the transaction that this half belongs to; none if it is decided, or is being decided.
    pub fn claim(&mut self, offset: i64, half: Half) -> Option<Claim> {
        let known = self.of_transaction.get(&half.id).cloned().unwrap_or_default();
        let mut claim: BTreeMap<_, _> =
            known.into_iter().filter_map(|offset| Some((offset, self.remove(offset)?))).collect();
        let is_news =
            offset >= self.next_half() && !self.decided_early.contains(&offset) && !self.claimed.contains(&offset);
        let was_given_up = self.given_up.swap_remove(&half.id);
        if is_news || (claim.is_empty() && was_given_up) {
            claim.insert(offset, half);
        }
        self.claimed.extend(claim.keys());
        (!claim.is_empty()).then_some(Claim(claim))
    }

    /// Nobody asks for the transaction any more.
    pub fn given_up(&mut self, id: String) {
        if self.given_up.len() >= GIVEN_UP_MAX {
            self.given_up.swap_remove_index(0);
        }
        self.given_up.insert(id);
    }

    /// The decision is in the log.
    pub fn settle(&mut self, claim: &Claim) {
        for offset in claim.0.keys() {
            self.claimed.remove(offset);
            if *offset >= self.next_half() {
                self.decided_early.insert(*offset);
            }
        }
    }

    /// Nothing came of it: they are open again.
    pub fn give_back(&mut self, claim: Claim) {
        for (offset, half) in claim.0 {
            self.claimed.remove(&offset);
            self.insert(offset, half);
        }
    }

    /// The halves that are due, in the order of their queue.
    pub fn due(&self, rules: &CheckRules, now_ms: i64) -> Vec<(i64, Due)> {
        self.open.iter().filter_map(|(offset, half)| Some((*offset, due(half, rules, now_ms)?))).collect()
    }

    /// An open half.
    pub fn get(&self, offset: i64) -> Option<&Half> {
        self.open.get(&offset)
    }

    /// How far both queues are done with: the first half that is not decided, and the first op message that speaks of what follows it.
    pub fn done(&mut self) -> [i64; 2] {
        let undecided = self.open.keys().next().into_iter().chain(self.claimed.first());
        let half = undecided.copied().min().unwrap_or(i64::MAX).min(self.next_half());
        while self.ops.front().is_some_and(|(_, greatest)| *greatest < half) {
            self.ops.pop_front();
        }
        [half, self.ops.front().map_or(self.next_op(), |(op, _)| *op)]
    }

    /// The first place of the log that an open half needs.
    pub fn needed_from(&self) -> Option<PhysicalOffset> {
        self.open.values().map(|half| half.physical).min()
    }

    fn insert(&mut self, offset: i64, half: Half) {
        self.of_transaction.entry(half.id.clone()).or_default().insert(offset);
        self.open.insert(offset, half);
    }

    fn remove(&mut self, offset: i64) -> Option<Half> {
        let half = self.open.remove(&offset)?;
        if let Some(offsets) = self.of_transaction.get_mut(&half.id) {
            offsets.remove(&offset);
            if offsets.is_empty() {
                self.of_transaction.remove(&half.id);
            }
        }
        Some(half)
    }
}

fn due(half: &Half, rules: &CheckRules, now_ms: i64) -> Option<Due> {
    let age = |since_ms: i64| Duration::from_millis(u64::try_from(now_ms - since_ms).unwrap_or(0));
    if half.checks >= rules.checks_max || age(half.stored_ms) >= rules.age_max {
        return Some(Due::GiveUp);
    }
    (age(half.since_ms) > half.immunity.unwrap_or(rules.timeout)).then_some(Due::Ask)
}

#[cfg(test)]
mod tests {
    use super::{CheckRules, Due, Half, Halves};
    use protocol::PhysicalOffset;
    use std::time::Duration;

    const RULES: CheckRules =
        CheckRules { timeout: Duration::from_secs(6), checks_max: 15, age_max: Duration::from_secs(72 * 3600) };

    fn half(id: &str) -> Half {
        Half {
            id: id.to_owned(),
            physical: PhysicalOffset(700),
            since_ms: 1_000,
            stored_ms: 1_000,
            checks: 0,
            immunity: None,
        }
    }

    fn open(halves: &Halves) -> Vec<i64> {
        halves.open.keys().copied().collect()
    }

    #[test]
    fn a_half_is_open_until_an_op_message_names_it() {
        let mut halves = Halves::starting_at(4, 2);
        halves.read_half(4, half("a"));
        halves.read_half(5, half("b"));
        halves.read_op(2, &[4]);
        assert_eq!(open(&halves), [5]);
        // Half 4 is done with, and so is what speaks of it alone.
        assert_eq!(halves.done(), [5, 3]);
        halves.read_op(3, &[5]);
        assert_eq!(halves.done(), [6, 4]);
    }

    #[test]
    fn an_op_message_is_kept_as_long_as_a_restart_would_read_its_half_again() {
        let mut halves = Halves::starting_at(0, 0);
        (0..3).for_each(|offset| halves.read_half(offset, half(&offset.to_string())));
        halves.read_op(0, &[1]);
        halves.read_op(1, &[2]);
        assert_eq!(halves.done(), [0, 0]);
        halves.read_op(2, &[0]);
        assert_eq!(halves.done(), [3, 3]);
    }

    #[test]
    fn a_transaction_is_decided_once() {
        let mut halves = Halves::starting_at(0, 0);
        halves.read_half(0, half("a"));
        let claim = halves.claim(0, half("a")).unwrap();
        assert_eq!(halves.claim(0, half("a")), None);
        // Until the decision is in the log, a restart must find the half.
        assert_eq!((claim.offsets(), halves.done()), (vec![0], [0, 0]));
        halves.settle(&claim);
        assert_eq!((halves.claim(0, half("a")), halves.done()), (None, [1, 0]));
    }

    #[test]
    fn a_half_may_be_decided_before_it_is_read() {
        let mut halves = Halves::starting_at(0, 0);
        let claim = halves.claim(3, half("a")).unwrap();
        assert_eq!((claim.offsets(), halves.claim(3, half("a"))), (vec![3], None));
        halves.settle(&claim);
        assert_eq!(halves.claim(3, half("a")), None);
        halves.read_half(3, half("a"));
        assert_eq!(open(&halves), Vec::<i64>::new());
        halves.read_op(0, &[5]);
        halves.read_half(5, half("b"));
        assert_eq!(open(&halves), Vec::<i64>::new());
    }

    #[test]
    fn what_is_decided_of_one_half_is_decided_of_all_of_its_transaction() {
        let mut halves = Halves::starting_at(0, 0);
        halves.read_half(0, half("a"));
        halves.read_half(1, half("a"));
        let claim = halves.claim(0, half("a")).unwrap();
        assert_eq!(claim.offsets(), [0, 1]);
        halves.settle(&claim);
        halves.stored_again(2, Half { checks: 1, ..half("a") });
        // The end names the half as it was first stored.
        let claim = halves.claim(0, half("a")).unwrap();
        assert_eq!(claim.offsets(), [2]);
        halves.settle(&claim);
        halves.read_half(2, half("a"));
        assert_eq!(open(&halves), Vec::<i64>::new());
    }

    #[test]
    fn a_producer_may_say_after_its_transaction_was_given_up_but_once() {
        let mut halves = Halves::starting_at(0, 0);
        halves.read_half(0, half("a"));
        let claim = halves.claim(0, half("a")).unwrap();
        halves.settle(&claim);
        // Resumed by an operator, and given up again.
        halves.given_up("a".to_owned());
        halves.given_up("a".to_owned());
        assert_eq!(halves.claim(0, half("a")).unwrap().offsets(), [0]);
        assert_eq!(halves.claim(0, half("a")), None);
    }

    #[test]
    fn halves_of_a_decision_that_failed_are_open_again() {
        let mut halves = Halves::starting_at(0, 0);
        halves.read_half(0, half("a"));
        let claims = [halves.claim(0, half("a")).unwrap(), halves.claim(1, half("b")).unwrap()];
        // Read while it is claimed.
        halves.read_half(1, half("b"));
        assert_eq!(open(&halves), Vec::<i64>::new());
        claims.into_iter().for_each(|claim| halves.give_back(claim));
        assert_eq!((open(&halves), halves.done()), (vec![0, 1], [0, 0]));
        let claim = halves.claim(9, half("c")).unwrap();
        halves.give_back(claim);
        halves.read_half(9, half("c"));
        assert_eq!(open(&halves), [0, 1, 9]);
    }

    #[test]
    fn a_producer_is_asked_when_the_time_has_passed_and_not_for_ever() {
        let check =
            |half: Half, now_ms: i64, expected: Option<Due>| assert_eq!(super::due(&half, &RULES, now_ms), expected);
        check(half("a"), 7_000, None);
        check(half("a"), 7_001, Some(Due::Ask));
        check(Half { immunity: Some(Duration::from_secs(60)), ..half("a") }, 60_000, None);
        check(Half { immunity: Some(Duration::from_secs(60)), ..half("a") }, 61_001, Some(Due::Ask));
        check(Half { checks: 14, ..half("a") }, 7_001, Some(Due::Ask));
        check(Half { checks: 15, ..half("a") }, 7_001, Some(Due::GiveUp));
        check(half("a"), 1_000 + 72 * 3_600_000, Some(Due::GiveUp));
        // A clock that was set back.
        check(half("a"), 0, None);
    }
}
