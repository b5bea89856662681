use super::{SIZE_MAX, Subject, to_html, to_text};
use crate::recording::{Band, DiskSync, Ending, FaultSpan, Message, NodeEvent, OperationLine, Recording};
use crate::report::{Effect, Report};
use crate::verdict::{EventId, Evidence, Violation};
use flate2::read::DeflateDecoder;
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;

/// A generator whose numbers are as hard to compress as those of a run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Ten minutes as dense as the fail-over suite: 20 messages a second, two name servers, four brokers, four clients. A minute of it has
/// 9,000 messages between nodes, 2,400 operations and 2,800 syncs.
fn ten_minutes() -> Recording {
    let mut numbers = Numbers(7);
    let minutes = 600_000_000;
    let at = Duration::from_micros;
    let nodes: Vec<String> = (0..13).map(|node| format!("node-{node}")).collect();
    let mut messages: Vec<Message> = (0..90_000)
        .map(|_| {
            let (from, kind) = (numbers.below(13) as usize, numbers.below(30) as usize);
            let sent = at(numbers.below(minutes));
            let arrived = (numbers.below(200) > 0).then(|| sent + at(500 + numbers.below(20_000)));
            Message {
                from,
                to: (from + 1 + kind % 12) % 13,
                sent,
                arrived,
                kind,
                bytes: 150 + numbers.below(400) as usize,
            }
        })
        .collect();
    messages.sort_by_key(|message| message.sent);
    let mut syncs: Vec<DiskSync> = (0..28_000)
        .map(|_| {
            let (node, began) = (numbers.below(6) as usize, at(numbers.below(minutes)));
            let ended = Some(began + at(numbers.below(3_000)));
            DiskSync { node, file: node, began, ended, ok: true }
        })
        .collect();
    syncs.sort_by_key(|sync| sync.began);
    let operations = (0..24_000_usize).map(|place| {
        let asked = at(minutes * place as u64 / 24_000);
        let (queue, key) = (numbers.below(16), format!("producer-{}.2.{place}", place % 2));
        let ended = Some(asked + at(1_000 + numbers.below(40_000)));
        let (ask, told) = match place % 3 {
            0 => (format!("send {key}"), format!("stored in broker-a/{queue} at {place}")),
            _ => (format!("consume {key} from broker-a/{queue} at {place} for hotfire_group"), "done".to_owned()),
        };
        let client = format!("client-{}", place % 6);
        let events = (EventId(place * 3), Some(EventId(place * 3 + numbers.below(9) as usize)));
        OperationLine { client, asked, ended, ending: Ending::Ok, ask, told, about: vec![key], events }
    });
    let operations = operations.collect();
    let mut recording = Recording { nodes, messages, syncs, operations, ..Recording::default() };
    recording.kinds = (0..30).map(|kind| format!("RequestNumber{kind} → Success")).collect();
    recording.files = (0..6).map(|file| format!("data/store/commitlog/{file:020}")).collect();
    for second in 0..600 {
        for chart in 0..16 {
            for line in 0..5 {
                let value = second * 2 + numbers.below(5) as i64;
                recording.add_value(
                    &format!("chart {chart}"),
                    &format!("line {line}"),
                    at(second as u64 * 1_000_000),
                    value,
                );
            }
        }
    }
    recording
}

/// A small run in which a write is lost.
fn lost_write() -> Report {
    let s = Duration::from_secs_f64;
    let proof = |event: usize, at: f64, text: &str| Evidence { event: EventId(event), at: s(at), text: text.into() };
    let violation = Violation::new("no acknowledged write is lost", "apple was stored and is gone")
        .because([proof(1, 1.003, "write apple → stored"), proof(6, 4.002, "read apple → nothing <here>")]);
    let effect = Effect {
        kind: "power_loss".into(),
        fault: "power_loss server at 2s for 1s".into(),
        amount: 1,
        unit: "tasks ended".into(),
    };
    Report {
        hash: 0xABC,
        events: 1_234,
        virtual_time: s(5.0),
        violations: vec![violation],
        effects: vec![effect],
        recording: Some(Box::new(recording_of_a_lost_write())),
        ..Report::default()
    }
}

fn recording_of_a_lost_write() -> Recording {
    let s = Duration::from_secs_f64;
    let operation =
        |client: &str, asked: f64, ended: Option<f64>, ask: &str, told: &str, events: (usize, Option<usize>)| {
            let ending = if told.is_empty() { Ending::Unknown } else { Ending::Ok };
            OperationLine {
                client: client.into(),
                asked: s(asked),
                ended: ended.map(s),
                ending,
                ask: ask.into(),
                told: told.into(),
                about: vec![ask.split(' ').next_back().expect("a word").into()],
                events: (EventId(events.0), events.1.map(EventId)),
            }
        };
    let event = |node: &str, at: f64, text: &str, event: usize| NodeEvent {
        node: node.into(),
        at: s(at),
        text: text.into(),
        event: EventId(event),
    };
    let band = |node: usize, from: f64, until: Option<f64>, state: &str| Band {
        node,
        from: s(from),
        until: until.map(s),
        state: state.into(),
    };
    Recording {
        nodes: vec!["world".into(), "server".into(), "client".into()],
        bands: vec![band(1, 0.0, Some(2.0), "up"), band(1, 2.0, Some(3.0), "no power"), band(1, 3.0, None, "up")],
        kinds: vec!["Write".into(), "Write → Ok".into()],
        messages: vec![
            Message { from: 2, to: 1, sent: s(1.0), arrived: Some(s(1.001)), kind: 0, bytes: 40 },
            Message { from: 1, to: 2, sent: s(1.002), arrived: Some(s(1.003)), kind: 1, bytes: 20 },
            Message { from: 2, to: 1, sent: s(2.5), arrived: None, kind: 0, bytes: 40 },
        ],
        syncs: vec![DiskSync { node: 1, file: 0, began: s(1.0015), ended: None, ok: false }],
        files: vec!["data/log".into()],
        faults: vec![FaultSpan {
            kind: "power_loss".into(),
            text: "power_loss server at 2s for 1s".into(),
            nodes: vec!["server".into()],
            from: s(2.0),
            until: Some(s(3.0)),
            effect: "1 tasks ended".into(),
        }],
        operations: vec![
            operation("client", 1.0, Some(1.003), "write apple", "stored", (0, Some(1))),
            operation("client", 2.5, None, "write pear", "", (3, None)),
            operation("client", 4.0, Some(4.002), "read apple", "nothing <here>", (5, Some(6))),
        ],
        events: vec![event("server", 2.0, "power lost", 2), event("server", 3.0, "started", 4)],
        series: Vec::new(),
    }
}

fn shown<T>(report: &Report, show: impl FnOnce(&Subject<'_>) -> T) -> T {
    let plan = json!({"requests": 3});
    show(&Subject {
        scenario: "no_write_is_lost",
        claim: "what is acknowledged stays",
        seed: Some(7),
        plan: &plan,
        report,
        reproduce: "cargo sim run no_write_is_lost --seed 7",
    })
}

/// The data of a page, as its script reads it.
fn data(page: &str) -> Value {
    let text = page.split("<script id=\"data\" type=\"text/plain\">").nth(1).expect("a data element");
    let text = text.split("</script>").next().expect("its end");
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = chunk.iter().fold(0_u32, |word, letter| word << 6 | u32::from(digit(*letter)));
        let word = word << (6 * (4 - chunk.len()));
        bytes.extend(&word.to_be_bytes()[1..chunk.len()]);
    }
    let mut json = String::new();
    DeflateDecoder::new(&bytes[..]).read_to_string(&mut json).expect("deflated text");
    serde_json::from_str(&json).expect("JSON")
}

#[test]
fn ten_minutes_fit_and_nothing_is_left_out() {
    let report = Report { recording: Some(Box::new(ten_minutes())), ..Report::default() };
    let page = shown(&report, to_html);
    assert!(page.len() < SIZE_MAX, "{} bytes", page.len());
    let data = data(&page);
    assert_eq!(data["messages"]["sent"].as_array().map(Vec::len), Some(90_000));
    assert_eq!(data["left_out"], json!([]));
}

#[test]
fn a_run_that_is_too_long_loses_its_most_frequent_messages_and_says_so() {
    let mut recording = ten_minutes();
    let more: Vec<Message> =
        recording.messages.iter().map(|message| Message { kind: message.kind % 3, ..*message }).collect();
    recording.messages.extend(more);
    let all = recording.messages.len();
    let report = Report { recording: Some(Box::new(recording)), ..Report::default() };
    let page = shown(&report, to_html);
    assert!(page.len() < SIZE_MAX, "{} bytes", page.len());
    let data = data(&page);
    let left_out = data["left_out"].as_array().expect("a list");
    let missing: usize = left_out.iter().map(|kind| kind[1].as_u64().expect("a count") as usize).sum();
    assert!(!left_out.is_empty() && missing < all, "{left_out:?}");
    assert_eq!(data["messages"]["sent"].as_array().map(Vec::len), Some(all - missing));
}

#[test]
fn columns_give_back_what_was_recorded() {
    let page = shown(&lost_write(), to_html);
    let data = data(&page);
    assert_eq!(data["messages"]["sent"], json!([1_000_000, 2_000, 1_498_000]), "differences");
    assert_eq!(data["messages"]["took"], json!([1_000, 1_000, -1]));
    assert_eq!(data["syncs"]["took"], json!([-1]));
    assert_eq!(data["bands"][1], json!([1, 2_000_000, 3_000_000, "no power"]));
    assert_eq!(data["operations"]["ended"], json!([1, -1, 1]), "distances from the invocation");
    assert_eq!(data["faults"][0][2], json!([1]), "nodes by place");
    assert_eq!(data["proofs"][1], json!([0, 6, 4_002_000, "read apple → nothing <here>"]));
}

#[test]
fn the_verdict_and_its_proofs_are_plain_html_that_links_into_the_picture() {
    let page = shown(&lost_write(), to_html);
    assert!(page.contains("<h2>no acknowledged write is lost</h2><p>apple was stored and is gone</p>"), "{page}");
    for link in
        ["<a href=\"#event=1\" data-at=1003000><b>proof 1</b>", "<a href=\"#event=6\" data-at=4002000><b>proof 2</b>"]
    {
        assert!(page.contains(link), "{link}");
    }
    assert!(page.contains("nothing &lt;here&gt;") && !page.contains("nothing <here>"), "text is no markup");
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("{{"), "it needs nothing else");
}

#[test]
fn the_same_story_in_a_terminal() {
    insta::assert_snapshot!(shown(&lost_write(), to_text), @r#"
    no_write_is_lost seed 7
      claim: what is acknowledged stays
      5.000 s of virtual time, 1,234 events, hash 0000000000000abc

    faults
      power_loss server at 2s for 1s: 1 tasks ended

    violation of "no acknowledged write is lost": apple was stored and is gone
            1.003000  #1     write apple → stored
            4.002000  #6     read apple → nothing <here>

    the story
    >     1.003000  client: write apple → stored
          2.000000  server: power lost
          3.000000  server: started
    >     4.002000  client: read apple → nothing <here>

    reproduce: cargo sim run no_write_is_lost --seed 7
    "#);
}

#[test]
fn a_clean_run_without_a_recording_has_a_page_too() {
    let report = Report::default();
    assert!(shown(&report, to_html).contains("no violation"));
    assert!(shown(&report, to_text).contains("\nno violation\n"));
}
