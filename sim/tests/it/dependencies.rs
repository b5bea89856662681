//! No package runs inside the simulation that nobody has looked at: `DETERMINISM.md` lists each one of `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The versions of each package that comes from a registry.
fn locked() -> BTreeMap<String, BTreeSet<String>> {
    let lock = read("../Cargo.lock");
    let mut locked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.map(|text| text.trim_matches('"').to_owned())
        };
        // Packages of this workspace have no source.
        if value("source").is_some() {
            let (name, version) = (value("name").expect("a name"), value("version").expect("a version"));
            locked.entry(name).or_default().insert(version);
        }
    }
    locked
}

/// What the first column of the page's tables names: packages with the version that was looked at, or without one where nothing of
/// the package runs inside.
fn listed() -> BTreeSet<(String, Option<String>)> {
    let page = read("DETERMINISM.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let named = rows.flat_map(|cell| {
        let quoted = cell.split('`').filter(|text| !text.trim_matches([',', ' ']).is_empty());
        quoted.map(str::to_owned).collect::<Vec<_>>()
    });
    named
        .map(|text| match text.split_once(' ') {
            Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
            None => (text, None),
        })
        .collect()
}

#[test]
fn every_dependency_was_looked_at() {
    let (locked, listed) = (locked(), listed());
    assert!(locked.len() > 100 && listed.len() > 100, "{} locked, {} listed", locked.len(), listed.len());
    for (name, versions) in &locked {
        for version in versions {
            let known =
                listed.contains(&(name.clone(), Some(version.clone()))) || listed.contains(&(name.clone(), None));
            assert!(known, "{name} {version} is not on the page DETERMINISM.md: look at its doors, then add it");
        }
    }
    for (name, version) in &listed {
        let versions = locked.get(name);
        let there = versions.is_some_and(|versions| version.as_ref().is_none_or(|version| versions.contains(version)));
        assert!(
            there,
            "{name} {version:?} of DETERMINISM.md is not in Cargo.lock: take it out, or look at its new version"
        );
    }
}
