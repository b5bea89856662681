//! Echo round trips through the simulated network, against bare madsim TCP and turmoil, in one run:
//!
//! ```text
//! cargo bench -p rt --profile sim --bench echo
//! ```
//!
//! 64 pairs of tasks on two nodes send 128 bytes there and back, one at a time, 1 ms each way. The three are run in turn, several
//! times, and the best of each is compared: a busy machine slows all of them.
#![expect(clippy::print_stdout, reason = "a benchmark's output is what it prints")]

#[cfg(not(madsim))]
fn main() {
    println!("this benchmark measures the simulated network: run `cargo bench -p rt --bench echo`, without `prod`");
}

#[cfg(madsim)]
fn main() {
    simulated::main();
}

#[cfg(madsim)]
mod simulated {
    use rt::io::{AsyncReadExt, AsyncWriteExt};
    use rt::world::{self, Latency, WorldConfig};
    use std::net::SocketAddr;
    use std::time::{Duration, Instant};

    const PAIRS: u32 = 64;
    const TRIPS: u32 = 2000;
    const ROUNDS: u32 = 5;
    const MESSAGE: [u8; 128] = [7; 128];

    type Echo = (&'static str, fn());

    pub fn main() {
        let all: [Echo; 3] = [("rt", rt_echo), ("madsim", madsim_echo), ("turmoil", turmoil_echo)];
        let mut best = [Duration::MAX; 3];
        for _ in 0..ROUNDS {
            for (best, (_, echo)) in best.iter_mut().zip(all) {
                *best = (*best).min(timed(echo));
            }
        }
        let nanos = |at: usize| best[at].as_nanos() as f64 / f64::from(PAIRS * TRIPS);
        println!("echo round trips of 128 bytes, {PAIRS} pairs, best of {ROUNDS} rounds of {}:", PAIRS * TRIPS);
        for (at, (name, _)) in all.iter().enumerate() {
            println!("  {name:8} {:>6.0} ns  {:>5.2} x rt", nanos(at), nanos(at) / nanos(0));
        }
    }

    /// On a thread of its own, so that none finds thread-locals of another.
    fn timed(echo: fn()) -> Duration {
        let start = Instant::now();
        std::thread::spawn(echo).join().expect("the echo ends");
        start.elapsed()
    }

    fn rt_echo() {
        let mut config = WorldConfig::default();
        config.network.latency = Latency::uniform(1_000_000, 1_000_000);
        config.network.split_one_in = 0;
        world::run_test_with(config, || async {
            let (server, client) = (world::add_node("server"), world::add_node("client"));
            let address = SocketAddr::new(world::ip(server), 80);
            world::spawn_on(server, async move {
                let listener = rt::net::TcpListener::bind(address).await.expect("the port is free");
                while let Ok((mut stream, _)) = listener.accept().await {
                    rt::task::spawn(async move {
                        let mut buffer = [0; 4096];
                        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                            stream.write_all(&buffer[..length]).await.expect("the client reads");
                        }
                    });
                }
            });
            rt::time::sleep(Duration::from_millis(1)).await;
            let pair = |_| {
                world::spawn_on(client, async move {
                    let mut stream = rt::net::TcpStream::connect(address).await.expect("the server listens");
                    let mut buffer = MESSAGE;
                    for _ in 0..TRIPS {
                        stream.write_all(&MESSAGE).await.expect("the server reads");
                        stream.read_exact(&mut buffer).await.expect("the server answers");
                    }
                })
            };
            let pairs: Vec<_> = (0..PAIRS).map(pair).collect();
            for pair in pairs {
                pair.await.expect("the pair ends");
            }
        });
    }

    fn madsim_echo() {
        let mut config = madsim::Config::default();
        config.net.send_latency = Duration::from_millis(1)..Duration::from_micros(1001);
        let runtime = madsim::runtime::Runtime::with_seed_and_config(1, config);
        let server = runtime.create_node().ip([10, 0, 0, 2].into()).build();
        let client = runtime.create_node().ip([10, 0, 0, 1].into()).build();
        server.spawn(async {
            let listener = madsim::net::TcpListener::bind("0.0.0.0:80").await.expect("the port is free");
            while let Ok((mut stream, _)) = listener.accept().await {
                madsim::task::spawn(async move {
                    let mut buffer = [0; 4096];
                    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                        stream.write_all(&buffer[..length]).await.expect("the client reads");
                        stream.flush().await.expect("the client reads");
                    }
                });
            }
        });
        let pairs = client.spawn(async {
            madsim::time::sleep(Duration::from_millis(100)).await;
            let pair = |_| {
                madsim::task::spawn(async {
                    let mut stream = madsim::net::TcpStream::connect("10.0.0.2:80").await.expect("the server listens");
                    let mut buffer = MESSAGE;
                    for _ in 0..TRIPS {
                        stream.write_all(&MESSAGE).await.expect("the server reads");
                        stream.flush().await.expect("the server reads");
                        stream.read_exact(&mut buffer).await.expect("the server answers");
                    }
                })
            };
            let pairs: Vec<_> = (0..PAIRS).map(pair).collect();
            for pair in pairs {
                pair.await.expect("the pair ends");
            }
        });
        runtime.block_on(pairs).expect("the pairs end");
    }

    fn turmoil_echo() {
        let mut sim = turmoil::Builder::new()
            .tick_duration(Duration::from_millis(1))
            .simulation_duration(Duration::from_secs(3600))
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(Duration::from_millis(1))
            .tcp_capacity(1024)
            .rng_seed(1)
            .build();
        sim.host("server", || async {
            let listener = turmoil::net::TcpListener::bind("0.0.0.0:80").await?;
            loop {
                let (mut stream, _) = listener.accept().await?;
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                        stream.write_all(&buffer[..length]).await.expect("the client reads");
                    }
                });
            }
        });
        sim.client("client", async {
            let pair = |_| {
                tokio::spawn(async {
                    let mut stream = turmoil::net::TcpStream::connect("server:80").await.expect("the server listens");
                    let mut buffer = MESSAGE;
                    for _ in 0..TRIPS {
                        stream.write_all(&MESSAGE).await.expect("the server reads");
                        stream.read_exact(&mut buffer).await.expect("the server answers");
                    }
                })
            };
            let pairs: Vec<_> = (0..PAIRS).map(pair).collect();
            for pair in pairs {
                pair.await?;
            }
            Ok(())
        });
        sim.run().expect("turmoil ends");
    }
}
