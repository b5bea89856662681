//! What a program leaves behind when it returns is found with its node, its time and its seed; what an ended node held is gone.

use crate::STAND;
use crate::faults::reports;
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use rt::fs::OpenOptions;
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::time::sleep;
use rt::world::{NodeId, Sockets, Verdict, WorldConfig, disk, network};
use serde_json::json;
use sim::desk::Desk;
use sim::fault::Fault;
use sim::leak::{LeakCheck, NOTHING_LEFT};
use sim::nemesis::Nemesis;
use sim::report::Report;
use sim::scenario::Scenario;
use std::any::Any;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const S: Duration = Duration::from_secs(1);

/// A place that outlives programs.
type Outside = Arc<Mutex<Vec<Box<dyn Any + Send>>>>;

/// What a program forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leftover {
    Task,
    Timer,
    File,
    Listener,
    Stream,
    Datagrams,
    /// It tells its tasks to end, and returns before they have.
    SlowTask,
    /// As [`Leftover::Task`], and the scenario does not ask for the look.
    UnseenTask,
    Nothing,
}

impl Leftover {
    pub const ALL: [Leftover; 9] = {
        use Leftover::{Datagrams, File, Listener, Nothing, SlowTask, Stream, Task, Timer, UnseenTask};
        [Task, Timer, File, Listener, Stream, Datagrams, SlowTask, UnseenTask, Nothing]
    };

    /// Holds one of each sort for two seconds, and returns without giving this one back.
    async fn program(self, outside: Outside) {
        let file = OpenOptions::new().write(true).create(true).open("/log").expect("there is space");
        let listener = TcpListener::bind(any(80)).await.expect("nobody listens there");
        let address = SocketAddr::new(rt::world::ip(rt::world::current_node()), 80);
        let stream = TcpStream::connect(address).await.expect("it listens");
        let socket = UdpSocket::bind(any(81)).await.expect("nobody is there");
        let mut timer = Box::pin(sleep(S * 1_000));
        let _ = rt::time::timeout(S, &mut timer).await;
        let task = rt::task::spawn(async move {
            let accepted = listener.accept().await;
            sleep(S * 1_000).await;
            drop(accepted);
        });
        sleep(S).await;
        task.abort();
        let keep = |what: Box<dyn Any + Send>| outside.lock().expect("nobody panics").push(what);
        match self {
            Leftover::Task | Leftover::UnseenTask => drop(rt::task::spawn(std::future::pending::<()>())),
            Leftover::Timer => keep(Box::new(timer)),
            Leftover::File => keep(Box::new(file)),
            Leftover::Listener => keep(Box::new(TcpListener::bind(any(82)).await.expect("nobody listens there"))),
            Leftover::Stream => keep(Box::new(stream)),
            Leftover::Datagrams => keep(Box::new(socket)),
            Leftover::SlowTask => drop(rt::task::spawn(async { sleep(S / 2).await })),
            Leftover::Nothing => {}
        }
    }
}

fn any(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
}

impl Scenario for Leftover {
    type Plan = ();

    fn name(&self) -> &'static str {
        match self {
            Leftover::Task => "leaves_task",
            Leftover::Timer => "leaves_timer",
            Leftover::File => "leaves_file",
            Leftover::Listener => "leaves_listener",
            Leftover::Stream => "leaves_stream",
            Leftover::Datagrams => "leaves_datagram_socket",
            Leftover::SlowTask => "leaves_task_for_a_moment",
            Leftover::UnseenTask => "leaves_task_unseen",
            Leftover::Nothing => "leaves_nothing",
        }
    }

    fn suite(&self) -> &'static str {
        "leftovers"
    }

    fn claim(&self) -> &'static str {
        "a program that returns has given everything back"
    }

    fn strategy(&self) -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn run(&self, (): &()) -> Report {
        let (leftover, desk) = (*self, Desk::new());
        let check = LeakCheck::new(&desk, S);
        let main = move || async move {
            let outside = Outside::default();
            let node = rt::world::add_node("server");
            let program = leftover.program(Arc::clone(&outside));
            if leftover == Leftover::UnseenTask {
                drop(rt::world::spawn_on(node, program));
            } else {
                drop(check.spawn_on(node, program));
            }
            sleep(S * 5).await;
            rt::world::crash(node);
            sleep(S).await;
        };
        desk.run(WorldConfig::default(), main).1
    }
}

#[test]
fn each_sort_of_leftover_is_found_with_its_node_its_time_and_its_seed() {
    let mut told = BTreeMap::new();
    for leftover in Leftover::ALL {
        let [report] = reports(leftover.name(), 1).try_into().expect("one seed, one report");
        let Report { violations, .. } = report;
        if !violations.is_empty() {
            assert_eq!(STAND.finds(leftover.name(), NOTHING_LEFT, 1), 0, "a campaign tells the seed");
        }
        told.insert(leftover.name(), violations.into_iter().map(|violation| violation.summary).collect::<Vec<_>>());
    }
    insta::assert_json_snapshot!(told, @r#"
    {
      "leaves_datagram_socket": [
        "node server at 3.000010 s: its program has returned, and 1s later it still holds datagram sockets: 1"
      ],
      "leaves_file": [
        "node server at 3.000010 s: its program has returned, and 1s later it still holds open files: 1"
      ],
      "leaves_listener": [
        "node server at 3.000010 s: its program has returned, and 1s later it still holds listeners: 1"
      ],
      "leaves_nothing": [],
      "leaves_stream": [
        "node server at 3.000010 s: its program has returned, and 1s later it still holds streams: 1"
      ],
      "leaves_task": [
        "node server at 3.000010 s: its program has returned, and 1s later it still holds tasks: 1"
      ],
      "leaves_task_for_a_moment": [],
      "leaves_task_unseen": [],
      "leaves_timer": [
        "node server at 3.000010 s: its program has returned, and 1s later it still holds timers: 1"
      ]
    }
    "#);
}

/// A server that is told to stop and leaves a task is found by its look; then the stop ends the node.
#[test]
fn a_program_that_stops_in_order_is_looked_at() {
    let fault = json!({"fault": {"stop": {"node": "server", "grace": "5s"}}, "start": {"at": "1s"}, "lasts": "9s"});
    let faults: Vec<Fault> = vec![serde_json::from_value(fault).expect("as in a case file")];
    let summaries = |leaves: bool| {
        let desk = Desk::new();
        let (check, inside, faults) = (LeakCheck::new(&desk, S), desk.clone(), faults.clone());
        let main = move || async move {
            let node = rt::world::add_node("server");
            let serve = move || async move {
                rt::signal::termination().await.expect("it never fails");
                if leaves {
                    drop(rt::task::spawn(std::future::pending::<()>()));
                }
            };
            let boot = move || drop(check.spawn_on(node, serve()));
            boot();
            let nemesis = Nemesis::new(&inside, |_, _| {}).node("server", node, boot);
            nemesis.release(&faults).expect("it is known").ended().await;
            rt::world::tasks(node)
        };
        let (tasks, report) = desk.run(WorldConfig::default(), main);
        assert_eq!(tasks, Some(1), "it was started again");
        report.violations.into_iter().map(|violation| violation.summary).collect::<Vec<_>>()
    };
    let left = ["node server at 2.000000 s: its program has returned, and 1s later it still holds tasks: 1"];
    assert_eq!(summaries(true), left);
    assert_eq!(summaries(false), [""; 0]);
}

/// Tasks, timers and open files, and sockets.
fn held(node: NodeId) -> ((usize, usize, u64), Sockets) {
    ((rt::world::tasks(node), rt::world::timers(node), disk::open_files(node)), network::sockets(node))
}

/// None of it is the program's doing: the world frees all.
#[test]
fn an_ended_node_holds_nothing_whatever_its_programs_forgot() {
    for end in [rt::world::crash as fn(NodeId), rt::world::power_loss] {
        for leftover in Leftover::ALL {
            let desk = Desk::new();
            let main = move || async move {
                let (outside, node) = (Outside::default(), rt::world::add_node("server"));
                drop(rt::world::spawn_on(node, leftover.program(Arc::clone(&outside))));
                sleep(S + S / 2).await;
                assert_eq!(network::sockets(node).streams, 2, "it is connected to itself");
                end(node);
                assert_eq!(held(node), ((0, 0, 0), Sockets::default()), "{leftover:?}");
                // The next one is ended when it has returned.
                drop(rt::world::spawn_on(node, leftover.program(Arc::clone(&outside))));
                sleep(S * 5).await;
                end(node);
                assert_eq!(held(node), ((0, 0, 0), Sockets::default()), "{leftover:?}");
            };
            // The desk looks after each end too.
            assert_eq!(desk.run(WorldConfig::default(), main).1.violations, []);
        }
    }
}

/// What is lost with the world at the end of a run, whoever held it: counted by a token in each.
#[test]
fn the_end_of_a_run_drops_all_that_programs_and_harness_held() {
    for ends_by_finding in [false, true] {
        let token = Arc::new(());
        let inside = Arc::clone(&token);
        let main = move || async move {
            let node = rt::world::add_node("server");
            let [task, ready, timer, hook, rule, result, waiting] = [(); 7].map(|()| Arc::clone(&inside));
            rt::world::on_node_end(move |_| assert!(Arc::strong_count(&hook) > 0));
            let pass = move |_: &rt::world::Packet| {
                assert!(Arc::strong_count(&rule) > 0);
                Verdict::Pass
            };
            network::set_rule("counts", Box::new(pass));
            let (sender, receiver) = rt::sync::oneshot::channel::<Arc<()>>();
            drop(rt::world::spawn_on(node, async move {
                std::future::pending::<()>().await;
                drop((task, sender));
            }));
            drop(rt::world::spawn_on(node, async move {
                sleep(S * 1_000).await;
                drop(timer);
            }));
            let joined = rt::world::spawn_on(node, async move { result });
            drop(rt::world::spawn_on(node, async move {
                let _ = receiver.await;
                drop((joined, waiting));
            }));
            sleep(S).await;
            drop(rt::world::spawn_on(node, async move { drop(ready) }));
            rt::world::pause(node);
            assert!(!ends_by_finding, "planted");
        };
        let (value, report) = Desk::new().run(WorldConfig::default(), main);
        assert_eq!((value.is_none(), report.violations.len()), (ends_by_finding, usize::from(ends_by_finding)));
        assert_eq!(Arc::strong_count(&token), 1, "all others are gone");
    }
}
