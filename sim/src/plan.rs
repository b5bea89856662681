//! Case files: one failing (or interesting) plan as pretty JSON, readable in a review.
//!
//! ```json
//! {
//!   "format": 1,
//!   "scenario": "acked_write_survives_power_loss",
//!   "seed": 4711,
//!   "violates": "no acked write is lost",
//!   "plan": { … }
//! }
//! ```
//!
//! `seed` and `violates` tell where the case came from; a replay looks at neither.

use crate::error::CaseError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// The format that this build writes and the only one it reads.
pub const FORMAT: u64 = 1;

/// A plan with its envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case<P = Value> {
    /// Version of the envelope.
    pub format: u64,
    /// The scenario that understands the plan.
    pub scenario: String,
    /// The seed that drew the plan. Information only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The invariant that was violated when the case was saved. Information only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violates: Option<String>,
    /// What to run.
    pub plan: P,
}

/// Only the number, read first, so that a later format is told apart from damage.
#[derive(Deserialize)]
struct Envelope {
    format: u64,
}

impl<P> Case<P> {
    /// A case of the current format.
    pub fn new(scenario: impl Into<String>, seed: Option<u64>, violates: Option<String>, plan: P) -> Case<P> {
        Case { format: FORMAT, scenario: scenario.into(), seed, violates, plan }
    }
}

impl Case {
    /// The file's text: pretty JSON with a final newline.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a JSON value with string keys can be written");
        text.push('\n');
        text
    }

    /// Writes the file, and its directory if there is none yet; see [`write_whole`].
    pub fn save(&self, path: &Path) -> Result<(), CaseError> {
        write_whole(path, &self.to_text()).map_err(|source| CaseError::Write { path: path.to_owned(), source })
    }

    /// Reads the file. Whether the plan fits its scenario shows when it runs.
    pub fn load(path: &Path) -> Result<Case, CaseError> {
        let text = fs::read_to_string(path).map_err(|source| CaseError::Read { path: path.to_owned(), source })?;
        Case::from_text(path, &text)
    }

    /// Reads the text of a file; `path` is for the error only.
    pub fn from_text(path: &Path, text: &str) -> Result<Case, CaseError> {
        let damaged = |source| CaseError::Damaged { path: path.to_owned(), source };
        let Envelope { format } = serde_json::from_str(text).map_err(damaged)?;
        if format != FORMAT {
            return Err(CaseError::Format { path: path.to_owned(), found: format, expected: FORMAT });
        }
        serde_json::from_str(text).map_err(damaged)
    }
}

/// Writes a file, and its directory if there is none yet. Whoever ends the process meanwhile leaves the old file or the new one.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::Case;
    use insta::assert_snapshot;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_case_reads_well_and_comes_back() {
        let case = Case::new(
            "counter_never_goes_back",
            Some(7),
            Some("monotonic".into()),
            json!({"rounds": 3, "pause": "2.5s"}),
        );
        assert_snapshot!(case.to_text(), @r#"
        {
          "format": 1,
          "scenario": "counter_never_goes_back",
          "seed": 7,
          "violates": "monotonic",
          "plan": {
            "rounds": 3,
            "pause": "2.5s"
          }
        }
        "#);
        let back = Case::from_text(Path::new("x.json"), &case.to_text()).expect("just written");
        assert_eq!(back, case);
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let fails = |text: &str| Case::from_text(Path::new("cases/a.json"), text).expect_err("damaged").to_string();
        assert_snapshot!(fails("{\"format\": 1, \"scen"), @"case file cases/a.json is damaged: EOF while parsing a string at line 1 column 19");
        assert_snapshot!(fails("{\"format\": 1, \"plan\": 1}"), @"case file cases/a.json is damaged: missing field `scenario` at line 1 column 24");
        assert_snapshot!(fails("{\"format\": 1, \"scenario\": \"a\", \"sede\": 4, \"plan\": 1}"), @"case file cases/a.json is damaged: unknown field `sede`, expected one of `format`, `scenario`, `seed`, `violates`, `plan` at line 1 column 37");
        assert_snapshot!(fails("{\"format\": 2, \"steps\": []}"), @"case file cases/a.json has format 2, this build reads format 1");
        let missing = Case::load(Path::new("no/such/case.json")).expect_err("missing").to_string();
        assert_snapshot!(missing, @"cannot read case file no/such/case.json: No such file or directory (os error 2)");
    }
}
