//! Planted persistence bugs: a small journal as it should be, and with one of twelve mistakes each; over drawn crash points and power
//! losses the right one keeps its promise and each mistake is found.

mod journal;

use journal::{Bug, Entry, Journal, body, checksum};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, any};
use proptest::prop_oneof;
use proptest::strategy::{BoxedStrategy, Strategy};
use rt::world::{self, CrashKind, CrashPoint, DiskChance, DiskError, DiskFault, DiskOperation, NodeId, WorldConfig};
use serde::{Deserialize, Serialize};
use sim::desk::Desk;
use sim::report::Report;
use sim::scenario::{Registry, Scenario};
use sim::testing::Stand;
use sim::verdict::Violation;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

/// The journal under test.
struct JournalKeeps(Option<Bug>);

/// What a journal can break.
const KEPT: &str = "what was acknowledged or read is read again";
const INVENTED: &str = "nothing is read that was never written";
const BACK: &str = "what was gone stays gone";

#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    schedule_seed: u64,
    lives: Vec<Life>,
}

/// One process: it opens the journal, works, and ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Life {
    work: Vec<Work>,
    end: End,
    /// Its sync of a log of that number fails.
    failing_sync: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    /// The process ends at its disk operation of that number, or after its work.
    Crash(u64),
    /// The machine loses its power then.
    PowerLoss(u64),
    /// The machine loses its power when the last of the work is an append and syncs, or after the work.
    InLastSync,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    /// Appends records of these sizes and acknowledges them together.
    Append(Vec<usize>),
    Compact,
}

/// What the world outside of the journal's machine saw, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Opened(Vec<Entry>),
    Asked(Vec<Entry>),
    Acknowledged,
}

type Events = Arc<Mutex<Vec<Event>>>;

fn saw(events: &Events, event: Event) {
    events.lock().expect("no code that can panic runs under this lock").push(event);
}

/// One life of the program. Values count on from `next`, which outlives it.
async fn live(bug: Option<Bug>, life: Life, events: Events, next: Arc<Mutex<u32>>) -> io::Result<()> {
    let mut journal = Journal::open(bug).await?;
    saw(&events, Event::Opened(journal.entries().to_vec()));
    let last = life.work.len().saturating_sub(1);
    for (at, work) in life.work.into_iter().enumerate() {
        match work {
            Work::Compact => journal.compact().await?,
            Work::Append(sizes) => {
                if at == last && life.end == End::InLastSync {
                    let sync = CrashPoint::DiskOperation(sizes.len() as u64 + 1);
                    world::crash_at(world::current_node(), sync, CrashKind::Power);
                }
                let bodies: Vec<Vec<u8>> = sizes.into_iter().map(|size| body(take(&next), size)).collect();
                let entry = |body: &Vec<u8>| {
                    let value = body[..4].try_into().expect("four bytes");
                    (u32::from_be_bytes(value), checksum(body.iter().copied()))
                };
                saw(&events, Event::Asked(bodies.iter().map(entry).collect()));
                journal.append(&bodies).await?;
                saw(&events, Event::Acknowledged);
            }
        }
    }
    Ok(())
}

fn take(next: &Mutex<u32>) -> u32 {
    let mut next = next.lock().expect("no code that can panic runs under this lock");
    *next += 1;
    *next
}

async fn play(bug: Option<Bug>, lives: Vec<Life>, events: Events) {
    let node = world::add_node("journal");
    let next = Arc::new(Mutex::new(0));
    for life in lives {
        let failing = life.failing_sync.map(|nth| world::disk::inject(node, failing_sync(nth)));
        let (kind, point) = match life.end {
            End::Crash(at) => (CrashKind::Process, Some(at)),
            End::PowerLoss(at) => (CrashKind::Power, Some(at)),
            End::InLastSync => (CrashKind::Power, None),
        };
        point.into_iter().for_each(|at| world::crash_at(node, CrashPoint::DiskOperation(at), kind));
        // Whether it was ended or stopped at an error: the next life tells what is left.
        let ended = run(node, live(bug, life, events.clone(), Arc::clone(&next))).await.is_none();
        world::forget_crash_points(node);
        failing.into_iter().for_each(|fault| world::disk::remove(node, fault));
        match kind {
            _ if ended => {}
            CrashKind::Power => world::power_loss(node),
            CrashKind::Process => world::crash(node),
        }
    }
    let idle = Life { work: Vec::new(), end: End::InLastSync, failing_sync: None };
    let last = run(node, live(bug, idle, events.clone(), next)).await;
    if !matches!(last, Some(Ok(()))) {
        // A journal that does not open has lost everything.
        saw(&events, Event::Opened(Vec::new()));
    }
}

/// Its result, or none if the node ended first.
async fn run<T: Send + 'static>(node: NodeId, program: impl Future<Output = T> + Send + 'static) -> Option<T> {
    world::spawn_on(node, program).await.ok()
}

fn failing_sync(nth: u64) -> DiskFault {
    DiskFault {
        operation: DiskOperation::Sync,
        path_contains: Some("log".into()),
        chance: DiskChance::Nth(nth),
        error: DiskError::Io,
    }
}

/// What the events break.
fn judge(events: &[Event]) -> Vec<Violation> {
    let (mut settled, mut pending, mut gone) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut violations = Vec::new();
    for event in events {
        match event {
            Event::Asked(entries) => pending.extend(entries.iter().copied()),
            Event::Acknowledged => settled.append(&mut pending),
            Event::Opened(seen) => {
                violations.extend(broken(&settled, &pending, &gone, seen));
                gone.extend(pending.drain(..).chain(settled).filter(|entry| !seen.contains(entry)));
                settled = seen.clone();
            }
        }
    }
    violations
}

/// What one recovery breaks: it must show what is settled, then some of the first of what is pending, and no more.
fn broken(settled: &[Entry], pending: &[Entry], gone: &BTreeSet<Entry>, seen: &[Entry]) -> Option<Violation> {
    let same = settled.iter().zip(seen).take_while(|(left, right)| left == right).count();
    if same < settled.len() {
        let summary = format!("{} of {} entries are read back, first missing is number {same}", same, settled.len());
        return Some(Violation::new(KEPT, summary));
    }
    let rest = &seen[same..];
    let kept = rest.iter().zip(pending).take_while(|(left, right)| left == right).count();
    let surplus = rest.get(kept)?;
    let invariant = if gone.contains(surplus) || settled.contains(surplus) { BACK } else { INVENTED };
    Some(Violation::new(invariant, format!("entry {} of {} is {surplus:?}", same + kept, seen.len())))
}

fn life() -> impl Strategy<Value = Life> {
    // Most records fill a sector, so that whole records are lost and kept.
    let size = prop_oneof![9 => Just(512_usize), 1 => Just(1_024), 1 => Just(700)];
    let sizes = prop_oneof![vec(size.clone(), 1), vec(size, 2..7)];
    let work = prop_oneof![6 => sizes.prop_map(Work::Append), 1 => Just(Work::Compact)];
    let end = prop_oneof![
        1 => (1..32_u64).prop_map(End::Crash),
        2 => (1..32_u64).prop_map(End::PowerLoss),
        4 => Just(End::InLastSync),
    ];
    let failing_sync = option::weighted(0.1, 2..6_u64);
    (vec(work, 1..4), end, failing_sync).prop_map(|(work, end, failing_sync)| Life { work, end, failing_sync })
}

impl Scenario for JournalKeeps {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        match self.0 {
            None => "journal_keeps_what_it_acknowledged",
            Some(Bug::NoSync) => "journal_no_sync",
            Some(Bug::NoDirectorySync) => "journal_no_directory_sync",
            Some(Bug::RenameBeforeSync) => "journal_rename_before_sync",
            Some(Bug::ChecksumWithoutLength) => "journal_checksum_without_length",
            Some(Bug::EndInPlace) => "journal_end_in_place",
            Some(Bug::NoChecksum) => "journal_no_checksum",
            Some(Bug::NoTruncation) => "journal_no_truncation",
            Some(Bug::TruncationNotSynced) => "journal_truncation_not_synced",
            Some(Bug::ReusedLog) => "journal_reused_log",
            Some(Bug::LogRemovedFirst) => "journal_log_removed_first",
            Some(Bug::RecoveryNotSynced) => "journal_recovery_not_synced",
            Some(Bug::SyncRetried) => "journal_sync_retried",
        }
    }

    fn suite(&self) -> &'static str {
        "persistence_bugs"
    }

    fn claim(&self) -> &'static str {
        "whatever was acknowledged or read is read again after every crash, and nothing that was never written"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        (any::<u64>(), vec(life(), 6..16)).prop_map(|(schedule_seed, lives)| Plan { schedule_seed, lives }).boxed()
    }

    fn run(&self, plan: &Plan) -> Report {
        let (desk, events, bug) = (Desk::new(), Events::default(), self.0);
        let config = WorldConfig { seed: plan.schedule_seed, ..WorldConfig::default() };
        let work = (plan.lives.clone(), Arc::clone(&events));
        let (_, mut report) = desk.run(config, move || play(bug, work.0, work.1));
        let events = events.lock().expect("the world has ended");
        report.violations.extend(judge(&events));
        report
    }
}

fn registry() -> Registry {
    let right = Registry::new("cargo sim").with(JournalKeeps(None));
    BUGS.into_iter().fold(right, |registry, (bug, _)| registry.with(JournalKeeps(Some(bug))))
}

/// These scenarios stand apart: a list of claims shows what holds.
const STAND: Stand = Stand::new(registry, "persistence_bugs::worker");

#[test]
fn worker() {
    STAND.serve();
}

/// Each bug, and what it breaks first.
const BUGS: [(Bug, &str); 12] = [
    (Bug::NoSync, KEPT),
    (Bug::NoDirectorySync, KEPT),
    (Bug::RenameBeforeSync, KEPT),
    (Bug::ChecksumWithoutLength, INVENTED),
    (Bug::EndInPlace, INVENTED),
    (Bug::NoChecksum, INVENTED),
    (Bug::NoTruncation, BACK),
    (Bug::TruncationNotSynced, BACK),
    (Bug::ReusedLog, BACK),
    (Bug::LogRemovedFirst, KEPT),
    (Bug::RecoveryNotSynced, KEPT),
    (Bug::SyncRetried, KEPT),
];

#[test]
fn the_right_journal_keeps_what_it_acknowledged() {
    STAND.holds(JournalKeeps(None).name(), 500);
}

#[test]
fn each_persistence_bug_is_found_within_500_seeds() {
    let found: Vec<String> = BUGS
        .into_iter()
        .map(|(bug, breaks)| {
            let name = JournalKeeps(Some(bug)).name();
            format!("{:<32} seed {:>3}", name, STAND.finds(name, breaks, 500))
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r"
    journal_no_sync                  seed   0
    journal_no_directory_sync        seed   0
    journal_rename_before_sync       seed  44
    journal_checksum_without_length  seed   1
    journal_end_in_place             seed   5
    journal_no_checksum              seed   1
    journal_no_truncation            seed  35
    journal_truncation_not_synced    seed 278
    journal_reused_log               seed   0
    journal_log_removed_first        seed   0
    journal_recovery_not_synced      seed  26
    journal_sync_retried             seed   2
    ");
}

#[test]
fn the_judge_tells_the_three_promises_apart() {
    let [a, b, c] = [(1, 1), (2, 2), (3, 3)];
    let opened = |entries: &[Entry]| Event::Opened(entries.to_vec());
    let broken = |events: &[Event]| judge(events).into_iter().map(|found| found.invariant).collect::<Vec<_>>();
    let asked = [opened(&[]), Event::Asked(vec![a]), Event::Acknowledged, Event::Asked(vec![b, c])];
    let then = |more: &[Event]| broken(&[&asked[..], more].concat());
    for allowed in [&[a][..], &[a, b], &[a, b, c]] {
        assert_eq!(then(&[opened(allowed)]), [""; 0]);
    }
    assert_eq!(then(&[opened(&[])]), [KEPT]);
    assert_eq!(then(&[opened(&[b])]), [KEPT]);
    assert_eq!(then(&[opened(&[a, (4, 4)])]), [INVENTED]);
    assert_eq!(then(&[opened(&[a, c])]), [INVENTED], "in another order it was never written");
    assert_eq!(then(&[opened(&[a]), opened(&[a, b])]), [BACK]);
    assert_eq!(then(&[opened(&[a, b]), opened(&[a])]), [KEPT], "what was read stays");
}
