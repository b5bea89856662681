//! The page as plain text.

use super::Subject;
use crate::recording::Recording;
use crate::text::grouped;
use crate::verdict::seconds;
use std::fmt::Write;

/// Header, faults, violations with their proofs, and the story around them. A proof is marked with `>`.
pub fn to_text(subject: &Subject<'_>) -> String {
    let report = subject.report;
    let mut text = format!("{}\n  claim: {}\n  {}\n", subject.title(), subject.claim, subject.figures());
    if !report.effects.is_empty() {
        text.push_str("\nfaults\n");
    }
    for effect in &report.effects {
        let amount = if effect.amount == 0 {
            "no effect".to_owned()
        } else {
            format!("{} {}", grouped(effect.amount), effect.unit)
        };
        line(&mut text, format_args!("  {}: {amount}", effect.fault));
    }
    if report.is_clean() {
        text.push_str("\nno violation\n");
    }
    for violation in &report.violations {
        line(&mut text, format_args!("\nviolation of {violation}"));
    }
    let nothing = Recording::default();
    let tale = subject.tale(report.recording.as_deref().unwrap_or(&nothing));
    if !tale.moments.is_empty() {
        text.push_str("\nthe story\n");
    }
    for moment in &tale.moments {
        let mark = if moment.proves { '>' } else { ' ' };
        line(&mut text, format_args!("{mark} {:>12}  {}", seconds(moment.at), moment.text));
    }
    line(&mut text, format_args!("\nreproduce: {}", subject.reproduce));
    text
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("a String takes everything");
}
