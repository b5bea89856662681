//! What an ended program or node leaves behind: tasks, timers, open files, sockets.
//!
//! A crash and a power loss free all of it, as a kernel does when a process ends: `rt` is built so, and each run of a
//! [`Desk`] looks after each end of a node whether it is so. The end of a run drops the world with all that is in it.
//!
//! A program that *returns* frees what it holds itself, or so it should: what it has spawned goes on, and what it has given to a place that
//! outlives it stays open, until the process ends. In a long-lived process, and in one that starts the same server again, that is a leak. A
//! scenario asks for that look by starting its programs through a [`LeakCheck`].

use crate::desk::Desk;
use crate::verdict::{Violation, seconds};
use rt::task::JoinHandle;
use rt::time::sleep;
use rt::world::network::sockets;
use rt::world::{NodeId, Sockets, disk};
use std::fmt;
use std::time::Duration;

/// A program that has ended, or a node, has given back all that it held.
pub const NOTHING_LEFT: &str = "what has ended leaves nothing behind";

/// How often it is looked whether a program that has returned has given back what it held.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Starts programs, and looks what is left of those that return.
#[derive(Debug, Clone)]
pub struct LeakCheck {
    desk: Desk,
    within: Duration,
}

impl LeakCheck {
    /// A program that returns must have given everything back `within` that time: tasks that were told to end need a moment. A fault
    /// that stops programs must give them more than that, or it ends the node before the look.
    pub fn new(desk: &Desk, within: Duration) -> LeakCheck {
        LeakCheck { desk: desk.clone(), within }
    }

    /// As [`rt::world::spawn_on`], for the only program of its node. What is left of it after it has returned is noted as a violation,
    /// with node and time; then, as without the check, it stays. A program that does not return is not looked at: a crash ends it. Nor is
    /// one that returns so late that the run ends before its time is over.
    pub fn spawn_on<F>(&self, node: NodeId, program: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let check = self.clone();
        rt::world::spawn_on(node, async move {
            let output = program.await;
            check.look(node).await;
            output
        })
    }

    async fn look(&self, node: NodeId) {
        let returned = rt::world::elapsed();
        loop {
            let mut left = Held::by(node);
            left.tasks -= 1; // this one
            if left.is_nothing() {
                return;
            }
            let waited = rt::world::elapsed() - returned;
            if waited >= self.within {
                let after = crate::duration::format(waited);
                return self
                    .desk
                    .violated(left.violation(node, &format!("its program has returned, and {after} later")));
            }
            sleep(LOOK_EVERY.min(self.within - waited)).await;
        }
    }
}

/// Looks at each node that is ended from now on.
pub(crate) fn look_at_ends(desk: &Desk) {
    let desk = desk.clone();
    rt::world::on_node_end(move |end| {
        let left = Held::by(end.node);
        if !left.is_nothing() {
            desk.violated(left.violation(end.node, &format!("it was ended ({:?}), and", end.kind)));
        }
    });
}

/// What the programs of a node hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    tasks: usize,
    timers: usize,
    files: u64,
    sockets: Sockets,
}

impl Held {
    fn by(node: NodeId) -> Held {
        Held {
            tasks: rt::world::tasks(node),
            timers: rt::world::timers(node),
            files: disk::open_files(node),
            sockets: sockets(node),
        }
    }

    fn is_nothing(&self) -> bool {
        *self == Held { tasks: 0, timers: 0, files: 0, sockets: Sockets::default() }
    }

    fn violation(&self, node: NodeId, how: &str) -> Violation {
        let (name, at) = (rt::world::node_name(node), seconds(rt::world::elapsed()));
        Violation::new(NOTHING_LEFT, format!("node {name} at {at} s: {how} it still holds {self}"))
    }
}

impl fmt::Display for Held {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: usize| u64::try_from(count).expect("a usize has at most 64 bits");
        let sorts = [
            ("tasks", count(self.tasks)),
            ("timers", count(self.timers)),
            ("open files", self.files),
            ("listeners", count(self.sockets.listeners)),
            ("streams", count(self.sockets.streams)),
            ("datagram sockets", count(self.sockets.datagram_sockets)),
        ];
        let held = sorts.iter().filter(|(_, count)| *count > 0).map(|(sort, count)| format!("{sort}: {count}"));
        out.write_str(&held.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::{NOTHING_LEFT, look_at_ends};
    use crate::desk::Desk;
    use rt::world::{WorldConfig, add_node, crash, on_node_end, power_loss, spawn_on};
    use std::time::Duration;

    /// What the world makes impossible is planted here: somebody puts a task onto the node before the look.
    #[test]
    fn an_ended_node_that_holds_something_is_a_violation() {
        let desk = Desk::new();
        let inside = desk.clone();
        let main = move || async move {
            let node = add_node("server");
            on_node_end(|end| {
                drop(spawn_on(end.node, std::future::pending::<()>()));
            });
            look_at_ends(&inside);
            drop(spawn_on(node, std::future::pending::<()>()));
            rt::time::sleep(Duration::from_millis(1_500)).await;
            crash(node);
        };
        let (_, report) = desk.run(WorldConfig::default(), main);
        let [violation] = report.violations.as_slice() else { panic!("{:?}", report.violations) };
        assert_eq!(violation.invariant, NOTHING_LEFT);
        insta::assert_snapshot!(violation.summary, @"node server at 1.500000 s: it was ended (Process), and it still holds tasks: 1");
    }

    /// A world of a desk, where each end is looked at, and one without desk: the same events.
    #[test]
    fn the_look_after_each_end_changes_nothing() {
        async fn ends() {
            let node = add_node("server");
            for end in [crash, power_loss, crash] {
                let write = async {
                    let file =
                        rt::fs::OpenOptions::new().write(true).create(true).open("/log").expect("there is space");
                    file.write_at(b"something", 0).expect("there is space");
                    std::future::pending::<()>().await;
                };
                drop(spawn_on(node, write));
                rt::time::sleep(Duration::from_secs(1)).await;
                end(node);
            }
        }
        let (_, looked) = Desk::new().run(WorldConfig::default(), ends);
        let plain = rt::world::run(WorldConfig::default(), ends);
        assert_eq!((looked.hash, looked.events), (plain.hash, plain.events));
    }
}
