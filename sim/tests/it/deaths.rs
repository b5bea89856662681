//! Runs that cannot report for themselves, and findings of the world: each is a violation of its seed, and the batch goes on.

use crate::STAND;
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use rt::world::{Limits as WorldLimits, WorldConfig};
use sim::desk::Desk;
use sim::report::Report;
use sim::scenario::Scenario;
use sim::worker::process::Process;
use sim::worker::{Limits, Task};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Duration;

/// A way to die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    Abort,
    StackOverflow,
    EndlessLoop,
    OutOfMemory,
    PanicOfJudge,
    PanicOnNode,
    Deadlock,
    Livelock,
    TooLong,
    None,
}

impl Death {
    pub const ALL: [Death; 10] = {
        use Death::{
            Abort, Deadlock, EndlessLoop, Livelock, None, OutOfMemory, PanicOfJudge, PanicOnNode, StackOverflow,
            TooLong,
        };
        [Abort, StackOverflow, EndlessLoop, OutOfMemory, PanicOfJudge, PanicOnNode, Deadlock, Livelock, TooLong, None]
    };

    async fn happen(self) {
        rt::time::sleep(Duration::from_secs(1)).await;
        match self {
            Death::Abort => std::process::abort(),
            Death::StackOverflow => assert!(deeper(1) > 0),
            Death::EndlessLoop => loop {
                black_box(());
            },
            Death::OutOfMemory => drop(black_box(vec![1_u8; 1 << 40])),
            Death::PanicOnNode => {
                let node = rt::world::add_node("a");
                let _ = rt::world::spawn_on(node, async { panic!("planted") }).await;
            }
            Death::Deadlock => std::future::pending().await,
            Death::Livelock => loop {
                rt::task::yield_now().await;
            },
            Death::TooLong => rt::time::sleep(Duration::from_secs(1_000_000)).await,
            Death::PanicOfJudge | Death::None => {}
        }
    }
}

fn deeper(depth: u64) -> u64 {
    black_box([depth; 64])[0] + if black_box(depth) > 0 { deeper(depth + 1) } else { 0 }
}

impl Scenario for Death {
    type Plan = ();

    fn name(&self) -> &'static str {
        match self {
            Death::Abort => "dies_of_abort",
            Death::StackOverflow => "dies_of_stack_overflow",
            Death::EndlessLoop => "dies_of_endless_loop",
            Death::OutOfMemory => "dies_of_memory",
            Death::PanicOfJudge => "dies_of_panic_of_judge",
            Death::PanicOnNode => "dies_of_panic_on_node",
            Death::Deadlock => "dies_of_deadlock",
            Death::Livelock => "dies_of_livelock",
            Death::TooLong => "dies_of_age",
            Death::None => "does_not_die",
        }
    }

    fn suite(&self) -> &'static str {
        "deaths"
    }

    fn claim(&self) -> &'static str {
        "a run that dies is a violation of its seed"
    }

    fn strategy(&self) -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn run(&self, (): &()) -> Report {
        let death = *self;
        let limits = WorldLimits { virtual_time_max: Some(Duration::from_secs(3_600)), ..WorldLimits::default() };
        let (_, report) = Desk::new().run(WorldConfig { limits, ..WorldConfig::default() }, move || death.happen());
        assert!(death != Death::PanicOfJudge, "the judge is wrong");
        report
    }
}

#[test]
fn each_death_is_a_violation_and_the_batch_goes_on() {
    let limits = Limits { jobs: NonZeroUsize::MIN, wall_clock: Duration::from_secs(5), ..Limits::of_this_machine() };
    let tasks =
        Death::ALL.iter().map(|death| Task::Seed { scenario: Scenario::name(death).to_owned(), seed: 1 }).collect();
    let mut told = Vec::new();
    let mut worker = Process::start(&STAND.launch()).expect("the worker starts");
    let noted = |run: sim::worker::Run| {
        let violations: Vec<_> = run
            .report
            .violations
            .iter()
            .map(|violation| format!("{}: {}", violation.invariant, violation.summary))
            .collect();
        told.push(format!("{:<22} {}", run.task.scenario(), violations.join("; ")));
        ControlFlow::Continue(())
    };
    worker.run(tasks, limits, false, noted).expect("the worker survives its children");
    insta::assert_snapshot!(without_line_numbers(&told.join("\n")));
}

/// They change with every edit of this file.
fn without_line_numbers(text: &str) -> String {
    let line = |line: &str| line.split_once(".rs:").map_or_else(|| line.to_owned(), |(head, _)| format!("{head}.rs…"));
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
