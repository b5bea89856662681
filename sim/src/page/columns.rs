//! The data of a page: columns of small numbers, which deflate to a tenth of rows with names. Times are differences in microseconds; -1
//! stands for never.

use crate::recording::{Ending, Message, OperationLine, Recording, Tale, micros_of};
use crate::verdict::Violation;
use serde_json::{Value, json};
use std::time::Duration;

/// A recording without the messages of the kinds in `left_out`.
pub(super) fn of(recording: &Recording, violations: &[Violation], tale: &Tale, left_out: &[usize]) -> Value {
    let Recording { nodes, bands, kinds, messages, syncs, files, faults, operations, events, series } = recording;
    let bands: Vec<Value> =
        bands.iter().map(|band| json!([band.node, micros_of(band.from), or_never(band.until), band.state])).collect();
    let faults: Vec<Value> = faults
        .iter()
        .map(|fault| {
            let places: Vec<usize> = fault.nodes.iter().filter_map(|name| recording.node(name)).collect();
            json!([fault.kind, fault.text, places, micros_of(fault.from), or_never(fault.until), fault.effect])
        })
        .collect();
    let events: Vec<Value> =
        events.iter().map(|event| json!([event.node, micros_of(event.at), event.text, event.event])).collect();
    let series: Vec<Value> = series
        .iter()
        .map(|series| {
            let (times, values): (Vec<i64>, Vec<i64>) =
                series.points.iter().map(|(at, value)| (signed(*at), *value)).unzip();
            json!([series.chart, series.line, series.about, differences(times), differences(values)])
        })
        .collect();
    let proofs: Vec<Value> = violations
        .iter()
        .enumerate()
        .flat_map(|(place, violation)| violation.evidence.iter().map(move |proof| (place, proof)))
        .map(|(place, proof)| json!([place, proof.event, micros_of(proof.at), proof.text]))
        .collect();
    let shown: Vec<&Message> = messages.iter().filter(|message| !left_out.contains(&message.kind)).collect();
    let missing: Vec<Value> = left_out
        .iter()
        .map(|kind| json!([kinds[*kind], messages.iter().filter(|message| message.kind == *kind).count()]))
        .collect();
    json!({
        "nodes": nodes, "bands": bands, "kinds": kinds, "messages": of_messages(&shown), "left_out": missing,
        "files": files, "syncs": {
            "node": column(syncs, |sync| sync.node),
            "file": column(syncs, |sync| sync.file),
            "began": differences(syncs.iter().map(|sync| time(sync.began)).collect()),
            "took": syncs.iter().map(|sync| lasted(sync.began, sync.ended)).collect::<Vec<_>>(),
            "ok": syncs.iter().map(|sync| u8::from(sync.ok)).collect::<Vec<_>>(),
        },
        "faults": faults, "operations": of_operations(operations), "events": events, "series": series,
        "proofs": proofs, "violations": violations.iter().map(|violation| &violation.invariant).collect::<Vec<_>>(),
        "about": tale.about,
    })
}

fn of_messages(messages: &[&Message]) -> Value {
    json!({
        "from": column(messages, |message| message.from),
        "to": column(messages, |message| message.to),
        "kind": column(messages, |message| message.kind),
        "bytes": column(messages, |message| message.bytes),
        "sent": differences(messages.iter().map(|message| time(message.sent)).collect()),
        "took": messages.iter().map(|message| lasted(message.sent, message.arrived)).collect::<Vec<_>>(),
    })
}

fn of_operations(operations: &[OperationLine]) -> Value {
    let mut clients: Vec<&str> = Vec::new();
    let mut client = Vec::new();
    for operation in operations {
        let place = clients.iter().position(|name| *name == operation.client);
        client.push(place.unwrap_or_else(|| {
            clients.push(&operation.client);
            clients.len() - 1
        }));
    }
    let invoked: Vec<i64> = operations.iter().map(|operation| place(operation.events.0.0)).collect();
    let ended = operations.iter().map(|operation| operation.events.1.map_or(-1, |event| place(event.0)));
    // Of an end that stands behind its beginning only the distance is new.
    let ended: Vec<i64> = ended.zip(&invoked).map(|(end, begin)| if end < 0 { -1 } else { end - begin }).collect();
    let ending = |operation: &OperationLine| match operation.ending {
        Ending::Ok => 0,
        Ending::Fail => 1,
        Ending::Unknown => 2,
    };
    json!({
        "clients": clients, "client": client,
        "asked": differences(operations.iter().map(|operation| time(operation.asked)).collect()),
        "took": operations.iter().map(|operation| lasted(operation.asked, operation.ended)).collect::<Vec<_>>(),
        "ending": column(operations, ending),
        "ask": operations.iter().map(|operation| &operation.ask).collect::<Vec<_>>(),
        "told": operations.iter().map(|operation| &operation.told).collect::<Vec<_>>(),
        "invoked": differences(invoked), "ended": ended,
    })
}

fn column<T>(rows: &[T], value: impl Fn(&T) -> usize) -> Vec<usize> {
    rows.iter().map(value).collect()
}

/// Each number less the one before it.
fn differences(mut numbers: Vec<i64>) -> Vec<i64> {
    let mut before = 0;
    for number in &mut numbers {
        (*number, before) = (*number - before, *number);
    }
    numbers
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("a time of a run")
}

fn place(number: usize) -> i64 {
    i64::try_from(number).expect("a place in memory")
}

fn time(at: Duration) -> i64 {
    signed(micros_of(at))
}

fn or_never(at: Option<Duration>) -> i64 {
    at.map_or(-1, time)
}

/// In whole microseconds of both ends, so that the end comes out right.
fn lasted(from: Duration, until: Option<Duration>) -> i64 {
    until.map_or(-1, |until| time(until) - time(from))
}
