//! The store against the plainest program that does the same work on the same disk, in one run:
//!
//! ```text
//! cargo prod bench -p store --bench speed              # a few GB of disk, some minutes
//! cargo prod bench -p store --bench speed -- append    # one of: append, group_commit, recovery, queues
//! ```
//!
//! Rounds take turns and the best of each is compared: a busy machine slows all of them. Each ratio stands beside the figure that it is
//! meant to reach.
#![expect(clippy::print_stdout, reason = "a benchmark's output is what it prints")]
#![cfg_attr(not(madsim), expect(clippy::unwrap_used, reason = "a load that fails ends the benchmark"))]
#![cfg_attr(
    not(madsim),
    expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the plain programs, and the clock of both")
)]

#[cfg(madsim)]
fn main() {
    println!("this benchmark measures a real disk: run `cargo prod bench -p store --bench speed`");
}

#[cfg(not(madsim))]
fn main() {
    real::main();
}

#[cfg(not(madsim))]
mod real {
    use bytes::Bytes;
    use rt::sync::CancellationToken;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use store::{FlushMode, NewMessage, Store, StoreConfig, UnrecoveredStore};

    const ROUNDS: u32 = 3;
    const BODY: [u8; 1024] = [b'x'; 1024];
    const APPENDS: u64 = 400_000;
    const SYNCS: u64 = 200;
    const WRITERS: u64 = 64;
    const RECOVERED_BYTES: i64 = 4 << 30;
    const QUEUES: i32 = 10_000;
    const TIME: Duration = Duration::from_secs(60);

    pub fn main() {
        let folder = tempfile::tempdir_in(target_folder()).unwrap();
        println!("{:<58} {:>10}  meant to be", "", "measured");
        rt::block_on(async {
            if is_asked("append") {
                append(folder.path()).await;
            }
            if is_asked("group_commit") {
                group_commit(folder.path()).await;
            }
            if is_asked("recovery") {
                recovery(folder.path()).await;
            }
            if is_asked("queues") {
                queues(folder.path()).await;
            }
        })
        .unwrap();
    }

    /// All parts if none is named.
    fn is_asked(part: &str) -> bool {
        let mut named = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).peekable();
        named.peek().is_none() || named.any(|name| name == part)
    }

    /// Not `/tmp`, which may be memory.
    fn target_folder() -> PathBuf {
        std::env::current_exe().unwrap().parent().unwrap().to_owned()
    }

    fn row(what: &str, measured: impl std::fmt::Display, meant: &str) {
        println!("{what:<58} {measured:>10}  {meant}");
    }

    async fn started(root: &Path, flush_mode: FlushMode) -> Arc<Store> {
        let config = StoreConfig { flush_mode, index: None, ..StoreConfig::new(root) };
        let store = UnrecoveredStore::open(config).await.unwrap().recover().await.unwrap();
        store.start(&CancellationToken::new());
        store
    }

    fn message(queue_id: i32) -> NewMessage {
        NewMessage {
            topic: "speed".to_owned(),
            queue_id,
            flag: 0,
            sys_flag: 0,
            born_timestamp: 1,
            born_host: "10.0.0.9:40000".parse().unwrap(),
            store_host: "10.0.0.1:10911".parse().unwrap(),
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            properties: String::new(),
            body: Bytes::from_static(&BODY),
        }
    }

    /// Bytes of a record of [`message`].
    fn record_bytes() -> usize {
        91 + "speed".len() + BODY.len()
    }

    /// Appends into the page cache, and the dispatcher beside them; against writes of as many bytes to one file.
    async fn append(folder: &Path) {
        let (mut ours, mut plain, mut behind) = (Duration::MAX, Duration::MAX, Duration::MAX);
        for round in 0..ROUNDS {
            let root = folder.join(format!("append-{round}"));
            let store = started(&root, FlushMode::Async).await;
            let begin = Instant::now();
            let appending = Arc::clone(&store);
            // On a thread of its own, as the processors of a broker's requests are.
            let append = rt::task::spawn(async move {
                let message = message(0);
                for n in 0..APPENDS {
                    let queue_id = i32::try_from(n % 8).unwrap();
                    appending.append(NewMessage { queue_id, ..message.clone() }).unwrap();
                    if n % 256 == 0 {
                        rt::task::yield_now().await;
                    }
                }
            });
            append.await.unwrap();
            ours = ours.min(begin.elapsed());
            let caught_up = Instant::now();
            while store.dispatch_behind_bytes() > 0 {
                rt::time::sleep(Duration::from_millis(1)).await;
            }
            behind = behind.min(caught_up.elapsed());
            store.shutdown().await.unwrap();
            drop(store);
            std::fs::remove_dir_all(&root).unwrap();
            plain = plain.min(plain_writes(&folder.join("plain")));
        }
        let ratio = plain.as_secs_f64() / ours.as_secs_f64() * 100.0;
        row("1 KB asynchronous append, of the rate of plain writes", format!("{ratio:.0} %"), "at least 70 %");
        let lag = behind.as_secs_f64() / ours.as_secs_f64() * 100.0;
        row("dispatch behind the last append, of the time of appends", format!("{lag:.1} %"), "small: it keeps up");
    }

    fn plain_writes(path: &Path) -> Duration {
        use std::io::Write;
        let record = vec![b'x'; record_bytes()];
        let mut file = std::fs::File::create(path).unwrap();
        let begin = Instant::now();
        for _ in 0..APPENDS {
            file.write_all(&record).unwrap();
        }
        let took = begin.elapsed();
        drop(file);
        std::fs::remove_file(path).unwrap();
        took
    }

    /// Writers that each wait until their message is on disk; against a program that syncs each message before the next.
    async fn group_commit(folder: &Path) {
        let (mut ours, mut plain) = (Duration::MAX, Duration::MAX);
        for round in 0..ROUNDS {
            let root = folder.join(format!("sync-{round}"));
            let store = started(&root, FlushMode::Sync).await;
            let begin = Instant::now();
            let writers = (0..WRITERS).map(|writer| {
                let store = Arc::clone(&store);
                rt::task::spawn(async move {
                    for _ in 0..SYNCS {
                        let appended = store.append(message(i32::try_from(writer % 8).unwrap())).unwrap();
                        store.flushed(appended.end, TIME).await.unwrap();
                    }
                })
            });
            for writer in writers.collect::<Vec<_>>() {
                writer.await.unwrap();
            }
            ours = ours.min(begin.elapsed());
            store.shutdown().await.unwrap();
            drop(store);
            std::fs::remove_dir_all(&root).unwrap();
            plain = plain.min(plain_syncs(&folder.join("plain")));
        }
        let times = plain.as_secs_f64() * WRITERS as f64 / ours.as_secs_f64();
        row(
            "synchronous group commit of 64 writers, messages a second",
            format!("{times:.1} ×"),
            "at least 20 × one sync each",
        );
    }

    fn plain_syncs(path: &Path) -> Duration {
        use std::io::Write;
        let record = vec![b'x'; record_bytes()];
        let mut file = std::fs::File::create(path).unwrap();
        // Its length does not change, as that of a segment does not.
        file.set_len(SYNCS * record.len() as u64).unwrap();
        let begin = Instant::now();
        for _ in 0..SYNCS {
            file.write_all(&record).unwrap();
            file.sync_data().unwrap();
        }
        let took = begin.elapsed();
        drop(file);
        std::fs::remove_file(path).unwrap();
        took
    }

    /// A store of four segments that was not stopped in order.
    async fn recovery(folder: &Path) {
        let root = folder.join("recovery");
        let store = started(&root, FlushMode::Async).await;
        let body = Bytes::from(vec![b'x'; 64 << 10]);
        while store.log_end().0 < RECOVERED_BYTES {
            store.append(NewMessage { body: body.clone(), ..message(0) }).unwrap();
            if store.dispatch_behind_bytes() > 64 << 20 {
                rt::time::sleep(Duration::from_millis(5)).await;
            }
        }
        while store.dispatch_behind_bytes() > 0 || store.flushed_end() < store.log_end() {
            rt::time::sleep(Duration::from_millis(50)).await;
        }
        // The checkpoint follows the queues, which are synced every minute.
        rt::time::sleep(Duration::from_secs(65)).await;
        std::fs::copy(root.join("checkpoint"), root.join("checkpoint-then")).unwrap();
        store.shutdown().await.unwrap();
        drop(store);
        // As after a crash: what the orderly end has written is taken back.
        std::fs::rename(root.join("checkpoint-then"), root.join("checkpoint")).unwrap();
        std::fs::write(root.join("abort"), "1").unwrap();
        let begin = Instant::now();
        let config = StoreConfig { index: None, ..StoreConfig::new(&root) };
        let store = UnrecoveredStore::open(config).await.unwrap().recover().await.unwrap();
        let took = begin.elapsed().as_secs_f64();
        let records = store.recovery_report().scanned_records;
        row(
            &format!("recovery of 4 GiB after a crash ({records} records walked)"),
            format!("{took:.2} s"),
            "under 3 s",
        );
        drop(store);
        std::fs::remove_dir_all(&root).unwrap();
    }

    async fn queues(folder: &Path) {
        let root = folder.join("queues");
        let store = started(&root, FlushMode::Async).await;
        for queue_id in 0..QUEUES {
            store.append(message(queue_id)).unwrap();
        }
        while store.dispatch_behind_bytes() > 0 {
            rt::time::sleep(Duration::from_millis(5)).await;
        }
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
        row("open files with 10,000 queues", open, "far below 10,000");
        store.shutdown().await.unwrap();
        drop(store);
        let begin = Instant::now();
        let found = store::inspect(&root, None, None, |_, _| {}).await.unwrap();
        assert!(found.is_sound() && found.entries == u64::try_from(QUEUES).unwrap(), "{:?}", found.damage);
        let took = begin.elapsed().as_secs_f64();
        row(
            "a look through all of them (hotfire store check)",
            format!("{took:.1} s"),
            "bound by the bytes of the files",
        );
        std::fs::remove_dir_all(&root).unwrap();
    }
}
