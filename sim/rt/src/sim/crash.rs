//! The end of a node: one synchronous function, and the points at which it comes.
//!
//! # Order
//! 1. the node is down and its incarnation has grown, so whatever its destructors do is void;
//! 2. the network: listeners are gone, a crash resets the connections, a power loss leaves them silent;
//! 3. the disk: a crash closes files and drops locks, a power loss also loses what was not synced;
//! 4. its tasks are dropped, in slot order; a panic of a destructor is a finding;
//! 5. its timers are thrown away as a whole; pause, stop request and crash points are forgotten;
//! 6. after a crash its kernel is up again and refuses connections; after a power loss it stays dark until it is started;
//! 7. the hooks of [`on_node_end`](crate::world::on_node_end) run.
//!
//! # A node in its own poll
//! A task that is being polled cannot be dropped. If the end comes from the node's own code (a crash point, or
//! [`crash`](crate::world::crash) of the current node) the node is *doomed*: from that very operation on,
//! [`Node::serves`](super::node::Node::serves) is false for its incarnation, so everything it does to network and disk is void, and
//! so is the output of a task that ends in this poll; the executor ends the node right after the poll returns, before anything
//! else happens. (Not void: what the rest of the poll writes to memory shared with another node, which no real program has.)
use super::fs;
use super::net::Net;
use super::node::{Node, NodeId};
use super::trace::Event;
use super::world::World;
use std::cell::Cell;
use std::time::Duration;

/// What a node loses at its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CrashKind {
    /// The process ends: the kernel keeps the page cache and resets the sockets.
    Process,
    /// The machine ends: only synced bytes and names stay, its sockets go silent, and it is dark until something is spawned on it.
    Power,
}

/// Where a node's own code meets its end. Counted from now on: 1 is the next one. The operation of that number has no effect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CrashPoint {
    /// Its n-th disk operation.
    DiskOperation(u64),
    /// The n-th segment it sends.
    Packet(u64),
}

/// The end of a node, as hooks learn it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeEnd {
    /// Which node.
    pub node: NodeId,
    /// The incarnation that ended.
    pub incarnation: u32,
    /// What it lost.
    pub kind: CrashKind,
    /// World time.
    pub at: Duration,
}

/// Counts one kind of operation of a node, and knows at which to crash.
#[derive(Debug, Default)]
pub(super) struct CrashCounter {
    count: Cell<u64>,
    trap: Cell<Option<(u64, CrashKind)>>,
}

impl CrashCounter {
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    /// Arms it for the `nth` operation from now.
    pub(super) fn arm(&self, nth: u64, kind: CrashKind) {
        assert!(nth > 0, "the next operation has number 1");
        self.trap.set(Some((self.count.get() + nth, kind)));
    }

    pub(super) fn disarm(&self) {
        self.trap.set(None);
    }

    /// Counts one; the kind of crash if this is the one.
    #[inline]
    fn hit(&self) -> Option<CrashKind> {
        self.count.set(self.count.get() + 1);
        self.trap.get().filter(|(at, _)| *at == self.count.get()).map(|(_, kind)| kind)
    }
}

impl World {
    /// Counts a disk operation of the current node, before its effect. False: it must have none.
    #[inline]
    #[must_use]
    pub(crate) fn count_disk_operation(&self) -> bool {
        self.count(self.here(), |node| &node.disk_operations)
    }

    /// Counts a segment that the current node sends, before it leaves. False: it must not leave.
    #[inline]
    #[must_use]
    pub(crate) fn count_packet(&self) -> bool {
        self.count(self.here(), |node| &node.packets)
    }

    #[inline]
    fn count(&self, node: &Node, counter: impl Fn(&Node) -> &CrashCounter) -> bool {
        if !node.up.get() || node.doomed.get().is_some() {
            return false;
        }
        if let Some(kind) = counter(node).hit() {
            node.doomed.set(Some(kind));
            return false;
        }
        true
    }

    /// Ends `node` now, or as soon as its own poll returns.
    pub(super) fn end_node(&self, node: NodeId, kind: CrashKind) {
        assert!(node != NodeId::WORLD, "the world's own node has no faults");
        let machine = self.at(node);
        if self.executor.polled.get() == Some(node) {
            if machine.doomed.get().is_none() {
                machine.doomed.set(Some(kind));
            }
        } else if machine.up.get() {
            end(self, machine, kind);
        }
    }
}

/// Ends a node that is up and not being polled.
pub(super) fn end(world: &World, node: &Node, kind: CrashKind) {
    let power = kind == CrashKind::Power;
    let incarnation = node.incarnation.get();
    let (before, task) = (world.node.replace(node.id), world.task.replace(u32::MAX));
    world.record(Event::End, u64::from(incarnation) << 32 | u64::from(power));
    node.up.set(false);
    node.dying.set(true);
    node.incarnation.set(incarnation.wrapping_add(1));
    Net::down(world, node.id, power);
    if power {
        fs::Disk::power_loss(world, node.id);
    } else {
        node.disk.borrow_mut().process_crash();
    }
    world.executor.kill(world, node);
    forget_process(world, node);
    node.dying.set(false);
    node.up.set(!power);
    world.node.set(before);
    world.task.set(task);
    run_hooks(world, NodeEnd { node: node.id, incarnation, kind, at: Duration::from_nanos(world.now.get()) });
}

/// What the kernel keeps of a process, and a restarted one must not inherit.
fn forget_process(world: &World, node: &Node) {
    // Taken out first: dropping a foreign waker runs foreign code.
    drop(node.timers.take());
    drop(node.stop_waiters.take());
    node.stop_requested.set(false);
    node.paused.set(false);
    node.busy_until.set(0);
    node.doomed.set(None);
    node.disk_operations.disarm();
    node.packets.disarm();
    world.refresh_timers(node);
}

/// Hooks run on the world's own node. They are taken out meanwhile: one may spawn, crash another node, or add a hook.
fn run_hooks(world: &World, end: NodeEnd) {
    let before = world.node.replace(NodeId::WORLD);
    let mut hooks = world.on_node_end.take();
    for hook in &mut hooks {
        hook(end);
    }
    world.node.set(before);
    let mut present = world.on_node_end.borrow_mut();
    hooks.append(&mut present);
    *present = hooks;
}

/// Drops what is left on all nodes in their order, at the end of a run. Nothing of it can be seen any more, except a panic.
pub(super) fn end_world(world: &World) {
    for index in 0..world.node_count() {
        let node = world.at(NodeId::new(index));
        world.node.set(node.id);
        node.up.set(false);
        node.dying.set(true);
        node.incarnation.set(node.incarnation.get().wrapping_add(1));
        world.executor.kill(world, node);
    }
}

#[cfg(test)]
mod tests {
    use super::{CrashKind, CrashPoint};
    use crate::sim::control::{add_node, crash, crash_at, disk_operations, incarnation, is_up, spawn_on};
    use crate::sim::run::run_test;
    use crate::sim::task::yield_now;
    use crate::sim::world::world;
    use std::sync::{Arc, Mutex};

    /// What each of ten disk operations of a node was told, five in a poll.
    fn operations(point: Option<u64>) -> (Vec<bool>, u32, u64) {
        run_test(move || async move {
            let node = add_node("broker");
            if let Some(nth) = point {
                crash_at(node, CrashPoint::DiskOperation(nth), CrashKind::Process);
            }
            let told = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&told);
            let task = spawn_on(node, async move {
                for n in 1..=10 {
                    log.lock().unwrap().push(world().count_disk_operation());
                    if n == 5 {
                        yield_now().await;
                    }
                }
            });
            let ended = task.await.is_err();
            assert_eq!(ended, point.is_some());
            (std::mem::take(&mut *told.lock().unwrap()), incarnation(node), disk_operations(node))
        })
    }

    #[test]
    fn the_nth_operation_and_all_later_ones_of_its_poll_are_void_and_then_the_node_ends() {
        assert_eq!(operations(None), (vec![true; 10], 0, 10));
        assert_eq!(operations(Some(1)), (vec![false; 5], 1, 1));
        assert_eq!(operations(Some(4)), (vec![true, true, true, false, false], 1, 4));
        let mut late = vec![true; 10];
        late[7..].fill(false);
        assert_eq!(operations(Some(8)).0, late);
    }

    #[test]
    fn a_packet_point_counts_packets_only_and_is_forgotten_by_another_end() {
        run_test(|| async {
            let node = add_node("broker");
            crash_at(node, CrashPoint::Packet(1), CrashKind::Power);
            crash(node);
            let told = spawn_on(node, async { (world().count_disk_operation(), world().count_packet()) }).await;
            assert_eq!(told.unwrap(), (true, true));
            crash_at(node, CrashPoint::Packet(1), CrashKind::Power);
            let task = spawn_on(node, async { assert!(world().count_disk_operation() && !world().count_packet()) });
            assert!(task.await.is_err(), "it ended in the poll that doomed its node");
            assert!(!is_up(node), "no power until it is started");
            assert_eq!(incarnation(node), 2);
        });
    }

    #[test]
    fn handles_of_a_doomed_or_old_incarnation_are_void() {
        run_test(|| async {
            let node = add_node("broker");
            let serves = move |incarnation| world().at(node).serves(incarnation);
            assert!(serves(0));
            let task = spawn_on(node, async move {
                crash(node);
                assert_eq!((serves(0), serves(1), is_up(node), incarnation(node)), (false, false, true, 0));
            });
            assert!(task.await.is_err());
            assert_eq!((serves(0), serves(1)), (false, true));
        });
    }
}
