//! What a returning master does after it has heard from its slaves. Pure.
//!
//! A master that lost power recovers a log that is a prefix of the one it had; a slave may hold more of that one. The master may
//! take over a slave's bytes if its whole log is a prefix of the slave's, which the equality of the last two maximal records proves
//! (see `common_prefix`).
use protocol::PhysicalOffset;

/// A log's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: PhysicalOffset,
    pub(crate) end: PhysicalOffset,
}

/// How a slave's log continues the master's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// It does not go beyond it, or begins behind its end.
    NothingToGive,
    /// It goes beyond, and these bytes must be equal at both for it to be the same log. An empty range: nothing has to be compared.
    Longer { from: PhysicalOffset, to: PhysicalOffset },
}

/// Compares bounds. `range`: bytes that are compared at the most.
pub(crate) fn relation(own: Bounds, slave: Bounds, range: u64) -> Relation {
    if slave.end <= own.end || slave.min > own.end {
        return Relation::NothingToGive;
    }
    let range = i64::try_from(range).expect("a range of bytes in memory");
    Relation::Longer { from: own.min.max(slave.min).max(own.end - range), to: own.end }
}

/// What is known of one slave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// It did not answer, or cannot say yet.
    Silent,
    /// It has nothing that the master lacks: its log is not longer, is another one, or it does not know the question.
    NothingToGive,
    /// Its log continues the master's up to here.
    Continues { to: PhysicalOffset },
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Too few slaves were heard.
    Wait,
    /// Take the bytes up to `to` from the slave with this index.
    Fetch { slave: usize, to: PhysicalOffset },
    /// Nobody has more.
    Done,
}

/// Decides by what the slaves said. `needed`: how many of them must have been heard.
pub(crate) fn step(views: &[View], needed: usize) -> Step {
    let heard = views.iter().filter(|view| **view != View::Silent).count();
    if heard < needed {
        return Step::Wait;
    }
    let longest = views.iter().enumerate().filter_map(|(slave, view)| match *view {
        View::Continues { to } => Some((to, slave)),
        View::Silent | View::NothingToGive => None,
    });
    // Of equals the first.
    match longest.max_by_key(|(to, slave)| (*to, std::cmp::Reverse(*slave))) {
        Some((to, slave)) => Step::Fetch { slave, to },
        None => Step::Done,
    }
}

/// Of how many slaves a master must hear before it can know that it lacks nothing acknowledged, if each acknowledged byte is on
/// `copies` of the `known` slaves: with one less, the silent ones might be just those. At least one, so that a master whose slaves
/// are not known yet waits for them; nothing could be acknowledged without them anyway.
#[must_use]
pub fn slaves_to_hear(known: usize, copies: usize) -> usize {
    assert!(copies > 0);
    known.max(copies) + 1 - copies
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Relation, Step, View, relation, slaves_to_hear, step};
    use protocol::PhysicalOffset;

    fn bounds(min: i64, end: i64) -> Bounds {
        Bounds { min: PhysicalOffset(min), end: PhysicalOffset(end) }
    }

    #[test]
    fn only_a_longer_log_that_touches_is_compared() {
        let check = |own: (i64, i64), slave: (i64, i64), expected: Option<(i64, i64)>| {
            let expected = expected.map_or(Relation::NothingToGive, |(from, to)| Relation::Longer {
                from: PhysicalOffset(from),
                to: PhysicalOffset(to),
            });
            assert_eq!(relation(bounds(own.0, own.1), bounds(slave.0, slave.1), 100), expected, "{own:?} {slave:?}");
        };
        check((0, 500), (0, 501), Some((400, 500)));
        check((0, 500), (0, 500), None);
        check((0, 500), (0, 10), None);
        check((0, 500), (450, 900), Some((450, 500)));
        check((480, 500), (0, 900), Some((480, 500)));
        check((0, 500), (500, 900), Some((500, 500)));
        check((0, 500), (501, 900), None);
        check((0, 0), (0, 900), Some((0, 0)));
    }

    #[test]
    fn the_longest_continuation_is_taken_once_enough_slaves_were_heard() {
        let to = |to: i64| View::Continues { to: PhysicalOffset(to) };
        let fetch = |slave: usize, to: i64| Step::Fetch { slave, to: PhysicalOffset(to) };
        let check =
            |views: &[View], needed: usize, expected: Step| assert_eq!(step(views, needed), expected, "{views:?}");
        check(&[], 0, Step::Done);
        check(&[], 1, Step::Wait);
        check(&[View::Silent], 0, Step::Done);
        check(&[View::Silent], 1, Step::Wait);
        check(&[View::NothingToGive], 1, Step::Done);
        check(&[to(7)], 1, fetch(0, 7));
        check(&[to(7), View::Silent], 2, Step::Wait);
        check(&[to(7), View::Silent, View::NothingToGive], 2, fetch(0, 7));
        check(&[to(7), to(9), to(9), to(8)], 4, fetch(1, 9));
    }

    #[test]
    fn whoever_is_not_heard_cannot_hold_all_copies() {
        let check = |known: usize, copies: usize, expected: usize| {
            assert_eq!(slaves_to_hear(known, copies), expected, "{known} {copies}");
        };
        check(0, 1, 1);
        check(1, 1, 1);
        check(2, 1, 2);
        check(2, 2, 1);
        check(5, 2, 4);
        check(1, 2, 1);
    }
}
