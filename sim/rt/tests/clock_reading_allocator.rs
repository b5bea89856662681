//! An allocator that reads the clock, as mimalloc and jemalloc do: it asks at any moment, whatever the world's code holds just then.
#![cfg(all(madsim, target_os = "linux"))]

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::world::{self, WorldConfig};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct ReadsTheClock;

// SAFETY: the system allocator does the work.
unsafe impl GlobalAlloc for ReadsTheClock {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        read_clock();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        read_clock();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: ReadsTheClock = ReadsTheClock;

fn read_clock() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
}

#[test]
fn a_world_runs_on_an_allocator_that_reads_the_clock() {
    let outcome = world::run(WorldConfig::default(), || async {
        let (server, client) = (world::add_node("server"), world::add_node("client"));
        let listener = world::spawn_on(server, async {
            let listener = TcpListener::bind("0.0.0.0:80".parse().unwrap()).await.unwrap();
            world::spawn_on(world::current_node(), async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = [0; 5];
                stream.read_exact(&mut text).await.unwrap();
                rt::fs::create_dir_durably("/data").await.unwrap();
                stream.write_all(&text).await.unwrap();
            });
        });
        listener.await.unwrap();
        let address = std::net::SocketAddr::new(world::ip(server), 80);
        let echo = world::spawn_on(client, async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            let mut text = [0; 5];
            stream.read_exact(&mut text).await.unwrap();
            text
        });
        assert_eq!(&echo.await.unwrap(), b"hello");
        world::crash(server);
    });
    assert_eq!(outcome.finding, None);
    assert!(outcome.stray_clock_reads > 10, "{}", outcome.stray_clock_reads);
    assert!(ALLOCATIONS.load(Ordering::Relaxed) >= outcome.stray_clock_reads);
}
