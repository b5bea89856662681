//! No package runs inside the simulation that nobody has looked at: `DETERMINISM.md` lists each one of `Cargo.lock`.

use std::collections::BTreeSet;
use std::path::Path;

/// A package and its version.
type Package = (String, String);

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each package of the lock file that comes from a registry.
fn locked(lock: &str) -> BTreeSet<Package> {
    let packages = lock.split("[[package]]").skip(1).filter_map(|package| {
        let value = |key: &str| {
            let text = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            Some(text.trim_matches('"').to_owned())
        };
        // Packages of this workspace have no source.
        value("source").map(|_| (value("name").expect("a name"), value("version").expect("a version")))
    });
    packages.collect()
}

/// What the first column of the page's tables names: packages with the version that was looked at, or without one where nothing of
/// the package runs inside.
fn listed(page: &str) -> BTreeSet<(String, Option<String>)> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let quoted = cells.flat_map(|cell| cell.split('`').filter(|text| !text.trim_matches([',', ' ']).is_empty()));
    let named = |text: &str| match text.split_once(' ') {
        Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
        None => (text.to_owned(), None),
    };
    quoted.map(named).collect()
}

/// What is locked and not on the page, and what is on the page and not locked.
fn unlike(lock: &str, page: &str) -> (Vec<Package>, Vec<(String, Option<String>)>) {
    let (locked, listed) = (locked(lock), listed(page));
    let covers = |(name, version): &(String, Option<String>), package: &Package| {
        *name == package.0 && version.as_ref().is_none_or(|version| *version == package.1)
    };
    let unknown = locked.iter().filter(|package| !listed.iter().any(|row| covers(row, package)));
    let stale = listed.iter().filter(|row| !locked.iter().any(|package| covers(row, package)));
    (unknown.cloned().collect(), stale.cloned().collect())
}

#[test]
fn every_dependency_was_looked_at() {
    let (unknown, stale) = unlike(&read("../Cargo.lock"), &read("DETERMINISM.md"));
    assert!(unknown.is_empty(), "not on the page DETERMINISM.md: {unknown:?}; look at their doors, then add them");
    assert!(stale.is_empty(), "DETERMINISM.md names what Cargo.lock does not have: {stale:?}");
}

#[test]
fn a_dependency_that_is_added_or_updated_is_noticed() {
    let (lock, page) = (read("../Cargo.lock"), read("DETERMINISM.md"));
    let package = |name: &str, version: &str| (name.to_owned(), version.to_owned());
    let added = "\n[[package]]\nname = \"quanta\"\nversion = \"0.12.3\"\nsource = \"registry\"\n";
    assert_eq!(unlike(&(lock.clone() + added), &page), (vec![package("quanta", "0.12.3")], Vec::new()));
    // One that runs inside is looked at again with each version, one that does not only once.
    let (_, version) = locked(&lock).into_iter().find(|(name, _)| name == "tokio").expect("it is the base");
    let updated =
        lock.replace(&format!("name = \"tokio\"\nversion = \"{version}\""), "name = \"tokio\"\nversion = \"1.99.0\"");
    let stale = vec![("tokio".to_owned(), Some(version))];
    assert_eq!(unlike(&updated, &page), (vec![package("tokio", "1.99.0")], stale));
    let (_, version) = locked(&lock).into_iter().find(|(name, _)| name == "insta").expect("tests have it");
    let updated =
        lock.replace(&format!("name = \"insta\"\nversion = \"{version}\""), "name = \"insta\"\nversion = \"1.99.0\"");
    assert_eq!(unlike(&updated, &page), (Vec::new(), Vec::new()));
    // A package of the workspace has no source.
    let own = lock + "\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
    assert_eq!(unlike(&own, &page), (Vec::new(), Vec::new()));
}
