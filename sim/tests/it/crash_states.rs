//! What a power loss may leave of names, lengths and bytes that were not synced, and what damage at rest leaves alone. The whole model
//! is enumerated in the tests of `rt`; here are the states that people forget.

use rt::fs::{OpenOptions, create_dir_all, sync_dir};
use rt::world::{NodeId, WorldConfig, disk, power_loss, run_test_with, spawn_on};
use std::collections::BTreeSet;
use std::io;

const SECTOR: usize = 512;

/// Makes two folders and a log of one sector, all of it durable.
async fn format() -> io::Result<()> {
    for folder in ["/one", "/two"] {
        create_dir_all(folder)?;
    }
    let log = OpenOptions::new().write(true).create(true).open("/one/log")?;
    log.write_at(&[1; SECTOR], 0)?;
    log.sync_data().await?;
    for folder in ["/one", "/two", "/"] {
        sync_dir(folder).await?;
    }
    Ok(())
}

/// New files in both folders, whose bytes are synced and whose names are not; and two sectors more in the log.
async fn change() -> io::Result<()> {
    for path in ["/one/first", "/one/second", "/two/third"] {
        let file = OpenOptions::new().write(true).create(true).open(path)?;
        file.write_at(&[2; SECTOR], 0)?;
        file.sync_data().await?;
    }
    OpenOptions::new().write(true).open("/one/log")?.write_at(&[3; 2 * SECTOR], SECTOR as u64)
}

/// The names that are left of the three new ones, and what became of each sector of the log.
fn seen(node: NodeId) -> (Vec<&'static str>, Vec<&'static str>) {
    let read = |path: &str| disk::read_file(node, path).ok();
    let left = ["/one/first", "/one/second", "/two/third"].into_iter().filter(|path| match read(path) {
        Some(bytes) => {
            assert_eq!(bytes, [2; SECTOR], "a file that is there has what was synced");
            true
        }
        None => false,
    });
    let log = read("/one/log").expect("its name was synced");
    let sector = |bytes: &[u8]| match bytes {
        bytes if bytes.iter().all(|byte| *byte == 1) => "old",
        bytes if bytes.iter().all(|byte| *byte == 3) => "new",
        bytes if bytes.iter().all(|byte| *byte == 0) => "zeros",
        _ => panic!("a sector is whole: {bytes:?}"),
    };
    (left.collect(), log.chunks(SECTOR).map(sector).collect())
}

#[test]
fn a_power_loss_leaves_every_legal_state_of_names_and_lengths_and_no_other() {
    let (mut names, mut sectors) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..400 {
        let config = WorldConfig { seed, ..WorldConfig::default() };
        let (left, log) = run_test_with(config, || async {
            let node = rt::world::add_node("a");
            spawn_on(node, async { (format().await, change().await) }).await.expect("no fault").0.expect("no fault");
            power_loss(node);
            disk::check_invariants(node);
            seen(node)
        });
        names.insert(left);
        sectors.insert(log);
    }
    // The folder's own changes keep their order; those of two folders do not: the third is there without the others, or they without it.
    let mut legal = BTreeSet::new();
    for first in [&[][..], &["/one/first"], &["/one/first", "/one/second"]] {
        legal.insert(first.to_vec());
        legal.insert([first, &["/two/third"]].concat());
    }
    assert_eq!(names, legal);
    // The length without the bytes, the bytes up to another length, and either sector without the other.
    let legal = ["", "new", "zeros", "new new", "new zeros", "zeros new", "zeros zeros"];
    let legal = legal.map(|tail| ["old"].into_iter().chain(tail.split_whitespace()).collect::<Vec<_>>());
    assert_eq!(sectors, BTreeSet::from(legal));
}
