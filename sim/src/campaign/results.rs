//! A directory of results: what a campaign does, how far it has come, what it found. It outlives the process.
//!
//! | file | what |
//! |---|---|
//! | `campaign.json` | the terms: scenarios, amount, first seed, strategy, shard, and which build ran it |
//! | `progress.json` | the first runs that are done, their summary, and what a guided campaign has learnt |
//! | `cases/` | the failing plans |
//!
//! Every file is written beside its place and moved there. A process that is killed loses at most the runs since the last `progress.json`;
//! they are made again, and as a run is a function of its number, whatever they found is found again.

use super::Amount;
use super::summary::Summary;
use crate::error::ResultsError;
use crate::explore::{Corpus, Strategy};
use crate::plan::write_whole;
use crate::shard::Shard;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const TERMS: &str = "campaign.json";
const PROGRESS: &str = "progress.json";
/// Where the cases are.
pub(super) const CASES: &str = "cases";

/// What a campaign does. Two parts of one campaign differ in their shard only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Names of scenarios, in the order in which they are dealt to.
    pub scenarios: Vec<String>,
    /// How much.
    pub amount: Amount,
    /// The first seed.
    pub first_seed: u64,
    /// Which plan a run has.
    pub strategy: Strategy,
    /// Which part.
    pub shard: Shard,
    /// Hash of the executable: another build gives other runs.
    pub build: String,
}

impl Terms {
    /// What differs from other terms, if anything does.
    fn difference(&self, other: &Terms) -> Option<String> {
        let fields = |terms: &Terms| -> BTreeMap<String, serde_json::Value> {
            let value = serde_json::to_value(terms).expect("terms are plain data");
            serde_json::from_value(value).expect("terms are an object")
        };
        let theirs = fields(other);
        let differs = |(name, ours): (String, serde_json::Value)| {
            let theirs = &theirs[&name];
            (ours != *theirs).then(|| format!("its {name} is {ours}, not {theirs}"))
        };
        fields(self).into_iter().find_map(differs)
    }
}

/// The hash of this executable.
///
/// # Errors
/// It cannot be read.
pub(super) fn this_build() -> Result<String, ResultsError> {
    let path = Path::new("/proc/self/exe");
    let bytes = fs::read(path).map_err(|source| ResultsError::File { path: path.to_owned(), source })?;
    Ok(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)))
}

/// How far a campaign has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    /// The first so many runs of the shard are done.
    pub(super) done: u64,
    /// What they found.
    pub(super) summary: Summary,
    /// What they taught.
    #[serde(default)]
    pub(super) corpus: Corpus,
}

/// A directory of results.
#[derive(Debug)]
pub(super) struct Results {
    directory: PathBuf,
}

impl Results {
    /// Opens the directory for a campaign; gives how far it came the last time, if there was one.
    ///
    /// # Errors
    /// It holds results of another campaign, or cannot be used.
    pub(super) fn open(directory: &Path, terms: &Terms) -> Result<(Results, Option<Progress>), ResultsError> {
        let results = Results { directory: directory.to_owned() };
        let known: Option<Terms> = results.read(TERMS)?;
        if let Some(known) = known {
            if let Some(difference) = known.difference(terms) {
                return Err(ResultsError::Other { directory: directory.to_owned(), difference });
            }
        } else {
            results.write(TERMS, terms)?;
        }
        let progress = results.read(PROGRESS)?;
        Ok((results, progress))
    }

    /// Keeps how far the campaign has come.
    pub(super) fn keep(&self, progress: &Progress) -> Result<(), ResultsError> {
        self.write(PROGRESS, progress)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ResultsError> {
        let path = self.directory.join(name);
        match fs::read(&path) {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(value) => Ok(Some(value)),
                Err(source) => Err(ResultsError::Damaged { path, source }),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ResultsError::File { path, source }),
        }
    }

    fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), ResultsError> {
        let path = self.directory.join(name);
        let text = serde_json::to_string_pretty(value).expect("results are plain data");
        write_whole(&path, &text).map_err(|source| ResultsError::File { path, source })
    }
}

/// The parts of one campaign, put together.
#[derive(Debug)]
pub struct Merged {
    /// What they found.
    pub summary: Summary,
    /// Shards of the campaign that are not among them.
    pub missing: Vec<Shard>,
}

/// Puts the results of several shards together; with `out`, also copies their cases there.
///
/// # Errors
/// They are not parts of one campaign, one part is there twice, or a file cannot be used.
pub fn merge(directories: &[PathBuf], out: Option<&Path>) -> Result<Merged, ResultsError> {
    let mut parts: BTreeMap<u64, &PathBuf> = BTreeMap::new();
    let mut summary = Summary::default();
    let mut first: Option<Terms> = None;
    for directory in directories {
        let results = Results { directory: directory.clone() };
        let terms: Terms = results.demand(TERMS)?;
        if let Some(earlier) = parts.insert(terms.shard.index, directory) {
            let (first, second) = (earlier.clone(), directory.clone());
            return Err(ResultsError::Twice { first, second, shard: terms.shard.to_string() });
        }
        let expected = first.get_or_insert_with(|| terms.clone());
        // Machines may have built it in different places.
        let same_part = Terms { shard: expected.shard, build: expected.build.clone(), ..terms.clone() };
        if terms.shard.count != expected.shard.count {
            let difference = format!("it is shard {}, another is {}", terms.shard, expected.shard);
            return Err(ResultsError::Other { directory: directory.clone(), difference });
        }
        if let Some(difference) = same_part.difference(expected) {
            return Err(ResultsError::Other { directory: directory.clone(), difference });
        }
        let Progress { summary: mut theirs, .. } = results.demand(PROGRESS)?;
        for failure in theirs.findings.failures_mut() {
            failure.case = failure.case.take().map(|case| results.bring(&case, out)).transpose()?;
        }
        summary.merge(theirs);
    }
    let count = first.map_or(0, |terms| terms.shard.count);
    let missing = (1..=count).filter(|index| !parts.contains_key(index)).map(|index| Shard { index, count }).collect();
    Ok(Merged { summary, missing })
}

impl Results {
    fn demand<T: DeserializeOwned>(&self, name: &str) -> Result<T, ResultsError> {
        self.read(name)?.ok_or_else(|| ResultsError::File {
            path: self.directory.join(name),
            source: std::io::ErrorKind::NotFound.into(),
        })
    }

    /// Where a case of these results is now, on whatever machine it was saved; with `out`, a copy of it there.
    fn bring(&self, case: &Path, out: Option<&Path>) -> Result<PathBuf, ResultsError> {
        let name = case.file_name().unwrap_or_default();
        let here = self.directory.join(CASES).join(name);
        let Some(out) = out else { return Ok(here) };
        let there = out.join(CASES).join(name);
        let copied = fs::read_to_string(&here).and_then(|text| write_whole(&there, &text));
        copied.map_err(|source| ResultsError::File { path: here, source })?;
        Ok(there)
    }
}
