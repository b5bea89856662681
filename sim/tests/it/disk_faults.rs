//! Faults of a device that damages what was synced or refuses to work: each has an effect, and none damages more than the atlas permits.

use rt::fs::{OpenOptions, create_dir_all, read, sync_dir};
use rt::world::{NodeId, disk, run_test};
use serde_json::{Value, json};
use sim::atlas::{Area, Atlas};
use sim::desk::Desk;
use sim::fault::Fault;
use sim::nemesis::Nemesis;
use sim::report::Effect;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The kinds that are let loose here, and not in `faults.rs`.
pub const KINDS: [&str; 6] =
    ["latent_sector_error", "bit_rot", "misdirected_write", "stale_read", "open_files", "quota"];

const BLOCKS: u64 = 8;

/// Each fault for five seconds, ten seconds apart.
fn schedule(kinds: impl IntoIterator<Item = Value>) -> Vec<Fault> {
    let fault = |(index, kind): (usize, Value)| {
        let at = json!({"at": format!("{}s", 1 + 10 * index)});
        serde_json::from_value(json!({"fault": kind, "start": at, "lasts": "5s"})).expect("as in a case file")
    };
    kinds.into_iter().enumerate().map(fault).collect()
}

/// Makes a file of blocks that are all there, each of its own kind.
async fn format() -> io::Result<()> {
    create_dir_all("/store")?;
    let file = OpenOptions::new().write(true).create(true).open("/store/blocks")?;
    for block in 0..BLOCKS {
        file.write_at(&[block as u8; 512], block * 512)?;
    }
    file.sync_data().await?;
    sync_dir("/store").await?;
    sync_dir("/").await
}

/// Writes a block, reads all, and makes a log longer. Every step may fail.
async fn step(count: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open("/store/blocks")?;
    file.write_at(&[count as u8; 512], count % BLOCKS * 512)?;
    file.sync_data().await?;
    for block in 0..BLOCKS {
        file.read_exact_at(&mut [0; 512], block * 512).await?;
    }
    let log = OpenOptions::new().write(true).create(true).open("/log")?;
    log.write_at(&[1; 4_096], count * 4_096)
}

async fn work() {
    for count in 0.. {
        // What fails is the subject of the run; the next step is another try.
        let _ = step(count).await;
        rt::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Formats the nodes, lets the faults loose, and gives their effects; `look` sees the nodes at the end.
fn loose<T: 'static>(
    names: &'static [&'static str],
    works: bool,
    atlas: Atlas,
    faults: Vec<Fault>,
    look: impl FnOnce(&BTreeMap<&'static str, NodeId>) -> T + 'static,
) -> (Vec<Effect>, T) {
    run_test(move || async move {
        let mut nemesis = Nemesis::new(&Desk::new(), |_, _| {}).atlas(&atlas);
        let nodes: BTreeMap<_, _> = names.iter().map(|name| (*name, rt::world::add_node(name))).collect();
        for (name, node) in &nodes {
            rt::world::spawn_on(*node, format()).await.expect("no fault yet").expect("no fault yet");
            if works {
                drop(rt::world::spawn_on(*node, work()));
            }
            nemesis = nemesis.node(name, *node, || {});
        }
        let effects = nemesis.release(&faults).expect("the nodes are known").ended().await;
        nodes.values().for_each(|node| disk::check_invariants(*node));
        (effects, look(&nodes))
    })
}

#[test]
fn every_fault_of_a_disk_has_an_effect() {
    let atlas = Atlas::new().with(Area::new("store", &["a"], "/store", 1));
    let faults = schedule([
        json!({"latent_sector_error": {"node": "a", "sectors": 2}}),
        json!({"bit_rot": {"node": "a", "bits": 3}}),
        json!({"misdirected_write": {"node": "a", "path_contains": "blocks"}}),
        json!({"stale_read": {"node": "a", "path_contains": "blocks"}}),
        json!({"open_files": {"node": "a", "max": 1}}),
        json!({"quota": {"node": "a", "directory": "/", "bytes": 8_192}}),
        json!({"disk_error": {"node": "a", "operation": "open"}}),
        json!({"disk_error": {"node": "a", "operation": "write", "nth": 2}}),
    ]);
    let (effects, ()) = loose(&["a"], true, atlas.clone(), faults, |_| ());
    let told: Vec<String> =
        effects.iter().map(|effect| format!("{}: {} {}", effect.kind, effect.amount, effect.unit)).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    latent_sector_error: 1 operations failed
    bit_rot: 3 bits flipped
    misdirected_write: 1 writes misdirected
    stale_read: 1 reads of replaced bytes
    open_files: 50 files not opened
    quota: 50 writes refused
    disk_error: 50 operations failed
    disk_error: 1 operations failed
    ");
    assert_eq!(effects.iter().map(|effect| effect.kind.as_str()).take(KINDS.len()).collect::<Vec<_>>(), KINDS);
    assert!(effects.iter().all(|effect| effect.amount > 0));
    assert_eq!(atlas.refused(), 0);
}

/// The nodes whose blocks are as they were formatted.
fn good(nodes: &BTreeMap<&'static str, NodeId>) -> Vec<&'static str> {
    let blocks: Vec<u8> = (0..BLOCKS).flat_map(|block| [block as u8; 512]).collect();
    let is_good = |node| disk::read_file(node, "/store/blocks").is_ok_and(|bytes| bytes == blocks);
    nodes.iter().filter(|(_, node)| is_good(**node)).map(|(name, _)| *name).collect()
}

fn rot_everywhere() -> Vec<Fault> {
    let nodes = ["a", "b", "c"].into_iter().cycle().take(12);
    schedule(nodes.map(|node| json!({"bit_rot": {"node": node, "bits": 1}})))
}

#[test]
fn no_more_copies_are_damaged_than_the_atlas_permits() {
    for (damaged_max, left, refused) in [(0, 3, 12), (1, 2, 8), (2, 1, 4), (3, 0, 0)] {
        let atlas = Atlas::new().with(Area::new("store", &["a", "b", "c"], "/store", damaged_max));
        let (effects, good) = loose(&["a", "b", "c"], false, atlas.clone(), rot_everywhere(), good);
        assert_eq!(good.len(), left, "{good:?}");
        assert_eq!(atlas.refused(), refused);
        assert_eq!(effects.iter().filter(|effect| effect.amount == 0).count() as u64, refused);
    }
}

/// Names and lengths of what is durable on each node, by path.
fn names_and_lengths(nodes: &BTreeMap<&'static str, NodeId>) -> Vec<(NodeId, PathBuf, u64)> {
    let files = nodes.values().flat_map(|node| disk::files(*node).into_iter().map(|path| (*node, path)));
    files.map(|(node, path)| (node, path.clone(), disk::durable_len(node, &path).expect("it was just seen"))).collect()
}

/// A file system keeps both under checksums of its own: what rots there is an error at open, which `disk_error` is.
#[test]
fn damage_at_rest_changes_no_name_and_no_length() {
    let kinds = || {
        [
            json!({"latent_sector_error": {"node": "a", "sectors": 64}}),
            json!({"bit_rot": {"node": "a", "bits": 64}}),
            json!({"misdirected_write": {"node": "a"}}),
            json!({"stale_read": {"node": "a"}}),
        ]
    };
    let atlas = |damaged_max| Atlas::new().with(Area::new("store", &["a"], "/", damaged_max));
    let (effects, damaged) = loose(&["a"], true, atlas(1), schedule(kinds()), names_and_lengths);
    assert!(effects.iter().any(|effect| effect.amount > 0), "{effects:?}");
    let (_, untouched) = loose(&["a"], true, atlas(0), schedule(kinds()), names_and_lengths);
    assert_eq!(damaged, untouched);
}

#[test]
fn without_an_atlas_nothing_synced_is_damaged() {
    let (effects, good) = loose(&["a", "b", "c"], false, Atlas::new(), rot_everywhere(), good);
    assert_eq!(good, ["a", "b", "c"]);
    assert!(effects.iter().all(|effect| effect.amount == 0));
}

#[test]
fn damage_that_ends_gives_its_copy_back() {
    let atlas = Atlas::new().with(Area::new("store", &["a", "b"], "/store", 1));
    let faults = schedule(["a", "b"].map(|node| json!({"latent_sector_error": {"node": node, "sectors": 1}})));
    let (_, good) = loose(&["a", "b"], false, atlas.clone(), faults, good);
    assert_eq!(good, ["a", "b"]);
    assert_eq!((atlas.refused(), atlas.damaged("store").len()), (0, 0), "one after the other");
}

/// Two faults of a kind that overlap: the smaller quota counts, and the later limit of open files.
#[test]
fn overlapping_limits_restore_what_the_others_demand() {
    let fault = |kind: Value, start: &str, lasts: &str| -> Fault {
        serde_json::from_value(json!({"fault": kind, "start": {"at": start}, "lasts": lasts})).expect("a fault")
    };
    let quota = |bytes: u64| json!({"quota": {"node": "a", "directory": "/store", "bytes": bytes}});
    let open = |max: u64| json!({"open_files": {"node": "a", "max": max}});
    let faults = [
        fault(quota(8_192), "1s", "10s"),
        fault(quota(4_096), "3s", "2s"),
        fault(open(1), "1s", "10s"),
        fault(open(0), "3s", "2s"),
    ];
    let seen = run_test(move || async move {
        let node = rt::world::add_node("a");
        rt::world::spawn_on(node, format()).await.expect("no fault yet").expect("no fault yet");
        let loose = Nemesis::new(&Desk::new(), |_, _| {}).node("a", node, || {}).release(&faults).expect("known");
        let mut seen = Vec::new();
        for second in [0, 2, 4, 6, 12] {
            rt::time::sleep(Duration::from_secs(second).saturating_sub(rt::world::elapsed())).await;
            let free = || rt::fs::free_bytes("/store").expect("it is there").0 / 4_096;
            let look = async move { (free().min(9), read("/store/blocks").await.is_ok()) };
            seen.push(rt::world::spawn_on(node, look).await.expect("it ends"));
        }
        loose.heal().await;
        seen
    });
    assert_eq!(seen, [(9, true), (1, true), (0, false), (1, true), (9, true)]);
}
