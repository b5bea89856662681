//! The simulated disk under faults: what a crash may take, what it must not, and that each fault shows its effect.
mod damage;

use rt::fs::{
    File, OpenOptions, create_dir, create_dir_all, free_bytes, metadata, read, read_or_backup, rename, replace,
    sync_dir,
};
use rt::time::{Duration, sleep, timeout};
use rt::world::{
    self, CrashKind, CrashPoint, DiskChance, DiskConfig, DiskError, DiskFault, DiskLatency, DiskOperation, NodeId,
    WorldConfig, disk,
};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

const S: Duration = Duration::from_secs(1);

fn seeded(seed: u64) -> WorldConfig {
    WorldConfig { seed, ..WorldConfig::default() }
}

fn writable(path: &str) -> File {
    OpenOptions::new().write(true).create(true).open(path).unwrap()
}

/// Runs a program on `node` to its end.
async fn on<T: Send + 'static>(node: NodeId, program: impl Future<Output = T> + Send + 'static) -> T {
    world::spawn_on(node, program).await.unwrap()
}

/// Plays `program` on a node, cuts its power, and looks at what is left; for many seeds. Says what was seen.
fn outcomes<T, P, F>(program: P, look: impl Fn(NodeId) -> T + Copy + 'static) -> BTreeSet<T>
where
    T: Ord + 'static,
    P: Fn() -> F + Copy + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let one = |seed| {
        world::run_test_with(seeded(seed), move || async move {
            let node = world::add_node("broker");
            on(node, program()).await;
            world::power_loss(node);
            disk::check_invariants(node);
            look(node)
        })
    };
    (0..60).map(one).collect()
}

fn fault(operation: DiskOperation, chance: DiskChance) -> DiskFault {
    DiskFault { operation, path_contains: None, chance, error: DiskError::Io }
}

#[test]
fn a_process_crash_keeps_everything_written() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        world::spawn_on(node, async {
            create_dir_all("/store/log").unwrap();
            writable("/store/log/0").write_at(b"not synced", 0).unwrap();
            std::future::pending::<()>().await;
        });
        sleep(S).await;
        world::crash(node);
        assert_eq!(disk::read_file(node, "/store/log/0").unwrap(), b"not synced");
        assert_eq!(disk::read_durable(node, "/store/log/0").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(on(node, read("/store/log/0")).await.unwrap(), b"not synced");
    });
}

#[test]
fn a_power_loss_keeps_what_was_synced_and_part_of_the_rest() {
    let program = || async {
        create_dir("/log").unwrap();
        let file = writable("/log/0");
        file.write_at(&[1; 4096], 0).unwrap();
        file.sync_data().await.unwrap();
        sync_dir("/log").await.unwrap();
        sync_dir("/").await.unwrap();
        file.write_at(&[2; 8192], 4096).unwrap();
    };
    let seen = outcomes(program, |node| {
        let bytes = disk::read_file(node, "/log/0").unwrap();
        assert!(bytes[..4096].iter().all(|byte| *byte == 1), "synced");
        for sector in bytes[4096..].chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole");
            assert!(sector[0] == 0 || sector[0] == 2);
        }
        let written = bytes[4096..].iter().filter(|byte| **byte == 2).count();
        (bytes.len(), written)
    });
    assert!(seen.contains(&(4096, 0)), "nothing of it: {seen:?}");
    assert!(seen.contains(&(12_288, 8192)), "all of it: {seen:?}");
    assert!(
        seen.iter().any(|(length, written)| *length == 12_288 && (1..8192).contains(written)),
        "the length without bytes"
    );
}

#[test]
fn an_overwrite_may_be_torn_between_sectors() {
    let program = || async {
        let file = writable("/f");
        file.write_at(&[1; 1024], 0).unwrap();
        file.sync_data().await.unwrap();
        sync_dir("/").await.unwrap();
        file.write_at(&[2; 1024], 0).unwrap();
    };
    let seen = outcomes(program, |node| {
        let bytes = disk::read_file(node, "/f").unwrap();
        assert_eq!(bytes.len(), 1024);
        (bytes[0], bytes[512])
    });
    assert_eq!(seen, BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
}

#[test]
fn a_synced_file_without_a_synced_name_may_be_lost() {
    let program = || async {
        let file = writable("/f");
        file.write_at(b"x", 0).unwrap();
        file.sync_data().await.unwrap();
    };
    let seen = outcomes(program, |node| disk::read_file(node, "/f").is_ok());
    assert_eq!(seen, BTreeSet::from([false, true]));
}

#[test]
fn a_rename_is_old_or_new() {
    let program = || async {
        let (old, new) = (writable("/f"), writable("/f.tmp"));
        old.write_at(b"old", 0).unwrap();
        new.write_at(b"new", 0).unwrap();
        old.sync_data().await.unwrap();
        new.sync_data().await.unwrap();
        sync_dir("/").await.unwrap();
        rename("/f.tmp", "/f").unwrap();
    };
    let seen = outcomes(program, |node| {
        let text = String::from_utf8(disk::read_file(node, "/f").unwrap()).unwrap();
        (text, disk::read_file(node, "/f.tmp").is_ok())
    });
    assert_eq!(seen, BTreeSet::from([("old".to_owned(), true), ("new".to_owned(), false)]));
}

#[test]
fn a_move_between_directories_is_here_or_there() {
    let program = || async {
        create_dir("/a").unwrap();
        create_dir("/b").unwrap();
        drop(writable("/a/f"));
        sync_dir("/a").await.unwrap();
        sync_dir("/").await.unwrap();
        drop(writable("/b/another"));
        rename("/a/f", "/b/f").unwrap();
        drop(writable("/a/another"));
    };
    let seen = outcomes(program, |node| {
        let there = |path| disk::read_file(node, path).is_ok();
        (there("/a/f"), there("/b/f"))
    });
    assert_eq!(seen, BTreeSet::from([(true, false), (false, true)]));
}

#[test]
fn names_of_a_directory_come_in_their_order() {
    let program = || async {
        create_dir("/d").unwrap();
        sync_dir("/").await.unwrap();
        for name in ["0", "1", "2"] {
            drop(writable(&format!("/d/{name}")));
        }
    };
    let seen = outcomes(program, |node| disk::list(node, "/d").unwrap().len());
    assert_eq!(seen, BTreeSet::from([0, 1, 2, 3]));
    let names = outcomes(program, |node| disk::list(node, "/d").unwrap());
    assert_eq!(names.len(), 4, "a prefix, not a subset");
}

#[test]
fn a_directory_whose_name_was_not_synced_is_lost_with_all_in_it() {
    let program = || async {
        create_dir("/d").unwrap();
        let file = writable("/d/f");
        file.write_at(b"x", 0).unwrap();
        file.sync_data().await.unwrap();
        sync_dir("/d").await.unwrap();
    };
    let seen = outcomes(program, |node| disk::read_file(node, "/d/f").ok());
    assert_eq!(seen, BTreeSet::from([None, Some(b"x".to_vec())]));
}

#[test]
fn a_removed_name_may_come_back_until_the_directory_is_synced() {
    let program = || async {
        let file = writable("/f");
        file.write_at(b"x", 0).unwrap();
        file.sync_data().await.unwrap();
        sync_dir("/").await.unwrap();
        rt::fs::remove_file("/f").unwrap();
    };
    assert_eq!(outcomes(program, |node| disk::read_file(node, "/f").is_ok()), BTreeSet::from([false, true]));
    let synced = || async {
        drop(writable("/f"));
        sync_dir("/").await.unwrap();
        rt::fs::remove_file("/f").unwrap();
        sync_dir("/").await.unwrap();
    };
    assert_eq!(outcomes(synced, |node| disk::read_file(node, "/f").is_ok()), BTreeSet::from([false]));
}

#[test]
fn a_sync_covers_what_was_written_before_it_began_only() {
    let program = || async {
        let file = writable("/f");
        sync_dir("/").await.unwrap();
        file.write_at(&[1; 512], 0).unwrap();
        let other = file.clone();
        let syncing = rt::task::spawn(async move { other.sync_data().await });
        sleep(Duration::from_micros(10)).await;
        file.write_at(&[2; 512], 512).unwrap();
        syncing.await.unwrap().unwrap();
    };
    let seen = outcomes(program, |node| {
        let bytes = disk::read_file(node, "/f").unwrap();
        assert_eq!(bytes[0], 1);
        bytes.get(512).copied()
    });
    assert!(seen.contains(&None) && seen.contains(&Some(2)), "{seen:?}");
}

#[test]
fn a_failed_sync_tells_it_and_drops_what_was_dirty() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        disk::inject(node, fault(DiskOperation::Sync, DiskChance::Nth(2)));
        on(node, async {
            let file = writable("/f");
            file.write_at(&[1; 512], 0).unwrap();
            file.sync_data().await.unwrap();
            file.write_at(&[2; 512], 0).unwrap();
            let error = file.sync_data().await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(5));
            assert_eq!(read("/f").await.unwrap(), [1; 512], "the kernel has dropped the page");
            file.sync_data().await.unwrap();
        })
        .await;
        let effects = disk::effects(node);
        assert_eq!((effects.errors_injected, effects.syncs_failed, effects.sectors_dropped), (1, 1, 1));
        disk::check_invariants(node);
    });
}

#[test]
fn pages_that_a_failed_sync_leaves_readable_are_gone_after_a_power_loss() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        on(node, async {
            let file = writable("/f");
            file.write_at(&[1; 512], 0).unwrap();
            file.sync_data().await.unwrap();
            sync_dir("/").await.unwrap();
        })
        .await;
        disk::inject(
            node,
            DiskFault { error: DiskError::IoPagesStay, ..fault(DiskOperation::Sync, DiskChance::Nth(1)) },
        );
        on(node, async {
            let file = writable("/f");
            file.write_at(&[2; 512], 0).unwrap();
            assert_eq!(file.sync_data().await.unwrap_err().raw_os_error(), Some(5));
            file.sync_data().await.unwrap();
            assert_eq!(read("/f").await.unwrap(), [2; 512], "the kernel takes the page for written");
        })
        .await;
        world::power_loss(node);
        assert_eq!(disk::read_file(node, "/f").unwrap(), [1; 512]);
        disk::check_invariants(node);
    });
}

#[test]
fn a_full_disk_says_so_and_writes_what_fits() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        disk::set_capacity(node, 3 * 4096);
        on(node, async {
            let file = writable("/f");
            file.write_at(&[1; 4096], 0).unwrap();
            assert_eq!(free_bytes("/").unwrap(), (2 * 4096, 3 * 4096));
            assert_eq!(file.write_at(&[2; 4 * 4096], 4096).unwrap_err().kind(), ErrorKind::StorageFull);
            assert_eq!(file.len().unwrap(), 3 * 4096);
            file.write_at(&[3; 4096], 0).unwrap();
            file.set_len(4096).unwrap();
            file.write_at(&[4; 4096], 4096).unwrap();
        })
        .await;
        assert_eq!(disk::effects(node).full, 1);
        disk::heal(node);
        on(node, async { writable("/g").write_at(&[1; 1 << 20], 0).unwrap() }).await;
        disk::check_invariants(node);
    });
}

#[test]
fn errors_strike_where_they_are_aimed() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let aimed = DiskFault { path_contains: Some("log".into()), ..fault(DiskOperation::Read, DiskChance::Always) };
        let id = disk::inject(node, aimed);
        let open =
            disk::inject(node, DiskFault { error: DiskError::Full, ..fault(DiskOperation::Open, DiskChance::Nth(4)) });
        let played = on(node, async {
            let (log, index) = (writable("/log"), writable("/index"));
            assert_eq!(log.read_at(&mut [0; 1], 0).await.unwrap_err().raw_os_error(), Some(5));
            assert_eq!(index.read_at(&mut [0; 1], 0).await.unwrap(), 0);
            File::open("/log").unwrap();
            File::open("/log").unwrap_err().kind()
        });
        assert_eq!(played.await, ErrorKind::StorageFull);
        disk::remove(node, id);
        disk::remove(node, open);
        assert!(on(node, read("/log")).await.unwrap().is_empty());
        assert_eq!(disk::effects(node).errors_injected, 2);
    });
}

#[test]
fn syncs_and_cold_reads_take_time_and_page_cache_reads_none() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        on(node, async {
            let file = writable("/f");
            file.write_at(&[1; 4096], 0).unwrap();
            let start = world::elapsed();
            file.read_exact_at(&mut [0; 4096], 0).await.unwrap();
            assert_eq!(world::elapsed(), start);
            file.sync_data().await.unwrap();
            let took = world::elapsed() - start;
            assert!((Duration::from_micros(50)..=Duration::from_micros(500)).contains(&took), "{took:?}");
            sync_dir("/").await.unwrap();
        })
        .await;
        world::power_loss(node);
        on(node, async {
            let start = world::elapsed();
            read("/f").await.unwrap();
            assert!(world::elapsed() > start, "from the device");
            let warm = world::elapsed();
            read("/f").await.unwrap();
            assert_eq!(world::elapsed(), warm);
        })
        .await;
        disk::slow_sync(node, Some(DiskLatency { min_ns: 2_000_000_000, max_ns: 2_000_000_000 }));
        let start = world::elapsed();
        on(node, sync_dir("/")).await.unwrap();
        assert_eq!(world::elapsed() - start, S * 2);
        assert_eq!(disk::effects(node).slowed, 1);
    });
}

#[test]
fn a_stalled_disk_ends_nothing_until_it_heals() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        disk::stall(node);
        let program = world::spawn_on(node, async {
            let file = writable("/f");
            file.write_at(b"x", 0).unwrap();
            assert!(timeout(S * 100, file.sync_data()).await.is_err());
            file.sync_data().await.unwrap();
        });
        sleep(S * 200).await;
        assert!(!program.is_finished());
        assert!(disk::effects(node).stalled > 0);
        disk::unstall(node);
        timeout(S, program).await.unwrap().unwrap();
    });
}

#[test]
fn writes_of_a_dying_process_are_void() {
    struct LastWill(File);
    impl Drop for LastWill {
        fn drop(&mut self) {
            assert!(self.0.write_at(b"too late", 0).is_err());
            assert!(OpenOptions::new().write(true).create(true).open("/late").is_err());
            assert!(rename("/f", "/g").is_err());
        }
    }
    world::run_test(|| async {
        let node = world::add_node("broker");
        world::spawn_on(node, async {
            let file = writable("/f");
            file.write_at(b"in time!", 0).unwrap();
            let _will = LastWill(file);
            std::future::pending::<()>().await;
        });
        sleep(S).await;
        world::crash(node);
        assert_eq!(disk::read_file(node, "/f").unwrap(), b"in time!");
        assert_eq!(disk::list(node, "/").unwrap().len(), 1);
        assert_eq!(disk::effects(node).void, 3);
    });
}

#[test]
fn locks_end_with_the_process() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let hold = || async {
            let file = writable("/lock");
            file.try_lock().unwrap();
            std::future::pending::<()>().await;
        };
        world::spawn_on(node, hold());
        sleep(S).await;
        let second = on(node, async { writable("/lock").try_lock().unwrap_err().kind() });
        assert_eq!(second.await, ErrorKind::WouldBlock);
        world::crash(node);
        world::spawn_on(node, hold());
        sleep(S).await;
    });
}

#[test]
fn the_operation_at_a_crash_point_has_no_effect() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        world::crash_at(node, CrashPoint::DiskOperation(3), CrashKind::Process);
        let program = world::spawn_on(node, async {
            let file = writable("/f");
            for at in 0..4 {
                file.write_at(&[7], at).unwrap_or(());
                sleep(Duration::from_micros(1)).await;
            }
        });
        assert!(program.await.unwrap_err().is_cancelled());
        assert_eq!(disk::read_file(node, "/f").unwrap(), [7]);
    });
}

#[test]
fn the_experimenter_reads_damages_and_wipes() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        on(node, async {
            create_dir("/d").unwrap();
            writable("/d/f").write_at(b"abc", 0).unwrap();
        })
        .await;
        assert!(disk::is_dirty(node, "/d/f").unwrap());
        assert_eq!(disk::list(node, "/d").unwrap(), ["/d/f".into()] as [std::path::PathBuf; 1]);
        assert!(disk::list_durable(node, "/").unwrap().is_empty());
        disk::write_file(node, "/d/f", b"aXc").unwrap();
        assert!(!disk::is_dirty(node, "/d/f").unwrap());
        disk::write_file(node, "/planted/deep/g", b"g").unwrap();
        assert_eq!(disk::read_durable(node, "/planted/deep/g").unwrap(), b"g");
        assert_eq!(on(node, read("/d/f")).await.unwrap(), b"aXc");
        disk::check_invariants(node);
        world::power_loss(node);
        disk::wipe(node);
        assert_eq!(on(node, async { metadata("/d").unwrap_err().kind() }).await, ErrorKind::NotFound);
    });
}

fn accept(bytes: &[u8]) -> io::Result<String> {
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| ErrorKind::InvalidData)?;
    if text.starts_with('{') && text.ends_with('}') { Ok(text) } else { Err(ErrorKind::InvalidData.into()) }
}

/// `rt::fs::replace` is swept: a crash of either kind at each of its disk operations leaves the old or the new content.
#[test]
fn replace_survives_a_crash_at_each_of_its_operations() {
    let (mut seen, mut points) = (BTreeSet::new(), 0);
    for kind in [CrashKind::Process, CrashKind::Power] {
        for point in 1..20 {
            for seed in 0..20 {
                let (text, crashed) = world::run_test_with(seeded(seed), move || async move {
                    let node = world::add_node("broker");
                    on(node, async {
                        create_dir("/config").unwrap();
                        sync_dir("/").await.unwrap();
                        replace("/config/topics.json", b"{older}").await.unwrap();
                        replace("/config/topics.json", b"{old}").await.unwrap();
                    })
                    .await;
                    world::crash_at(node, CrashPoint::DiskOperation(point), kind);
                    let crashed = world::spawn_on(node, replace("/config/topics.json", b"{new}")).await.is_err();
                    // Forgets a point that was not reached.
                    world::crash(node);
                    let text =
                        on(node, async { read_or_backup("/config/topics.json", accept).await.unwrap().unwrap() }).await;
                    (text, crashed)
                });
                assert!(crashed || text == "{new}", "an acknowledged content is there");
                assert_ne!(text, "{older}");
                seen.insert(text);
                points += u32::from(crashed);
            }
        }
    }
    assert_eq!(seen, BTreeSet::from(["{old}".to_owned(), "{new}".to_owned()]));
    assert!(points >= 200, "{points} crashes");
}

#[test]
fn a_run_may_start_with_faults_and_a_small_disk() {
    let disk = DiskConfig {
        capacity_bytes: 8192,
        faults: vec![fault(DiskOperation::Name, DiskChance::Always)],
        ..DiskConfig::default()
    };
    world::run_test_with(WorldConfig { disk, ..WorldConfig::default() }, || async {
        let node = world::add_node("broker");
        let error = on(node, async { create_dir("/d").unwrap_err().raw_os_error() }).await;
        assert_eq!(error, Some(5));
    });
}
