//! Every kind of fault, one after the other, on a small system that has something to lose to each.

use crate::{STAND, disk_faults, network_faults};
use proptest::prelude::any;
use proptest::strategy::{BoxedStrategy, Strategy};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::world::WorldConfig;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sim::atlas::{Area, Atlas};
use sim::desk::Desk;
use sim::fault::{Fault, Kind};
use sim::history::Recorder;
use sim::nemesis::Nemesis;
use sim::report::Report;
use sim::scenario::Scenario;
use sim::worker::process::Process;
use sim::worker::{Limits, Task};
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::Duration;

/// The schedule is fixed, the interleaving is not.
pub struct EveryFault;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    schedule_seed: u64,
    faults: Vec<Fault>,
}

/// Each kind, ten seconds apart, for five seconds each.
fn schedule() -> Vec<Fault> {
    let kinds: [Value; 24] = [
        json!({"crash": {"node": "server"}}),
        json!({"power_loss": {"node": "server"}}),
        json!({"stop": {"node": "server", "grace": "1s"}}),
        json!({"crash_point": {"node": "server", "at": "disk_operation", "nth": 7, "power": true}}),
        json!({"pause": {"node": "server"}}),
        json!({"slow_cpu": {"node": "server", "poll": "2ms"}}),
        json!({"partition": {"left": ["server"], "right": ["client"]}}),
        json!({"one_way": {"from": "server", "to": "client"}}),
        json!({"isolate": {"node": "client"}}),
        json!({"loss": {"left": "server", "right": "client", "percent": 40}}),
        json!({"latency": {"left": "client", "right": "server", "min": "5ms", "max": "50ms"}}),
        json!({"disk_full": {"node": "server"}}),
        json!({"disk_error": {"node": "server", "operation": "sync"}}),
        json!({"slow_disk": {"node": "server", "min": "10ms", "max": "100ms"}}),
        json!({"stalled_disk": {"node": "server"}}),
        json!({"clock_step": {"node": "server", "by": "1h", "back": true}}),
        json!({"clock_drift": {"node": "client", "ppm": -20_000}}),
        json!({"clock_freeze": {"node": "server"}}),
        json!({"suspend": {"node": "server"}}),
        json!({"out_of_memory": {"node": "server", "survives": "1s"}}),
        json!({"wiped_disk": {"node": "server"}}),
        json!({"cloned_disk": {"node": "standby", "from": "server"}}),
        json!({"rolling_restart": {"nodes": ["server", "standby"], "grace": "1s"}}),
        json!({"reconfigure": {"node": "server", "configuration": "hasty", "by": {"stop": {"grace": "1s"}}}}),
    ];
    let fault = |(index, kind): (usize, Value)| {
        let start = if index == 1 {
            json!({"after": {"event": "server crash begins", "nth": 1, "then": "10s"}})
        } else {
            json!({"at": format!("{}s", 2 + 10 * index)})
        };
        serde_json::from_value(json!({"fault": kind, "start": start, "lasts": "5s"}))
            .expect("each is written as in a case file")
    };
    kinds.into_iter().enumerate().map(fault).collect()
}

/// Writes what it is told and answers; ends when it is asked to. It waits that long for a word.
async fn serve(patience: Duration) -> io::Result<()> {
    let file = rt::fs::OpenOptions::new().write(true).create(true).open("/log")?;
    rt::fs::sync_dir("/").await?;
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 80))).await?;
    let mut end = 0;
    loop {
        let (mut stream, _) = rt::select! {
            asked = rt::signal::termination() => return asked,
            accepted = listener.accept() => accepted?,
        };
        let mut byte = [0];
        let read = rt::time::timeout(patience, stream.read_exact(&mut byte)).await;
        if !matches!(read, Ok(Ok(_))) {
            continue;
        }
        // A disk that fails costs the client its answer.
        tracing::debug!(end, "told");
        if file.write_at(&byte, end).is_ok() && file.sync_data().await.is_ok() {
            end += 1;
            let _ = stream.write_all(&byte).await;
        }
    }
}

async fn ask(server: SocketAddr) -> io::Result<u8> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_u8(1).await?;
    stream.read_u8().await
}

async fn workload(desk: Desk, recorder: Recorder<(), u8>, faults: Vec<Fault>) {
    let (server, client) = (rt::world::add_node("server"), rt::world::add_node("client"));
    let boot = move |configuration: &str| {
        tracing::info!(port = 80, "server starts");
        let patience = Duration::from_millis(if configuration == "hasty" { 100 } else { 1_000 });
        drop(rt::world::spawn_on(server, serve(patience)));
    };
    boot("patient");
    let standby = rt::world::add_node("standby");
    let boot_standby = move || drop(rt::world::spawn_on(standby, serve(Duration::from_secs(1))));
    boot_standby();
    let observer = recorder.clone();
    // The two machines are not copies of each other: either may lose what it has.
    let atlas = ["server", "standby"]
        .into_iter()
        .fold(Atlas::new(), |atlas, node| atlas.with(Area::new(node, &[node], "/", 1)));
    let nemesis = Nemesis::new(&desk, move |node, event| observer.node(node, event))
        .atlas(&atlas)
        .configured_node("server", server, &["patient", "hasty"], boot)
        .node("standby", standby, boot_standby)
        .node("client", client, || {});
    let loose = nemesis.release(&faults).expect("all nodes are known");
    let address = SocketAddr::new(rt::world::ip(server), 80);
    let count = desk.clone();
    let requests = async move {
        loop {
            let pending = recorder.invoke("client", ());
            match rt::time::timeout(Duration::from_millis(500), ask(address)).await {
                Ok(Ok(answer)) => {
                    count.count("answers", 1);
                    pending.ok(answer);
                }
                _ => pending.unknown("no answer"),
            }
            rt::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let client = rt::world::spawn_on(client, requests);
    loose.ended().await;
    client.abort();
}

impl Scenario for EveryFault {
    type Plan = Plan;

    fn name(&self) -> &'static str {
        "every_fault_has_an_effect"
    }

    fn claim(&self) -> &'static str {
        "no kind of fault goes unnoticed"
    }

    fn strategy(&self) -> BoxedStrategy<Plan> {
        any::<u64>().prop_map(|schedule_seed| Plan { schedule_seed, faults: schedule() }).boxed()
    }

    fn run(&self, plan: &Plan) -> Report {
        let desk = Desk::new();
        let recorder = Recorder::new(desk.signals());
        let config = WorldConfig { seed: plan.schedule_seed, ..WorldConfig::default() };
        let (work, faults) = ((desk.clone(), recorder.clone()), plan.faults.clone());
        let (_, report) = desk.run(config, move || workload(work.0, work.1, faults));
        desk.judged(report, &recorder.take(), Vec::new())
    }
}

/// A partition between two nodes that never speak.
pub struct IdleFault;

impl Scenario for IdleFault {
    type Plan = Vec<Fault>;

    fn name(&self) -> &'static str {
        "idle_fault"
    }

    fn claim(&self) -> &'static str {
        "a fault without effect fails its campaign"
    }

    fn strategy(&self) -> BoxedStrategy<Vec<Fault>> {
        let fault = json!({"fault": {"isolate": {"node": "a"}}, "start": {"at": "1s"}, "lasts": "1s"});
        proptest::strategy::Just(vec![serde_json::from_value(fault).expect("as in a case file")]).boxed()
    }

    fn run(&self, faults: &Vec<Fault>) -> Report {
        let desk = Desk::new();
        let (work, faults) = (desk.clone(), faults.clone());
        let main = move || async move {
            let nemesis = Nemesis::new(&work, |_, _| {}).node("a", rt::world::add_node("a"), || {});
            nemesis.node("b", rt::world::add_node("b"), || {}).release(&faults).expect("both are known").ended().await;
        };
        desk.run(WorldConfig::default(), main).1
    }
}

/// The reports of some seeds.
pub fn reports(scenario: &str, seeds: u64) -> Vec<Report> {
    let tasks = (0..seeds).map(|seed| Task::Seed { scenario: scenario.to_owned(), seed }).collect();
    let mut reports = Vec::new();
    let mut worker = Process::start(&STAND.launch()).expect("the worker starts");
    let done = worker.run(tasks, Limits::of_this_machine(), false, |run| {
        reports.push(run.report);
        ControlFlow::Continue(())
    });
    done.expect("the worker answers");
    reports
}

#[test]
fn every_fault_has_an_effect() {
    for report in reports("every_fault_has_an_effect", 5) {
        assert_eq!(report.violations, []);
        let idle: Vec<_> = report.effects.iter().filter(|effect| effect.amount == 0).collect();
        assert!(idle.is_empty(), "{idle:#?}");
        let kinds: Vec<_> = report.effects.iter().map(|effect| effect.kind.as_str()).collect();
        let here = Kind::NAMES
            .iter()
            .copied()
            .filter(|kind| !disk_faults::KINDS.contains(kind) && !network_faults::KINDS.contains(kind));
        assert_eq!(kinds, here.collect::<Vec<_>>(), "the schedule has each kind once, in their order");
        assert!(report.counts["answers"] > 1_000, "the system served between the faults: {:?}", report.counts);
    }
}
