//! A run for people: one HTML file that needs no network, or plain text for a terminal.
//!
//! The file has two layers. The verdict, its proofs and the story around them are plain HTML (`markup.rs`), which prints and needs no
//! script. All else is data (`columns.rs`), and `page.js` draws it.

mod columns;
mod markup;
mod text;

pub use text::to_text;

use crate::recording::{Recording, Tale, telling};
use crate::report::Report;
use crate::text::{clock, grouped};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

/// Largest file in bytes. A run of ten minutes with 20 messages a second is well below.
pub const SIZE_MAX: usize = 2_000_000;
/// Lines of the story: what a person reads at once.
const STORY_LINES: usize = 30;

/// A run that is to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The claim's name.
    pub scenario: &'a str,
    /// The claim in one sentence.
    pub claim: &'a str,
    /// The seed that drew the plan.
    pub seed: Option<u64>,
    /// The plan.
    pub plan: &'a Value,
    /// What came of it, with its recording.
    pub report: &'a Report,
    /// What a person types to see it again.
    pub reproduce: &'a str,
}

impl Subject<'_> {
    fn title(&self) -> String {
        let seed = self.seed.map(|seed| format!(" seed {seed}")).unwrap_or_default();
        format!("{}{seed}", self.scenario)
    }

    fn tale(&self, recording: &Recording) -> Tale {
        // Of several violations the first is the cause as a rule, and one story is read.
        telling(recording, self.report.violations.get(..1).unwrap_or_default(), STORY_LINES)
    }

    /// How long the run was, and what was counted.
    fn figures(&self) -> String {
        let Report { virtual_time, events, hash, counts, .. } = self.report;
        let counts: String = counts.iter().map(|(name, count)| format!(", {} {name}", grouped(*count))).collect();
        format!("{} of virtual time, {} events, hash {hash:016x}{counts}", clock(*virtual_time), grouped(*events))
    }
}

/// The page. Where it would be larger than [`SIZE_MAX`], it leaves the most frequent kinds of messages out and says so.
pub fn to_html(subject: &Subject<'_>) -> String {
    let nothing = Recording::default();
    let recording = subject.report.recording.as_deref().unwrap_or(&nothing);
    let tale = subject.tale(recording);
    let (head, context) = (markup::head(subject, recording), markup::context(subject, &tale));
    let mut left_out = Vec::new();
    loop {
        let data = columns::of(recording, &subject.report.violations, &tale, &left_out);
        let page = filled(&[
            ("title", markup::escaped(&subject.title())),
            ("style", include_str!("page/page.css").to_owned()),
            ("head", head.clone()),
            ("context", context.clone()),
            ("data", packed(&data)),
            ("script", include_str!("page/page.js").to_owned()),
        ]);
        match most_frequent(recording, &left_out) {
            Some(kind) if page.len() > SIZE_MAX => left_out.push(kind),
            _ => return page,
        }
    }
}

/// The template with its places filled, each once.
fn filled(parts: &[(&str, String)]) -> String {
    let mut page = String::new();
    for (place, piece) in include_str!("page/page.html").split("{{").enumerate() {
        let Some((name, after)) = piece.split_once("}}").filter(|_| place > 0) else {
            page.push_str(piece);
            continue;
        };
        let part = parts.iter().find(|(part, _)| *part == name);
        page.push_str(&part.expect("the template names the parts above").1);
        page.push_str(after);
    }
    page
}

/// The kind of which there are most messages, among those that are still in.
fn most_frequent(recording: &Recording, left_out: &[usize]) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for message in recording.messages.iter().filter(|message| !left_out.contains(&message.kind)) {
        *counts.entry(message.kind).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind)
}

/// Deflated, as text.
fn packed(data: &Value) -> String {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    let text = serde_json::to_vec(data).expect("columns are plain data");
    let bytes = deflate.write_all(&text).and_then(|()| deflate.finish()).expect("memory takes everything");
    STANDARD.encode(&bytes)
}

#[cfg(test)]
mod tests;
