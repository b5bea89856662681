use super::{Call, Register, RegisterInput, RegisterOutput, Verdict, check};
use crate::verdict::EventId;
use std::collections::BTreeMap;

/// A history as a line of steps: `a:w1` client a writes 1 …, `a.` its answer comes; `a:r1` a read that will be answered 1, `a:c12`
/// a compare-and-set from 1 to 2 that succeeds, `a:x12` one that does not. A step without its end is unknown.
fn calls(line: &str) -> Vec<Call<RegisterInput<u32>, RegisterOutput<u32>>> {
    let mut calls: Vec<Call<_, _>> = Vec::new();
    let mut open: BTreeMap<&str, (usize, RegisterOutput<u32>)> = BTreeMap::new();
    for (index, step) in line.split_whitespace().enumerate() {
        if let Some(client) = step.strip_suffix('.') {
            let (call, output) = open.remove(client).expect("an operation is open");
            calls[call].output = Some(output);
            calls[call].returned = Some(EventId(index));
            continue;
        }
        let (client, what) = step.split_once(':').expect("client:operation");
        let digits: Vec<u32> = what.chars().filter_map(|digit| digit.to_digit(10)).collect();
        let (input, output) = match what.as_bytes()[0] {
            b'w' => (RegisterInput::Write(digits[0]), RegisterOutput::Written),
            b'r' => (RegisterInput::Read, RegisterOutput::Value(digits[0])),
            b'c' => (RegisterInput::CompareAndSet { from: digits[0], to: digits[1] }, RegisterOutput::Swapped(true)),
            _ => (RegisterInput::CompareAndSet { from: digits[0], to: digits[1] }, RegisterOutput::Swapped(false)),
        };
        assert!(open.insert(client, (calls.len(), output)).is_none(), "{client} does one thing at a time");
        calls.push(Call { input, output: None, invoked: EventId(index), returned: None });
    }
    calls
}

fn verdict(line: &str) -> Verdict {
    check(&Register { initial: 0 }, &calls(line), 100_000)
}

#[test]
fn histories_that_an_order_explains() {
    for line in [
        "",
        "a:w1 a. a:r1 a.",
        // Concurrent: the read may see either side of the write.
        "a:w1 b:r0 b. a.",
        "a:w1 b:r1 b. a.",
        // Two reads inside one write may see it in order.
        "a:w1 b:r0 b. b:r1 b. a.",
        // Herlihy and Wing's register: overlapping writes, read of the first by invocation.
        "a:w1 b:w2 a. b. c:r1 c.",
        // An unknown write may take effect late, or never.
        "a:w1 b:r0 b. b:r1 b.",
        "a:w1 b:r0 b. b:r0 b.",
        "a:w1 b:w2 b. b:r2 b. b:r1 b.",
        // Compare-and-set.
        "a:w1 a. a:c12 b:x13 a. b. a:r2 a.",
    ] {
        assert_eq!(verdict(line), Verdict::Linearizable, "{line}");
    }
}

#[test]
fn histories_that_none_explains() {
    let impossible = |line: &str, events: &[usize]| {
        let events = events.iter().map(|index| EventId(*index)).collect();
        assert_eq!(verdict(line), Verdict::Impossible { events }, "{line}");
    };
    // A stale read.
    impossible("a:w1 a. b:r0 b.", &[2, 3]);
    // A value that nobody wrote.
    impossible("a:w1 a. b:r7 b.", &[2, 3]);
    // New, then old (not monotonic), also across clients and inside an unknown write.
    impossible("a:w1 b:r1 b. c:r0 c. a.", &[3, 4]);
    impossible("a:w1 b:r1 b. b:r0 b.", &[3, 4]);
    // An unknown write takes effect at most once.
    impossible("a:w1 b:r1 b. b:w2 b. b:r2 b. b:r1 b.", &[7, 8]);
    // Two winners of one compare-and-set.
    impossible("a:c01 b:c02 a. b.", &[1, 3]);
}

#[test]
fn a_small_budget_says_so() {
    let line: String = (0..12)
        .map(|client| format!("c{client}:w{} ", client % 10))
        .chain((0..12).map(|client| format!("c{client}. ")))
        .collect();
    assert_eq!(check(&Register { initial: 0 }, &calls(&format!("{line} z:r9 z. z:r8 z.")), 50), Verdict::Undecided);
}

#[test]
fn many_sequential_operations_are_quick() {
    let line: String = (0..2_000).map(|round| format!("a:w{} a. b:r{} b. ", round % 10, round % 10)).collect();
    assert_eq!(verdict(&line), Verdict::Linearizable);
}
