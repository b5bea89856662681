//! What earlier runs found out about mutants, as long as it is true of the code as it is.

use super::scratch::Scratch;
use super::table::to_text;
use super::{Mutant, Options, Row, load};
use crate::error::MutantError;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::Xxh3;

const ROWS: &str = "mutants.json";
const TABLE: &str = "mutants.txt";

/// The rows of a scratch directory.
pub(super) struct Known {
    /// By name, for all mutants of the directory: what a row must rest on to be true.
    bases: BTreeMap<String, String>,
    rows: BTreeMap<String, Row>,
}

impl Known {
    /// Those that are true still. A file of rows that cannot be read is one that knows nothing.
    pub(super) fn read(scratch: &Scratch, options: &Options) -> Result<Known, MutantError> {
        let rest = rest(scratch, options)?;
        let mut bases = BTreeMap::new();
        for mutant in load(&options.patches, &[])? {
            let mut basis = rest.clone();
            basis.update(&scratch.read(&mutant.patch)?);
            basis.update(mutant.metadata.scenarios.join(" ").as_bytes());
            bases.insert(mutant.name, format!("{:016x}", basis.digest()));
        }
        Ok(Known::of(bases, scratch.stored(ROWS).as_deref()))
    }

    fn of(bases: BTreeMap<String, String>, stored: Option<&str>) -> Known {
        let rows: Vec<Row> = stored.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let is_true = |row: &Row| bases.get(&row.name) == Some(&row.basis);
        let rows = rows.into_iter().filter(is_true).map(|row| (row.name.clone(), row)).collect();
        Known { bases, rows }
    }

    /// What is known of a mutant.
    pub(super) fn row(&self, mutant: &Mutant) -> Option<&Row> {
        self.rows.get(&mutant.name)
    }

    /// What a row of that mutant rests on.
    pub(super) fn basis(&self, mutant: &Mutant) -> &str {
        &self.bases[&mutant.name]
    }

    /// Adds a row. Kept at once: builds are slow, and what a mutant did stays true.
    pub(super) fn keep(&mut self, row: Row, scratch: &Scratch) -> Result<(), MutantError> {
        self.rows.insert(row.name.clone(), row);
        let rows: Vec<&Row> = self.rows.values().collect();
        scratch.store(ROWS, &serde_json::to_string_pretty(&rows).expect("rows are plain data"))?;
        scratch.store(TABLE, &to_text(self.rows.values()))
    }
}

/// What all rows rest on: the code, and what was asked for.
fn rest(scratch: &Scratch, options: &Options) -> Result<Xxh3, MutantError> {
    let mut rest = Xxh3::new();
    scratch.read_code(|name, bytes| {
        rest.update(name.as_os_str().as_encoded_bytes());
        rest.update(bytes);
    })?;
    let Options { first_seed, seeds, shrink, change, .. } = options;
    rest.update(format!("{first_seed} {seeds} {shrink:?}").as_bytes());
    if let Some(change) = change {
        rest.update(&scratch.read(change)?);
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::Known;
    use crate::mutants::Row;
    use std::time::Duration;

    fn row(name: &str, basis: &str) -> Row {
        Row {
            name: name.into(),
            reference: "project#12".into(),
            expected: "nothing is lost".into(),
            kill: None,
            seeds: 7,
            virtual_time: Duration::from_secs(9),
            run_time: Duration::from_millis(3),
            small: None,
            basis: basis.into(),
        }
    }

    #[test]
    fn a_row_is_known_while_it_rests_on_what_is_there() {
        let stored = serde_json::to_string(&[row("as_it_was", "1"), row("changed", "2"), row("gone", "3")]).unwrap();
        let bases =
            || [("as_it_was", "1"), ("changed", "4"), ("new", "5")].map(|(name, basis)| (name.into(), basis.into()));
        let names = |stored: Option<&str>| Known::of(bases().into(), stored).rows.into_values().collect::<Vec<_>>();
        assert_eq!(names(Some(&stored)), [row("as_it_was", "1")]);
        for nothing in [None, Some("[{"), Some("{}")] {
            assert_eq!(names(nothing), []);
        }
    }
}
