//! What the simulated world costs, in real nanoseconds: `cargo run --profile sim -p rt --example speed`.
#![expect(clippy::print_stdout, reason = "its output is a table")]

#[cfg(not(madsim))]
fn main() {
    println!("a measure of the simulated half: run it without `prod`");
}

#[cfg(madsim)]
fn main() {
    speed::table();
}

#[cfg(madsim)]
mod speed {
    use rt::io::{AsyncReadExt, AsyncWriteExt};
    use rt::net::{TcpListener, TcpStream};
    use rt::rand::{RngCore, stream};
    use rt::task::{spawn, yield_now};
    use rt::time::{Duration, Instant, sleep, timeout};
    use rt::world::{self, Limits, Outcome, Policy, WorldConfig};
    use std::hint::black_box;
    use std::net::SocketAddr;

    const ROUNDS: u64 = 1_000_000;

    pub(crate) fn table() {
        let fifo = || config(Policy::Fifo);
        let priority = || config(Policy::Priority { changes: 3, polls: ROUNDS });
        row("poll, 100 ready, fifo", fifo(), ROUNDS, polls);
        row("poll, 100 ready, random", config(Policy::Random), ROUNDS, polls);
        row("poll, 100 ready, priority", priority(), ROUNDS, polls);
        row("sleep, 64 tasks", fifo(), ROUNDS, sleeps);
        row("sleep, 1 task", fifo(), ROUNDS, lone_sleep);
        row("time-out ended early", fifo(), ROUNDS, timeouts);
        row("spawn and join", fifo(), ROUNDS, spawns);
        row("recorded draw", fifo(), ROUNDS, draws);
        row("recorded word", fifo(), ROUNDS, words);
        row("instant", fifo(), ROUNDS, instants);
        row("echo round trip, 64 pairs, 128 B", fifo(), ROUNDS / 4, echo);
        let begin = std::time::Instant::now();
        (0..10_000).for_each(|_| drop(world::run(fifo(), || async {})));
        println!("{:<36} {:>8.1} ns", "empty world", begin.elapsed().as_nanos() as f64 / 10_000.0);
    }

    fn config(policy: Policy) -> WorldConfig {
        let limits = Limits { polls_per_instant_max: u64::MAX, virtual_time_max: None };
        WorldConfig { policy, limits, ..WorldConfig::default() }
    }

    /// The best of five: the machine has other things to do.
    fn row<F: Future + 'static>(name: &str, config: WorldConfig, rounds: u64, main: fn() -> F) {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let config = config.clone();
            // Outside of any world the clock is the real one.
            let begin = std::time::Instant::now();
            let outcome: Outcome<F::Output> = world::run(config, main);
            assert!(outcome.finding.is_none(), "{:?}", outcome.finding);
            best = best.min(begin.elapsed().as_nanos() as f64 / rounds as f64);
        }
        println!("{name:<36} {best:>8.1} ns");
    }

    async fn join_all(tasks: impl Iterator<Item = rt::task::JoinHandle<()>>) {
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("nobody aborts it");
        }
    }

    async fn polls() {
        join_all((0..100).map(|_| {
            spawn(async {
                for _ in 0..ROUNDS / 100 {
                    yield_now().await
                }
            })
        }))
        .await;
    }

    async fn sleeps() {
        let sleeper = |n: u64| async move {
            for i in 0..ROUNDS / 64 {
                sleep(Duration::from_nanos(1_000 + (i * 7919 + n * 104_729) % 10_000_000)).await;
            }
        };
        join_all((0..64).map(|n| spawn(sleeper(n)))).await;
    }

    async fn lone_sleep() {
        for _ in 0..ROUNDS {
            sleep(Duration::from_micros(1)).await;
        }
    }

    async fn timeouts() {
        for _ in 0..ROUNDS {
            let mut first = true;
            let once = std::future::poll_fn(|cx| {
                if std::mem::take(&mut first) {
                    cx.waker().wake_by_ref();
                    return std::task::Poll::Pending;
                }
                std::task::Poll::Ready(())
            });
            timeout(Duration::from_secs(30), once).await.expect("it ends at once");
        }
    }

    async fn spawns() {
        for _ in 0..ROUNDS {
            spawn(async {}).await.expect("nobody aborts it");
        }
    }

    async fn draws() {
        let mut random = stream("speed");
        (0..ROUNDS).for_each(|_| _ = black_box(random.next_u64()));
    }

    async fn words() {
        (0..ROUNDS).for_each(world::record);
    }

    async fn instants() {
        (0..ROUNDS).for_each(|_| _ = black_box(Instant::now()));
    }

    async fn echo() {
        let server = world::add_node("server");
        let client = world::add_node("client");
        let address = SocketAddr::new(world::ip(server), 80);
        world::spawn_on(server, async move {
            let listener = TcpListener::bind(address).await.expect("the port is free");
            while let Ok((stream, _)) = listener.accept().await {
                spawn(serve(stream));
            }
        });
        sleep(Duration::from_millis(1)).await;
        join_all((0..64).map(|_| world::spawn_on(client, ask(address)))).await;
    }

    async fn serve(mut stream: TcpStream) {
        let mut message = [0; 128];
        while stream.read_exact(&mut message).await.is_ok() {
            stream.write_all(&message).await.expect("the client reads");
        }
    }

    async fn ask(address: SocketAddr) {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        let mut message = [7; 128];
        for _ in 0..ROUNDS / 4 / 64 {
            stream.write_all(&message).await.expect("the server reads");
            stream.read_exact(&mut message).await.expect("the server answers");
        }
    }
}
