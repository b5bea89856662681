//! Network faults of a run, for the experimenter: `rt::world::network`.
//!
//! Blocks are counted per directed link, so overlapping faults heal one by one. Everything here acts at once on what leaves and
//! on what arrives from now on.
use super::Net;
use super::config::{Bandwidth, Latency, Reordering};
use super::effects::NetworkEffects;
use super::names::Answer;
use super::rule::Rule;
pub use super::sockets::sockets;
use crate::sim::node::NodeId;
use crate::sim::trace::Event;
use crate::sim::world::world;
use std::net::IpAddr;

fn with<T>(what: u64, work: impl FnOnce(&mut Net) -> T) -> T {
    let world = world();
    world.record(Event::Fault, what);
    work(&mut world.net.borrow_mut())
}

fn link(kind: u64, from: NodeId, to: NodeId) -> u64 {
    kind << 48 | (from.index() as u64) << 16 | to.index() as u64
}

/// A fault that may lose a probe begins: those who wait for room at a peer begin to ask for it.
fn begin<T>(what: u64, work: impl FnOnce(&mut Net) -> T) {
    with(what, work);
    watch();
}

fn watch() {
    let world = world();
    world.net.borrow_mut().watch_zero_windows(world);
}

/// Blocks what travels from `from` to `to`.
pub fn block(from: NodeId, to: NodeId) {
    block_link(from, to);
    watch();
}

fn block_link(from: NodeId, to: NodeId) {
    with(link(1, from, to), |net| net.fabric.block(from, to));
}

/// Takes one [`block`] back.
pub fn unblock(from: NodeId, to: NodeId) {
    with(link(2, from, to), |net| net.fabric.unblock(from, to));
}

/// Blocks every link between nodes of different groups, both ways. Nodes in no group keep all their links.
pub fn partition(groups: &[&[NodeId]]) {
    between(groups, block_link);
    watch();
}

/// Takes one [`partition`] of the same groups back.
pub fn unpartition(groups: &[&[NodeId]]) {
    between(groups, unblock);
}

fn between(groups: &[&[NodeId]], mut change: impl FnMut(NodeId, NodeId)) {
    for (at, group) in groups.iter().enumerate() {
        for other in groups.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other) {
            for from in *group {
                for to in *other {
                    change(*from, *to);
                }
            }
        }
    }
}

/// Cuts `node` off from every other node, both ways.
pub fn isolate(node: NodeId) {
    for other in others(node) {
        block_link(node, other);
        block_link(other, node);
    }
    watch();
}

/// Takes one [`isolate`] back.
pub fn rejoin(node: NodeId) {
    for other in others(node) {
        unblock(node, other);
        unblock(other, node);
    }
}

fn others(node: NodeId) -> Vec<NodeId> {
    (0..world().node_count()).map(NodeId::new).filter(|other| *other != node).collect()
}

/// Sets how long segments travel from `from` to `to`; `None`: as usual.
pub fn set_latency(from: NodeId, to: NodeId, latency: Option<Latency>) {
    with(link(3, from, to), |net| net.fabric.set_latency(from, to, latency));
}

/// Sets the usual latency of all links.
pub fn set_usual_latency(latency: Latency) {
    with(4 << 48 | latency.max_ns, |net| net.fabric.set_usual(latency));
}

/// Loses so many segments of a million from `from` to `to`.
pub fn set_loss(from: NodeId, to: NodeId, ppm: u32) {
    begin(link(5, from, to) ^ u64::from(ppm) << 24, |net| net.fabric.set_loss(from, to, ppm));
}

/// Loses so many segments of a million on every link, in addition to the link's own loss.
pub fn set_loss_everywhere(ppm: u32) {
    begin(6 << 48 | u64::from(ppm), |net| net.fabric.set_loss_everywhere(ppm));
}

/// Lets a name mean these addresses (a stale answer, a moved machine).
pub fn set_name(name: &str, addresses: &[IpAddr]) {
    with(7 << 48 | name.len() as u64, |net| net.names.set(None, name, Answer::Addresses(addresses.to_vec())));
}

/// Lets lookups of a name fail.
pub fn fail_name(name: &str) {
    with(8 << 48 | name.len() as u64, |net| net.names.set(None, name, Answer::Fails));
}

/// Lets a name mean the node of that name again.
pub fn restore_name(name: &str) {
    with(9 << 48 | name.len() as u64, |net| net.names.forget(None, name));
}

/// As [`set_name`], for lookups of one node only; it counts more there than what everybody sees.
pub fn set_name_on(node: NodeId, name: &str, addresses: &[IpAddr]) {
    let answer = Answer::Addresses(addresses.to_vec());
    with(name_on(11, node, name), |net| net.names.set(Some(node), name, answer));
}

/// As [`fail_name`], for lookups of one node only.
pub fn fail_name_on(node: NodeId, name: &str) {
    with(name_on(12, node, name), |net| net.names.set(Some(node), name, Answer::Fails));
}

/// Lets one node see the name as everybody does.
pub fn restore_name_on(node: NodeId, name: &str) {
    with(name_on(13, node, name), |net| net.names.forget(Some(node), name));
}

fn name_on(kind: u64, node: NodeId, name: &str) -> u64 {
    kind << 48 | (node.index() as u64) << 16 | name.len() as u64 & 0xFFFF
}

/// Lets so many of a million datagrams from `from` to `to` travel twice. A stream hides it.
pub fn set_duplication(from: NodeId, to: NodeId, ppm: u32) {
    with(link(14, from, to) ^ u64::from(ppm) << 24, |net| net.fabric.set_duplication(from, to, ppm));
}

/// Lets datagrams from `from` to `to` overtake each other; `None`: as usual they keep their order. A stream hides it.
pub fn set_reordering(from: NodeId, to: NodeId, reordering: Option<Reordering>) {
    with(link(15, from, to), |net| net.fabric.set_reordering(from, to, reordering));
}

/// Makes the link from `from` to `to` narrow; `None`: as usual it carries anything at once.
pub fn set_bandwidth(from: NodeId, to: NodeId, bandwidth: Option<Bandwidth>) {
    with(link(16, from, to), |net| net.fabric.set_bandwidth(from, to, bandwidth));
}

/// Asks `rule` about every packet that leaves for another node, from now on; it replaces the rule of that name. The first rule that
/// drops or rejects decides. Packets within a node, and acknowledgements of data, are not asked about.
pub fn set_rule(name: &str, rule: Rule) {
    begin(17 << 48 | name.len() as u64, |net| net.rules.set(name, rule));
}

/// Forgets the rule of that name, if there is one.
pub fn clear_rule(name: &str) {
    with(18 << 48 | name.len() as u64, |net| net.rules.clear(name));
}

/// Gives a node another address, of IPv4 or IPv6: it may bind to it, and others reach it there.
///
/// # Panics
/// If the address is none of an ordinary machine, or another node has it.
pub fn add_address(node: NodeId, ip: impl Into<IpAddr>) {
    let world = world();
    with(19 << 48 | node.index() as u64, |net| net.addresses.add(world, node, ip.into()));
}

/// Takes an address from a node, [`world::ip`](crate::world::ip) too: so it may have IPv6 only. For a node whose program has not started:
/// streams and sockets that exist do not notice.
///
/// # Panics
/// If the node does not have it.
pub fn remove_address(node: NodeId, ip: impl Into<IpAddr>) {
    with(20 << 48 | node.index() as u64, |net| net.addresses.remove(node, ip.into()));
}

/// Ends every fault of links and names, and every rule. Streams recover at their next retransmission, as on Linux: up to two minutes later.
pub fn heal() {
    with(10 << 48, |net| {
        net.fabric.heal();
        net.names.clear();
        net.rules.clear_all();
    });
}

/// What the network did so far.
pub fn effects() -> NetworkEffects {
    world().net.borrow().effects
}

/// Connections that an application can still see: a leak shows here.
pub fn connections() -> usize {
    world().net.borrow().connections.live()
}

/// Checks the invariants of every connection.
pub fn check_invariants() {
    let world = world();
    world.net.borrow_mut().check_invariants(world);
}
