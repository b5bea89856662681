//! The rules of the house as tests: arrows between packages, file lengths, the README's map, banned doors, probes, checks.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Packages in the order of the layout: a package may use only what stands before it (and, for `broker` and `sim`, its own folder).
const LAYOUT: &[(&str, &str)] = &[
    ("rt", "sim/rt"),
    ("sim", "sim"),
    ("protocol", "broker/protocol"),
    ("remoting", "broker/remoting"),
    ("store", "broker/store"),
    ("replication", "broker/replication"),
    ("namesrv", "broker/namesrv"),
    ("client", "broker/client"),
    ("server", "broker/server"),
    ("broker", "broker"),
    ("scenarios", "scenarios"),
];

/// No file may grow past this; split it by idea first.
const FILE_LINES_MAX: usize = 800;

/// Text that code of `broker/` may not contain outside comments: each is a way around `rt`.
const BANNED_IN_BROKER: &[&str] = &[
    "std::fs",
    "std::thread",
    "TcpStream::connect_timeout",
    "std::net::Tcp",
    "std::net::Udp",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::process::Command",
    "tokio::",
    "madsim::",
    "rand::thread_rng",
    "println!",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is a folder of the workspace").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below `folder` whose name ends with `suffix`, without build output and hidden folders, sorted.
fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the tree is readable") {
            let path = entry.expect("a folder entry is readable").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
                open.push(path);
            } else if path.is_file() && name.ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Names under one table of a manifest.
fn dependencies(manifest: &str, table: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == table;
        } else if inside && let Some((key, _)) = line.split_once('=') {
            names.insert(key.trim().trim_end_matches(".workspace").to_owned());
        }
    }
    names
}

#[test]
fn manifests_follow_the_arrows() {
    for (position, (name, folder)) in LAYOUT.iter().enumerate() {
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        for dependency in dependencies(&manifest, "[dependencies]") {
            let Some(at) = LAYOUT.iter().position(|(other, _)| *other == dependency) else { continue };
            assert!(at < position, "{name} uses {dependency}, which stands after it in the layout");
            let sees_simulator = matches!(*name, "sim" | "scenarios");
            assert!(sees_simulator || dependency != "sim", "{name} names the simulator; only scenarios may");
            assert!(*name != "sim" || dependency == "rt", "sim names {dependency}: it knows nothing but rt");
        }
    }
}

#[test]
fn every_member_stands_in_the_layout() {
    let manifest = read(&root().join("Cargo.toml"));
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).expect("a members list");
    let members: BTreeSet<&str> = members.split('"').skip(1).step_by(2).collect();
    let layout: BTreeSet<&str> = LAYOUT.iter().map(|(_, folder)| *folder).collect();
    assert_eq!(members, layout);
}

#[test]
fn broker_manifests_list_no_door_to_the_world() {
    for (name, folder) in LAYOUT.iter().filter(|(_, folder)| folder.starts_with("broker")) {
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        for banned in ["tokio", "tokio-util", "rand", "madsim", "libc"] {
            assert!(!dependencies(&manifest, "[dependencies]").contains(banned), "{name} lists {banned}; use rt");
        }
    }
}

#[test]
fn shared_versions_stand_once() {
    for (name, folder) in LAYOUT {
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        for table in ["[dependencies]", "[dev-dependencies]"] {
            for line in
                manifest.lines().skip_while(|line| line.trim() != table).skip(1).take_while(|l| !l.starts_with('['))
            {
                let pinned = line.contains('=') && !line.contains("workspace = true");
                assert!(!pinned, "{name}: `{line}` belongs into [workspace.dependencies]");
            }
        }
    }
}

#[test]
fn every_shared_dependency_has_its_sentence() {
    let manifest = read(&root().join("Cargo.toml"));
    let table =
        manifest.split("[workspace.dependencies]").nth(1).and_then(|rest| rest.split("\n[").next()).expect("a table");
    let mut explained = false;
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('#') {
            explained = true;
        } else if !line.contains("path = ") {
            assert!(explained, "`{line}` has no sentence above it");
            explained = false;
        }
    }
}

#[test]
fn files_stay_short() {
    for path in files(&root(), ".rs") {
        let lines = read(&path).lines().count();
        assert!(lines <= FILE_LINES_MAX, "{} has {lines} lines; split it by idea", path.display());
        assert!(!path.ends_with("mod.rs"), "{}: name the module by its file", path.display());
    }
}

#[test]
fn readme_map_names_each_package_and_only_what_exists() {
    let readme = read(&root().join("README.md"));
    let named: BTreeSet<&str> = readme
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('`').nth(1))
        .filter(|path| path.ends_with('/') || path.contains('.'))
        .collect();
    for path in &named {
        assert!(root().join(path).exists(), "the README's map names {path}, which does not exist");
    }
    for (name, folder) in LAYOUT {
        let row = format!("{folder}/");
        assert!(named.contains(row.as_str()), "the README's map lacks package {name} at `{row}`");
    }
}

#[test]
fn folders_of_note_have_a_readme() {
    for (_, folder) in LAYOUT {
        assert!(root().join(folder).join("README.md").exists(), "{folder} has no README.md");
    }
    assert!(root().join("fixtures/README.md").exists());
}

#[test]
fn broker_code_goes_through_the_seam() {
    for path in files(&root().join("broker"), ".rs") {
        let text = without_comments(&read(&path));
        let is_test = path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches");
        // Tests read golden files and start the binary on the host, benchmarks do the same work without `rt`; each such line has its reason
        // for clippy.
        for banned in BANNED_IN_BROKER.iter().filter(|_| !is_test) {
            assert!(!text.contains(banned), "{} contains {banned}: go through rt", path.display());
        }
        // Tests that need a world say so; the program itself is one source, and only `main` refuses to serve in a world.
        let may_know = path.ends_with("broker/src/main.rs") || path.ends_with("tests.rs") || is_test;
        assert!(may_know || !text.contains("cfg(madsim)"), "{}: only rt knows the mode of the build", path.display());
    }
}

#[test]
fn nothing_is_left_open_or_ignored() {
    let this_file = Path::new(file!()).file_name().expect("a file has a name");
    for path in files(&root(), ".rs").into_iter().filter(|path| path.file_name() != Some(this_file)) {
        let text = without_comments(&read(&path));
        for banned in ["#[ignore", "todo!(", "unimplemented!("] {
            assert!(!text.contains(banned), "{} contains {banned}", path.display());
        }
    }
}

/// A probe marks a rare branch; a branch that no test reaches is a branch that nobody has seen work. So each name must stand in
/// test code too, where the test demands that the run reached it.
#[test]
fn every_probe_is_tied_to_a_test() {
    let (mut probes, mut tested) = (BTreeMap::new(), String::new());
    for path in files(&root(), ".rs") {
        let text = read(&path);
        let shown = path.to_string_lossy().into_owned();
        if shown.contains("/tests/") || shown.ends_with("tests.rs") {
            tested.push_str(&text);
            continue;
        }
        let (code, tests) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        tested.push_str(tests);
        if shown.contains("/broker/") {
            for name in code.split("probe!(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                probes.insert(name.to_owned(), shown.clone());
            }
        }
    }
    for (name, place) in probes {
        assert!(tested.contains(&format!("\"{name}\"")), "no test demands the probe {name} of {place}");
    }
}

#[test]
fn ci_page_and_script_list_the_same_commands() {
    let page = read(&root().join("CI.md"));
    let script = read(&root().join(".ci/run"));
    let commands: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('`').nth(1)).collect();
    assert!(commands.len() >= 5, "CI.md lists its checks in a table");
    for command in commands {
        assert!(script.contains(command), "CI.md lists `{command}`, .ci/run does not run it");
    }
}
