//! One node's disk: its file system, its faults, and the operations that take time.
use super::config::{DiskConfig, DiskLatency};
use super::directory::InodeId;
use super::effects::DiskEffects;
use super::faults::{DiskError, DiskOperation, Faults};
use super::image::PAGE;
use super::tree::{Tree, errno};
use crate::sim::node::NodeId;
use crate::sim::rand::Rng;
use crate::sim::sight::Sight;
use crate::sim::trace::Event;
use crate::sim::world::{Coming, World};
use std::collections::BTreeMap;
use std::io;
use std::task::{Context, Poll, Waker};

/// The device has finished something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskEvent {
    node: NodeId,
    ticket: u32,
}

/// What the device does when the time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The pages come into the cache.
    Read,
    /// The file's bytes become durable.
    SyncFile { inode: InodeId, sync: u64 },
    /// The directory's names become durable.
    SyncDirectory { inode: InodeId, through: Option<u64> },
    /// The device reports an error. The pages that were to be written stay readable, or show what is on the platter.
    Fail { inode: InodeId, sync: Option<u64>, pages_stay: bool },
}

/// An operation under way, and its result once it is there.
#[derive(Debug)]
struct Pending {
    action: Action,
    /// It met a stalled disk when its time had come.
    held: bool,
    done: Option<Result<(), i32>>,
    /// Its caller waits no more.
    abandoned: bool,
    waker: Option<Waker>,
}

/// A node's disk. It outlives the node's processes.
#[derive(Debug)]
pub(crate) struct Disk {
    node: NodeId,
    pub(super) config: DiskConfig,
    pub(super) rng: Rng,
    pub(super) tree: Tree,
    pub(super) faults: Faults,
    pub(super) effects: DiskEffects,
    /// Latencies that a fault has set.
    pub(super) slow_sync: Option<DiskLatency>,
    pub(super) slow_read: Option<DiskLatency>,
    /// How many faults stall it.
    pub(super) stalls: u32,
    /// How many files a process may have open; none: as many as it likes.
    pub(super) open_files_max: Option<u64>,
    used_pages: u64,
    pending: BTreeMap<u32, Pending>,
    next_ticket: u32,
    next_sync: u64,
    next_handle: u64,
}

impl Disk {
    /// An empty disk.
    pub(crate) fn new(seed: u64, node: NodeId, config: DiskConfig) -> Disk {
        let mut faults = Faults::default();
        for fault in &config.faults {
            faults.add(fault.clone());
        }
        Disk {
            node,
            rng: Rng::for_node(seed, node, "disk", 0),
            tree: Tree::new(),
            faults,
            effects: DiskEffects::default(),
            slow_sync: None,
            slow_read: None,
            stalls: 0,
            open_files_max: None,
            used_pages: 0,
            pending: BTreeMap::new(),
            next_ticket: 0,
            next_sync: 1,
            next_handle: 1,
            config,
        }
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// The process is gone: its files are closed, its locks released. The kernel keeps what was written, and goes on with syncs.
    pub(crate) fn process_crash(&mut self) {
        let freed = self.tree.close_all();
        self.used_pages -= freed;
        for pending in self.pending.values_mut() {
            pending.abandoned = true;
            pending.waker = None;
        }
    }

    /// The power goes: what was not synced survives in part, as [`Image`](super::image::Image) and
    /// [`Directory`](super::directory::Directory) permit.
    pub(crate) fn power_loss(world: &World, node: NodeId) {
        let mut disk = world.at(node).disk.borrow_mut();
        let disk = &mut *disk;
        disk.pending.clear();
        let lost = disk.tree.power_loss(&mut disk.rng);
        disk.used_pages = disk.tree.pages();
        let effects = &mut disk.effects;
        effects.power_losses += 1;
        effects.sectors_lost += lost.sectors;
        effects.sectors_kept += lost.sectors_kept;
        effects.lengths_lost += lost.lengths;
        effects.names_lost += lost.names;
        world.record(Event::Disk, word(9, lost.names, lost.sectors));
    }

    /// Lets happen what was scheduled.
    pub(crate) fn deliver(world: &World, event: DiskEvent) {
        let mut disk = world.at(event.node).disk.borrow_mut();
        let disk = &mut *disk;
        let Some(pending) = disk.pending.get_mut(&event.ticket) else { return };
        if disk.stalls > 0 {
            pending.held = true;
            disk.effects.stalled += 1;
            return;
        }
        disk.finish(world, event.ticket);
    }

    fn finish(&mut self, world: &World, ticket: u32) {
        let Some(pending) = self.pending.get_mut(&ticket) else { return };
        let action = pending.action;
        let abandoned = pending.abandoned;
        let result = self.act(action);
        if world.is_looked_at() && !matches!(action, Action::Read) {
            world.show(&Sight::SyncEnds { node: self.node, ticket, ok: result.is_ok() });
        }
        world.record(Event::Disk, word(8, u64::from(ticket), u64::from(result.is_ok())));
        if abandoned {
            self.pending.remove(&ticket);
            return;
        }
        let pending = self.pending.get_mut(&ticket).expect("it was just seen");
        pending.done = Some(result);
        if let Some(waker) = pending.waker.take() {
            waker.wake();
        }
    }

    fn act(&mut self, action: Action) -> Result<(), i32> {
        match action {
            Action::Read => Ok(()),
            Action::SyncFile { inode, sync } => {
                let well = self.tree.file(inode).map_or(true, |file| file.image.complete_sync(sync));
                self.effects.syncs += u64::from(well);
                if well { Ok(()) } else { Err(libc::EIO) }
            }
            Action::SyncDirectory { inode, through } => {
                self.effects.syncs += 1;
                if let Some(through) = through {
                    let freed = self.tree.commit(inode, through);
                    self.used_pages -= freed;
                }
                Ok(())
            }
            Action::Fail { inode, sync, pages_stay } => {
                if let Some(sync) = sync
                    && let Ok(file) = self.tree.file(inode)
                {
                    let before = file.image.pages();
                    self.effects.sectors_dropped += file.image.fail_sync(sync, pages_stay);
                    self.used_pages = self.used_pages + file.image.pages() - before;
                }
                Err(libc::EIO)
            }
        }
    }

    /// Begins something that takes a time of `latency`; the ticket to wait for, or `None` if it is done already.
    pub(super) fn begin(&mut self, world: &World, action: Action, latency: DiskLatency) -> Option<u32> {
        let span = latency.max_ns.saturating_sub(latency.min_ns);
        let wait = latency.min_ns + if span > 0 { self.rng.below(span + 1) } else { 0 };
        if wait == 0 && self.stalls == 0 && !matches!(action, Action::Fail { .. }) && self.act(action).is_ok() {
            return None;
        }
        let ticket = self.next_ticket;
        self.next_ticket = self.next_ticket.wrapping_add(1);
        let pending = Pending { action, held: false, done: None, abandoned: false, waker: None };
        self.pending.insert(ticket, pending);
        world.schedule(world.now.get() + wait, Coming::Disk(DiskEvent { node: self.node, ticket }));
        Some(ticket)
    }

    /// Shows that a sync has begun; one without a ticket has ended too.
    pub(super) fn show_sync(&self, world: &World, ticket: Option<u32>, path: &str) {
        if world.is_looked_at() {
            let at_once = ticket.is_none();
            let ticket = ticket.unwrap_or(self.next_ticket);
            world.show(&Sight::SyncBegins { node: self.node, ticket, path });
            if at_once {
                world.show(&Sight::SyncEnds { node: self.node, ticket, ok: true });
            }
        }
    }

    pub(super) fn poll_done(&mut self, ticket: u32, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(pending) = self.pending.get_mut(&ticket) else { return Poll::Ready(Err(errno(libc::EIO))) };
        match pending.done {
            Some(result) => {
                self.pending.remove(&ticket);
                Poll::Ready(result.map_err(errno))
            }
            None => {
                pending.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Its caller waits no more; the device goes on.
    pub(super) fn abandon(&mut self, ticket: u32) {
        if let Some(pending) = self.pending.get_mut(&ticket) {
            if pending.done.is_some() {
                self.pending.remove(&ticket);
            } else {
                pending.abandoned = true;
                pending.waker = None;
            }
        }
    }

    /// Everything that met the stalled disk ends now.
    pub(super) fn release(&mut self, world: &World) {
        let held: Vec<u32> =
            self.pending.iter().filter(|(_, pending)| pending.held).map(|(ticket, _)| *ticket).collect();
        for ticket in held {
            self.finish(world, ticket);
        }
    }

    /// What a sync takes now.
    pub(super) fn sync_latency(&mut self) -> DiskLatency {
        self.effects.slowed += u64::from(self.slow_sync.is_some());
        self.slow_sync.unwrap_or(self.config.sync)
    }

    /// What a read takes now: nothing, if its pages are in the cache and no fault slows the disk.
    pub(super) fn read_latency(&mut self, cold: bool) -> Option<DiskLatency> {
        self.effects.slowed += u64::from(self.slow_read.is_some());
        let usual = (cold || self.stalls > 0).then_some(self.config.cold_read);
        self.slow_read.or(usual)
    }

    /// The error of an injected fault, if one strikes.
    pub(super) fn strike(&mut self, operation: DiskOperation, path: &str) -> io::Result<()> {
        self.struck(operation, path).map_or(Ok(()), |error| Err(error.to_io()))
    }

    /// How the operation fails, if it does.
    pub(super) fn struck(&mut self, operation: DiskOperation, path: &str) -> Option<DiskError> {
        let error = self.faults.strikes(operation, path, &mut self.rng)?;
        self.effects.errors_injected += 1;
        Some(error)
    }

    pub(super) fn take_sync(&mut self) -> u64 {
        self.next_sync += 1;
        self.next_sync - 1
    }

    pub(super) fn take_handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle - 1
    }

    pub(super) fn pages_free(&self) -> u64 {
        (self.config.capacity_bytes / PAGE as u64).saturating_sub(self.used_pages)
    }

    pub(super) fn pages_taken(&mut self, pages: u64) {
        self.used_pages += pages;
    }

    pub(super) fn set_pages(&mut self, pages: u64) {
        self.used_pages = pages;
    }

    pub(super) fn pages_freed(&mut self, pages: u64) {
        self.used_pages -= pages;
    }

    /// A new, empty file system on the same device.
    pub(super) fn wipe(&mut self) {
        self.tree = Tree::new();
        self.pending.clear();
        self.used_pages = 0;
    }

    /// What must hold between two operations.
    pub(super) fn check_invariants(&self) {
        self.tree.check_invariants();
        assert_eq!(self.used_pages, self.tree.pages(), "pages are accounted for");
    }
}

/// What the trace says of an operation.
pub(super) fn word(kind: u64, a: u64, b: u64) -> u64 {
    kind << 56 ^ a << 32 ^ b
}
