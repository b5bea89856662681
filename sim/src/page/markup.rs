//! What is read first, and printed.

use super::Subject;
use crate::recording::{Recording, Tale, micros_of};
use crate::report::Report;
use crate::text::grouped;
use crate::verdict::{Violation, seconds};

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The verdict with its proofs. Further violations are folded away: as a rule they have the same cause.
pub(super) fn head(subject: &Subject<'_>, recording: &Recording) -> String {
    let report = subject.report;
    let (class, verdict) = if report.is_clean() { ("clean", "no violation") } else { ("broken", "violation") };
    let title = escaped(subject.scenario).replace('_', "_<wbr>");
    let seed = subject.seed.map(|seed| format!(" <span class=seed>seed {seed}</span>")).unwrap_or_default();
    let mut html = format!("<h1><span class=\"badge {class}\">{verdict}</span> {title}{seed}</h1>\n");
    html.push_str(&format!("<p class=claim>Claim: {}.</p>\n", escaped(subject.claim)));
    let mut before = 0;
    let more = report.violations.len().saturating_sub(1);
    for (place, violation) in report.violations.iter().enumerate() {
        let (name, summary) = (escaped(&violation.invariant), escaped(&violation.summary));
        let proofs = proofs(violation, recording, before);
        before += violation.evidence.len();
        if place == 1 {
            let what = if more == 1 { "One more violation".to_owned() } else { format!("{more} more violations") };
            html.push_str(&format!("<details class=more><summary>{what}</summary>\n"));
        }
        html.push_str(&format!("<section class=verdict><h2>{name}</h2><p>{summary}</p>\n{proofs}</section>\n"));
    }
    if more > 0 {
        html.push_str("</details>\n");
    }
    html.push_str(&format!("<p class=figures>{}</p>\n", escaped(&subject.figures())));
    html.push_str(&format!("<p class=figures>Again: <code>{}</code></p>\n", escaped(subject.reproduce)));
    html
}

/// The proofs of one violation, numbered over all violations.
fn proofs(violation: &Violation, recording: &Recording, before: usize) -> String {
    let line = |(place, proof): (usize, &crate::verdict::Evidence)| {
        let number = before + place + 1;
        let (event, at, time) = (proof.event.0, micros_of(proof.at), seconds(proof.at));
        let text = recording.words(proof.event).unwrap_or_else(|| proof.text.clone());
        let link = format!("<a href=\"#event={event}\" data-at={at}>");
        format!("<li value={number}>{link}<b>proof {number}</b> <time>{time} s</time> {}</a></li>\n", escaped(&text))
    };
    let lines: String = violation.evidence.iter().enumerate().map(line).collect();
    format!("<ol class=proofs>\n{lines}</ol>")
}

/// Faults, story and plan.
pub(super) fn context(subject: &Subject<'_>, tale: &Tale) -> String {
    let mut html = fault_table(subject.report);
    if !subject.report.is_clean() {
        html.push_str(&story(tale));
    }
    let plan = serde_json::to_string_pretty(subject.plan).expect("a plan is JSON");
    html.push_str(&format!("<details class=plan><summary>Plan</summary><pre>{}</pre></details>\n", escaped(&plan)));
    html
}

fn fault_table(report: &Report) -> String {
    if report.effects.is_empty() {
        return String::new();
    }
    let row = |effect: &crate::report::Effect| {
        let amount =
            if effect.amount == 0 { "none".to_owned() } else { format!("{} {}", grouped(effect.amount), effect.unit) };
        format!("<tr><td>{}<td>{}\n", escaped(&effect.fault), escaped(&amount))
    };
    let rows: String = report.effects.iter().map(row).collect();
    let table = format!("<table><tr><th>fault<th>effect\n{rows}</table>");
    format!("<details class=faults open><summary>Faults</summary>{table}</details>\n")
}

fn story(tale: &Tale) -> String {
    let row = |moment: &crate::recording::Moment| {
        let (class, mark) = if moment.proves { (" class=proof", "▶ ") } else { ("", "") };
        let (event, time, text) = (moment.event.0, seconds(moment.at), escaped(&moment.text));
        format!("<tr{class}><td><a href=\"#event={event}\">{time}</a><td>{mark}{text}\n")
    };
    let rows: String = tale.moments.iter().map(row).collect();
    let table = format!("<table><tr><th>seconds<th>what happened\n{rows}</table>");
    format!("<details class=story open><summary>The story</summary>{table}</details>\n")
}
