//! I10, how far a delay level was delivered: that progress is kept like a group's, so a delayed message is delivered again only where a
//! crash may have taken it.
//!
//! A broker tells the next offset to deliver of each level (GET_ALL_DELAY_OFFSET), and the observer asks about once a second.
//!
//! - After an outage at *t* a master's table is at least what it showed before *t* − 10 s (`flushDelayOffsetInterval`) − one write − the
//!   time for which a fault held up the disk, or the least that it showed later: a life that was shorter persisted nothing. A power loss
//!   with asynchronous flush may take records from a level's queue and from the topics; then progress is lowered to what is left, and
//!   nothing is claimed.
//! - So a record that waited is delivered once, and once more for each outage after which the table may have pointed at it or below.
//! - What was removed because it had expired counts as if it were there: an offset is not set back to where a queue now begins.
//! - After the faults have stopped, the table says of each message that was delivered that it was. And a slave's copy of the table follows
//!   its master's: RocketMQ's operators put a slave in its master's place, and with an old table it would deliver everything since again.

use crate::breach::{Breach, Subject};
use crate::evidence::{Commits, Evidence, Outage, Snapshot, slaves_of};
use crate::faults::disk_held;
use crate::invariant::i4_committed_offsets::recovered_floors;
use crate::ledger::{Ledger, Trip};
use crate::operation::{Ask, Told};
use crate::plan::{Flush, Plan};
use sim::history::Outcome;
use std::collections::BTreeMap;
use std::time::Duration;

/// Stable name.
pub const NAME: &str = "I10 delay progress";

/// `flushDelayOffsetInterval` 10 s, a late start of the work, and a second for the write and its sync.
const PERSIST_WINDOW: Duration = Duration::from_millis(11_500);

/// What is unmet at one look.
pub fn unmet(plan: &Plan, look: &Snapshot) -> Vec<Breach> {
    let Some(kinds) = &look.kinds else { return Vec::new() };
    let table = |node: &str| {
        let table = kinds.delays.get(node)?;
        // A level that never delivered anything may be in the table or not.
        Some(table.iter().filter(|(_, next)| **next > 0).map(|(level, next)| (*level, *next)).collect::<Vec<_>>())
    };
    let mut unmet = Vec::new();
    for master in plan.cluster.masters() {
        let wanted = table(&master);
        // What is delivered is done: an offset that stays below would deliver it again at the next start.
        for (level, end) in kinds.level_ends.get(&master).into_iter().flatten() {
            let next = kinds.delays.get(&master).and_then(|table| table.get(level));
            if next != Some(end) {
                unmet.push(format!("level {level} of {master} ends at {end}, and goes on at {next:?}").into());
            }
        }
        for slave in slaves_of(&plan.cluster, &master) {
            let copy = table(&slave);
            if wanted.is_none() || copy != wanted {
                let summary = format!("{slave} has the delay offsets {copy:?}, {master} has {wanted:?}");
                unmet.push(Breach::new(summary).about(Subject::Lives(slave)).about(Subject::Lives(master.clone())));
            }
        }
    }
    unmet
}

/// Judges a finished run.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Vec<Breach> {
    let mut violations = Vec::new();
    for (master, ledger) in &evidence.ledgers {
        let outages = evidence.outages(master);
        let mut floors: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for (level, shown) in shown(evidence, master) {
            let lost = (plan.cluster.flush == Flush::Async).then_some(0);
            let held = disk_held(plan, master);
            let least = recovered_floors(&shown, &outages, PERSIST_WINDOW + held, lost);
            violations.extend(went_back(master, level, &shown, &outages, &least));
            floors.insert(level, least);
        }
        violations.extend(delivered_again(master, ledger, &outages, &floors));
    }
    violations
}

/// What the node showed of each level, in order of time.
fn shown(evidence: &Evidence, node: &str) -> BTreeMap<i32, Commits> {
    let mut shown: BTreeMap<i32, Commits> = BTreeMap::new();
    for operation in evidence.history.operations() {
        let (Ask::ReadDelays { node: of }, Outcome::Ok(Told::Delays(table)), Some((_, at))) =
            (operation.input, &operation.outcome, operation.ended)
        else {
            continue;
        };
        if of == node {
            table.iter().for_each(|(level, next)| shown.entry(*level).or_default().push((at, *next)));
        }
    }
    shown.values_mut().for_each(|seen| seen.sort_by_key(|(at, _)| *at));
    shown
}

fn went_back(master: &str, level: i32, shown: &[(Duration, i64)], outages: &[Outage], floors: &[i64]) -> Vec<Breach> {
    let mut violations = Vec::new();
    for (outage, floor) in outages.iter().zip(floors) {
        let Some(back) = outage.until else { continue };
        let Some((at, next)) = shown.iter().find(|(at, _)| *at >= back) else { continue };
        if next < floor {
            let summary = format!(
                "level {level} at {master}: after the outage at {:.3} s it goes on at {next} (read at {:.3} s), but had shown {floor} long enough before",
                outage.from.as_secs_f64(),
                at.as_secs_f64()
            );
            let read = Subject::DelaysRead(master.to_owned(), *at);
            violations.push(Breach::new(summary).about(read).about(Subject::Lives(master.to_owned())));
        }
    }
    violations
}

fn delivered_again(master: &str, ledger: &Ledger, outages: &[Outage], floors: &BTreeMap<i32, Vec<i64>>) -> Vec<Breach> {
    let mut allowed: BTreeMap<Trip<'_>, usize> = BTreeMap::new();
    for (level, offset, entry) in ledger.delayed() {
        // Without a look at the table nothing is known of what it kept.
        let again =
            floors.get(&level).map_or(outages.len(), |floors| floors.iter().filter(|floor| **floor <= offset).count());
        let topic = entry.waits_for.as_deref().unwrap_or_default();
        *allowed.entry((topic, &entry.key, entry.reconsume_times)).or_default() += 1 + again;
    }
    let mut violations = Vec::new();
    for (copied, copies) in ledger.delivered() {
        let Some(allowed) = allowed.get(&copied) else { continue };
        if copies.len() > *allowed {
            let (topic, key, _) = copied;
            let summary = format!(
                "{key} is in {topic} at {master} {} times; with what the level had kept, {allowed} were possible",
                copies.len()
            );
            let message = Subject::Message(key.to_owned());
            violations.push(Breach::new(summary).about(message).about(Subject::Lives(master.to_owned())));
        }
    }
    violations
}
