//! The search for the end of the common log by comparing digests of ranges. Pure.
//!
//! It rests on one fact: a range that holds a whole record and is equal at both ends proves that everything before it is equal too. A record
//! carries its store time, its position and its client's unique key, so one appended after the logs parted is never equal to one
//! appended in the other history. Ranges of two maximal records are compared, so each holds a whole one.
use protocol::PhysicalOffset;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Compare both logs in `from..to`, and tell the answer.
    Compare { from: PhysicalOffset, to: PhysicalOffset },
    /// The slave's log is equal to the master's below this offset and differs in its next byte, or one of both ends there.
    Common(PhysicalOffset),
    /// Not even the first bytes are equal.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Going back range by range until one is equal.
    Back {
        from: PhysicalOffset,
        to: PhysicalOffset,
        first: bool,
    },
    /// Everything below `equal` is equal, `equal..differs` is not; halving it.
    Halve {
        equal: PhysicalOffset,
        differs: PhysicalOffset,
    },
    Done(Step),
}

#[derive(Debug)]
pub(crate) struct Search {
    low: PhysicalOffset,
    range: i64,
    phase: Phase,
}

impl Search {
    /// Searches in `low..high`, the part that both logs have. `range`: bytes compared at a time.
    pub(crate) fn new(low: PhysicalOffset, high: PhysicalOffset, range: u64) -> Search {
        assert!(low <= high);
        assert!(range > 0);
        let range = i64::try_from(range).expect("a range of bytes in memory");
        let phase = if low == high {
            // Both logs touch: there is nothing to compare.
            Phase::Done(Step::Common(high))
        } else {
            Phase::Back { from: low.max(high - range), to: high, first: true }
        };
        Search { low, range, phase }
    }

    pub(crate) fn step(&self) -> Step {
        match self.phase {
            Phase::Back { from, to, .. } => Step::Compare { from, to },
            Phase::Halve { equal, differs } => Step::Compare { from: equal, to: middle(equal, differs) },
            Phase::Done(step) => step,
        }
    }

    /// The answer to the comparison of [`step`](Self::step).
    pub(crate) fn answer(&mut self, same: bool) {
        self.phase = match self.phase {
            Phase::Back { to, first: true, .. } if same => Phase::Done(Step::Common(to)),
            // The range above this one differs: it was compared before.
            Phase::Back { to, .. } if same => halve(to, to + self.range, self.low),
            Phase::Back { from, to, .. } if from == self.low => halve(from, to, self.low),
            Phase::Back { from, .. } => Phase::Back { from: self.low.max(from - self.range), to: from, first: false },
            Phase::Halve { equal, differs } => {
                let middle = middle(equal, differs);
                if same { halve(middle, differs, self.low) } else { halve(equal, middle, self.low) }
            }
            Phase::Done(_) => unreachable!("no comparison was asked for"),
        };
    }
}

fn middle(equal: PhysicalOffset, differs: PhysicalOffset) -> PhysicalOffset {
    equal + (differs - equal + 1) / 2
}

/// `equal..differs` is known to differ; a single byte is the one that does.
fn halve(equal: PhysicalOffset, differs: PhysicalOffset, low: PhysicalOffset) -> Phase {
    assert!(equal < differs);
    if differs - equal > 1 {
        return Phase::Halve { equal, differs };
    }
    Phase::Done(if equal == low { Step::Nothing } else { Step::Common(equal) })
}

#[cfg(test)]
mod tests {
    use super::{Search, Step};
    use proptest::prelude::{prop_assert_eq, proptest};
    use protocol::PhysicalOffset;

    /// Runs a search over two logs that begin at `low`; returns its verdict and how many bytes it compared.
    fn search(low: i64, slave: &[u8], master: &[u8], range: u64) -> (Step, usize) {
        let high = low + slave.len().min(master.len()) as i64;
        let mut search = Search::new(PhysicalOffset(low), PhysicalOffset(high), range);
        let mut compared = 0;
        loop {
            match search.step() {
                Step::Compare { from, to } => {
                    assert!(PhysicalOffset(low) <= from && from < to && to <= PhysicalOffset(high), "{from}..{to}");
                    let bytes = (from - PhysicalOffset(low)) as usize..(to - PhysicalOffset(low)) as usize;
                    compared += bytes.len();
                    search.answer(slave[bytes.clone()] == master[bytes]);
                }
                verdict => return (verdict, compared),
            }
        }
    }

    #[test]
    fn an_equal_tail_ends_the_search_at_once() {
        let log = [7; 1000];
        assert_eq!(search(50, &log, &log, 10), (Step::Common(PhysicalOffset(1050)), 10));
        assert_eq!(search(50, &log, &log[..900], 10), (Step::Common(PhysicalOffset(950)), 10));
        assert_eq!(search(50, &[], &log, 10), (Step::Common(PhysicalOffset(50)), 0));
    }

    #[test]
    fn logs_without_a_common_byte_are_said_to_be_so() {
        assert_eq!(search(0, &[1; 100], &[2; 90], 30).0, Step::Nothing);
        assert_eq!(search(0, &[1; 1], &[2; 1], 30).0, Step::Nothing);
    }

    proptest! {
        #[test]
        fn the_first_different_byte_is_found(low in 0_i64..5, common in 1_usize..300, slave in 1_usize..100, master in 0_usize..100, range in 1_u64..400) {
            // Different histories differ in every byte here, as whole records do in the real logs.
            let (mut s, mut m) = (vec![1; common], vec![1; common]);
            s.extend(vec![2; slave]);
            m.extend(vec![3; master]);
            prop_assert_eq!(search(low, &s, &m, range).0, Step::Common(PhysicalOffset(low + common as i64)));
        }
    }
}
