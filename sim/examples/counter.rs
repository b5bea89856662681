//! The smallest complete use of `sim`: a counter on one machine, a client on another, and one claim.
//!
//!     cargo run -p sim --example counter -- fuzz --for 10s
//!     cargo run -p sim --example counter -- run counter_never_goes_back --seed 7 --plan
//!
//! `Counter { synced: false }` is the same program without its sync: a planted bug that the campaign finds within some seeds.

#[cfg(madsim)]
/// The system, its scenario, and the registry.
pub mod simulated {
    use proptest::prelude::{Strategy, any};
    use proptest::strategy::BoxedStrategy;
    use rt::io::{AsyncReadExt, AsyncWriteExt};
    use rt::net::{TcpListener, TcpStream};
    use rt::time::timeout;
    use rt::world::{NodeId, WorldConfig};
    use serde::{Deserialize, Serialize};
    use sim::checker::monotonic::{self, Reading};
    use sim::checker::recovery::{self, Attempt};
    use sim::desk::Desk;
    use sim::fault::{Fault, swarm::Swarm};
    use sim::history::{History, Outcome, Recorder};
    use sim::nemesis::Nemesis;
    use sim::report::Report;
    use sim::scenario::{Registry, Scenario};
    use sim::verdict::Violation;
    use std::convert::Infallible;
    use std::io;
    use std::net::SocketAddr;
    use std::time::Duration;

    /// Everything that a run depends on.
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Plan {
        schedule_seed: u64,
        requests: u32,
        faults: Vec<Fault>,
    }

    /// The system under test: each request adds one and is told the sum, which must survive.
    pub struct Counter {
        /// Whether the sum is synced before it is told; without, it is a planted bug.
        pub synced: bool,
    }

    async fn serve(synced: bool) -> io::Result<Infallible> {
        let file = rt::fs::OpenOptions::new().write(true).create(true).open("/sum")?;
        rt::fs::sync_dir("/").await?;
        let mut sum = rt::fs::read("/sum").await?.try_into().map_or(0, u64::from_le_bytes);
        let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 80))).await?;
        loop {
            let (mut stream, client) = listener.accept().await?;
            tracing::debug!(%client, "accepted");
            // A client may be gone without a word (its reset got lost): without this time-out, nobody else is ever served.
            while let Ok(Ok(_)) = timeout(Duration::from_secs(1), stream.read_u8()).await {
                sum += 1;
                file.write_at(&sum.to_le_bytes(), 0)?;
                if synced {
                    file.sync_data().await?;
                }
                if stream.write_u64(sum).await.is_err() {
                    break;
                }
            }
        }
    }

    async fn add(server: SocketAddr) -> io::Result<u64> {
        let mut stream = TcpStream::connect(server).await?;
        stream.write_u8(1).await?;
        stream.read_u64().await
    }

    async fn workload(desk: Desk, recorder: Recorder<&'static str, u64>, plan: Plan, synced: bool) -> Duration {
        let server = rt::world::add_node("server");
        let client = rt::world::add_node("client");
        let address = SocketAddr::new(rt::world::ip(server), 80);
        let notes = recorder.clone();
        let boot = move || {
            let notes = notes.clone();
            drop(rt::world::spawn_on(server, async move {
                let Err(error) = serve(synced).await;
                notes.node("server", &format!("ends: {error}"));
            }));
        };
        boot();
        let observer = recorder.clone();
        let nemesis = Nemesis::new(&desk, move |node, event| observer.node(node, event)).node("server", server, boot);
        let loose = nemesis.node("client", client, || {}).release(&plan.faults).expect("faults name these two nodes");
        ask(client, address, &recorder, plan.requests).await;
        loose.heal().await;
        let healed_at = rt::world::elapsed();
        ask(client, address, &recorder, 100).await;
        healed_at
    }

    async fn ask(client: NodeId, server: SocketAddr, recorder: &Recorder<&'static str, u64>, requests: u32) {
        let recorder = recorder.clone();
        let requests = async move {
            for _ in 0..requests {
                let pending = recorder.invoke("client", "add one");
                match timeout(Duration::from_secs(1), add(server)).await {
                    Ok(Ok(sum)) => pending.ok(sum),
                    Ok(Err(error)) => pending.unknown(error.to_string()),
                    Err(_) => pending.unknown("time-out"),
                }
                rt::time::sleep(Duration::from_millis(100)).await;
            }
        };
        rt::world::spawn_on(client, requests).await.expect("the client's node has no fault that ends it");
    }

    fn judge(history: &History<&'static str, u64>, healed_at: Duration) -> Vec<Violation> {
        let operations = history.operations();
        let ends = operations.iter().filter_map(|operation| match (operation.outcome, operation.ended) {
            (Outcome::Ok(sum), Some((event, _))) => Some(Reading { key: (), value: *sum, event }),
            _ => None,
        });
        let back = monotonic::check(ends).into_iter().map(|found| {
            let summary = format!("the sum was {} and then {}", found.high.0, found.low.0);
            Violation::new("the sum never goes back", summary).because(history.evidence([found.high.1, found.low.1]))
        });
        let attempts: Vec<Attempt> = operations
            .iter()
            .map(|operation| Attempt {
                invoked_at: operation.invoked_at,
                served_at: operation.ended.filter(|_| matches!(operation.outcome, Outcome::Ok(_))).map(|(_, at)| at),
                event: operation.invoked,
            })
            .collect();
        let late = recovery::check(healed_at, Duration::from_secs(8), &attempts).err();
        back.chain(
            late.map(|late| {
                Violation::new("it serves again", late.to_string()).because(history.evidence(late.events()))
            }),
        )
        .collect()
    }

    impl Scenario for Counter {
        type Plan = Plan;

        fn name(&self) -> &'static str {
            if self.synced { "counter_never_goes_back" } else { "counter_without_sync" }
        }

        fn claim(&self) -> &'static str {
            "a sum that a client was told is never followed by a lower one, whatever happens to the server"
        }

        fn strategy(&self) -> BoxedStrategy<Plan> {
            let swarm = Swarm {
                kinds: vec!["crash", "power_loss", "pause", "partition", "one_way", "latency", "loss"],
                victims: vec!["server".into()],
                network: vec!["server".into(), "client".into()],
                starts: Duration::ZERO..Duration::from_secs(8),
                lasts: Duration::from_millis(50)..Duration::from_secs(3),
                faults_max: 5,
            };
            let plan = |(schedule_seed, requests, faults)| Plan { schedule_seed, requests, faults };
            (any::<u64>(), 20..100_u32, swarm.strategy()).prop_map(plan).boxed()
        }

        fn run(&self, plan: &Plan) -> Report {
            let (desk, synced) = (Desk::new(), self.synced);
            let recorder = Recorder::new(desk.signals());
            let config = WorldConfig { seed: plan.schedule_seed, ..WorldConfig::default() };
            let plan = Plan { faults: plan.faults.clone(), ..*plan };
            let work = (desk.clone(), recorder.clone());
            let (healed_at, report) = desk.run(config, move || workload(work.0, work.1, plan, synced));
            let history = recorder.take();
            let violations = healed_at.map_or_else(Vec::new, |healed_at| judge(&history, healed_at));
            desk.judged(report, &history, violations)
        }
    }

    /// What the command line offers.
    pub fn registry() -> Registry {
        Registry::new("cargo run -p sim --example counter --").with(Counter { synced: true })
    }
}

#[cfg(madsim)]
fn main() -> std::process::ExitCode {
    sim::cli::main(&simulated::registry())
}

#[cfg(not(madsim))]
fn main() {}
