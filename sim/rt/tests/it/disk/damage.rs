//! Devices that lose, change and mix up what was synced, and limits on what a process may use.
use super::{S, on, seeded, writable};
use rt::fs::{File, create_dir_all, free_bytes, metadata, read, sync_dir};
use rt::time::sleep;
use rt::world::{self, DiskAnomaly, disk};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

/// A file with three synced sectors of 1, 2 and 3.
async fn three_sectors(path: &str) -> File {
    let file = writable(path);
    file.write_at(&[[1; 512], [2; 512], [3; 512]].concat(), 0).unwrap();
    file.sync_data().await.unwrap();
    sync_dir("/").await.unwrap();
    file
}

async fn sector(file: &File, at: u64) -> io::Result<u8> {
    let mut out = [0; 512];
    file.read_exact_at(&mut out, at * 512).await?;
    assert_eq!(out, [out[0]; 512], "a sector is of one kind");
    Ok(out[0])
}

#[test]
fn an_unreadable_sector_fails_until_it_is_written_as_a_whole() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let file = on(node, three_sectors("/f")).await;
        let bad = disk::fail_sectors(node, "/f", 600..601).unwrap();
        assert_eq!(bad.count(), 1);
        on(node, async move {
            assert_eq!((sector(&file, 0).await.unwrap(), sector(&file, 2).await.unwrap()), (1, 3));
            assert_eq!(sector(&file, 1).await.unwrap_err().raw_os_error(), Some(5));
            assert_eq!(
                file.write_at(&[9; 100], 520).unwrap_err().raw_os_error(),
                Some(5),
                "the rest must be read first"
            );
            assert_eq!(file.set_len(600).unwrap_err().raw_os_error(), Some(5), "the rest must become zeros");
            file.write_at(&[9; 512], 512).unwrap();
            assert_eq!(sector(&file, 1).await.unwrap(), 9);
            file.sync_data().await.unwrap();
        })
        .await;
        assert_eq!(disk::effects(node).unreadable, 3);
        assert_eq!(disk::restore_sectors(node, &bad), 0, "it is readable already");
        world::power_loss(node);
        assert_eq!(disk::read_file(node, "/f").unwrap()[512..1024], [9; 512]);
    });
}

#[test]
fn an_unreadable_sector_is_still_there_if_a_power_loss_takes_the_new_content() {
    let program = || async {
        let file = three_sectors("/f").await;
        assert_eq!(disk::fail_sectors(world::current_node(), "/f", 0..512).unwrap().count(), 1);
        file.write_at(&[9; 512], 0).unwrap();
    };
    let one = |seed| {
        world::run_test_with(seeded(seed), move || async move {
            let node = world::add_node("broker");
            on(node, program()).await;
            world::power_loss(node);
            let read = on(node, async { sector(&File::open("/f").unwrap(), 0).await });
            read.await.map_err(|error| error.raw_os_error())
        })
    };
    assert_eq!((0..60).map(one).collect::<BTreeSet<_>>(), BTreeSet::from([Ok(9), Err(Some(5))]));
}

#[test]
fn healing_makes_unreadable_sectors_readable_with_what_was_in_them() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let file = on(node, three_sectors("/f")).await;
        let first = disk::fail_sectors(node, "/f", 0..512).unwrap();
        disk::fail_sectors(node, "/f", 1024..1025).unwrap();
        assert_eq!(disk::restore_sectors(node, &first), 1);
        let reads = file.clone();
        let read = on(node, async move { (sector(&reads, 0).await.ok(), sector(&reads, 2).await.ok()) });
        assert_eq!(read.await, (Some(1), None));
        disk::heal(node);
        assert_eq!(on(node, async move { sector(&file, 2).await.unwrap() }).await, 3);
    });
}

#[test]
fn a_bit_rots_at_rest_only_and_for_good() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let file = on(node, three_sectors("/f")).await;
        assert!(disk::flip_bit(node, "/f", 700, 7).unwrap());
        assert!(!disk::flip_bit(node, "/f", 1536, 0).unwrap(), "behind the end");
        assert_eq!(disk::flip_bit(node, "/g", 0, 0).unwrap_err().kind(), ErrorKind::NotFound);
        let reads = file.clone();
        on(node, async move {
            let mut out = [0; 1536];
            reads.read_exact_at(&mut out, 0).await.unwrap();
            assert_eq!((out[699], out[700], out[701]), (2, 2 ^ 0x80, 2));
        })
        .await;
        assert_eq!(disk::effects(node).rotten_reads, 1);
        world::power_loss(node);
        assert_eq!(disk::read_file(node, "/f").unwrap()[700], 2 ^ 0x80);
        on(node, async { writable("/f").write_at(&[5; 512], 512).unwrap() }).await;
        assert!(!disk::flip_bit(node, "/f", 0, 0).unwrap(), "the page is about to be written");
        assert_eq!(disk::read_file(node, "/f").unwrap()[512..1024], [5; 512]);
        disk::check_invariants(node);
    });
}

#[test]
fn a_misdirected_write_lands_elsewhere_in_its_file_once() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        disk::add_anomaly(node, DiskAnomaly::MisdirectedWrite, Some("log".into()));
        let bytes = on(node, async {
            let (log, other) = (three_sectors("/log").await, three_sectors("/other").await);
            for file in [&other, &log] {
                file.write_at(&[7; 512], 1536).unwrap();
            }
            (read("/log").await.unwrap(), read("/other").await.unwrap())
        });
        let (log, other) = bytes.await;
        assert_eq!((log.len(), other.len()), (2048, 2048), "the length is right");
        let sectors: Vec<u8> = log.chunks(512).map(|sector| sector[0]).collect();
        let seven = sectors.iter().position(|byte| *byte == 7).unwrap();
        assert!(seven < 3, "{sectors:?}");
        assert_eq!(sectors[3], 0, "where it should be is nothing");
        assert_eq!(other[1536], 7);
        assert_eq!(disk::effects(node).misdirected_writes, 1);
        disk::check_invariants(node);
    });
}

#[test]
fn a_stale_read_shows_what_was_replaced_once() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        disk::add_anomaly(node, DiskAnomaly::StaleRead, None);
        on(node, async {
            let file = three_sectors("/f").await;
            file.write_at(&[8; 512], 512).unwrap();
            assert_eq!(sector(&file, 0).await.unwrap(), 1, "nothing was replaced here");
            assert_eq!(sector(&file, 1).await.unwrap(), 2);
            assert_eq!(sector(&file, 1).await.unwrap(), 8);
        })
        .await;
        assert_eq!(disk::effects(node).stale_reads, 1);
    });
}

#[test]
fn a_process_opens_no_more_files_than_it_may() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        disk::limit_open_files(node, Some(2));
        on(node, async {
            let first = writable("/a");
            let second = first.clone();
            let third = writable("/b");
            let error = File::open("/a").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(24));
            assert_eq!(read("/a").await.unwrap_err().raw_os_error(), Some(24));
            assert_eq!(sync_dir("/").await.unwrap_err().raw_os_error(), Some(24), "a directory is opened to be synced");
            assert_eq!(rt::fs::read_dir("/").unwrap_err().raw_os_error(), Some(24));
            assert_eq!(metadata("/a").unwrap().len, 0, "no file is opened for this");
            drop(third);
            drop(File::open("/a").unwrap());
            drop((first, second));
        })
        .await;
        assert_eq!(disk::effects(node).opens_refused, 4);
        let hold = || async {
            let _held = (writable("/a"), writable("/b"));
            std::future::pending::<()>().await;
        };
        for _ in 0..3 {
            world::spawn_on(node, hold());
            sleep(S).await;
            world::crash(node);
        }
        disk::limit_open_files(node, None);
        on(node, async { (0..10).map(|_| File::open("/a").unwrap()).collect::<Vec<_>>().len() }).await;
    });
}

#[test]
fn a_quota_limits_one_directory() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let quota = disk::add_quota(node, "/small", 2 * 4096).unwrap();
        on(node, async {
            create_dir_all("/small/deep").unwrap();
            let (inside, deep, outside) = (writable("/small/f"), writable("/small/deep/f"), writable("/f"));
            inside.write_at(&[1; 4096], 0).unwrap();
            assert_eq!(free_bytes("/small").unwrap(), (4096, 2 * 4096));
            assert_eq!(deep.write_at(&[1; 3 * 4096], 0).unwrap_err().kind(), ErrorKind::QuotaExceeded);
            assert_eq!(deep.len().unwrap(), 4096, "what fits is written");
            outside.write_at(&[1; 3 * 4096], 0).unwrap();
            rt::fs::rename("/small/f", "/moved").unwrap();
            deep.write_at(&[1; 4096], 4096).unwrap();
        })
        .await;
        assert_eq!((disk::effects(node).over_quota, disk::effects(node).full), (1, 0));
        disk::remove(node, quota);
        on(node, async { writable("/small/deep/f").write_at(&[1; 9 * 4096], 0).unwrap() }).await;
    });
}
