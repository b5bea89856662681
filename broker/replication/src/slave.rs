//! The slave's shell: connects to the master, compares logs, appends what comes, reports.
use crate::common_prefix::{Search, Step};
use crate::config::{DivergencePolicy, HaSlaveConfig, MasterAddr};
use crate::digest::{QUESTION_BYTES_MAX, Questioner, own_digest};
use crate::error::SlaveFault;
use crate::slave_core::SlaveCore;
use crate::wire::report;
use bytes::BufMut;
use protocol::PhysicalOffset;
use remoting::Client;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{OwnedWriteHalf, TcpStream};
use rt::sync::{CancellationToken, oneshot, watch};
use rt::task::TaskGroup;
use rt::time::{Duration, Instant, sleep, sleep_until, timeout as within};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use store::Store;
use tracing::{info, warn};

/// Room made for one read.
const READ_BYTES: usize = 64 * 1024;
/// Less than a frame's head, in simulation.
const FEW_BYTES: usize = 5;
/// How late a task may go on on a busy machine, in simulation.
const LATE: Duration = Duration::from_millis(10);
/// Compared first where a short common tail is to be found, in simulation.
const SHORT_TAIL: u64 = 1024;

/// What the slave is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlavePhase {
    /// No master is known.
    NoMaster,
    /// Connecting, or pausing before the next attempt.
    Ready,
    /// Connected, and comparing logs.
    Comparing,
    /// Receiving.
    Transfer,
    /// Ended.
    Shutdown,
}

/// A snapshot for admin commands.
#[derive(Clone, Debug)]
pub struct HaSlaveState {
    /// What it is doing.
    pub phase: SlavePhase,
    /// The master it was told.
    pub master: Option<MasterAddr>,
    /// End of the slave's log.
    pub log_end: PhysicalOffset,
    /// Log bytes received since the start.
    pub received_bytes: u64,
    /// Wall clock of the last read and of the last report, in milliseconds; 0: never.
    pub last_read_ms: i64,
    /// See `last_read_ms`.
    pub last_report_ms: i64,
    /// Why the last connection ended.
    pub last_fault: Option<Arc<SlaveFault>>,
    /// Bytes cut from this log because the master's was another, since the start.
    pub truncated_bytes: u64,
}

/// A running HA slave. Dropping it ends the connection.
#[derive(Debug)]
pub struct HaSlave {
    shared: Arc<Shared>,
    master: watch::Sender<Option<MasterAddr>>,
    tasks: TaskGroup,
}

#[derive(Debug)]
struct Shared {
    config: HaSlaveConfig,
    store: Arc<Store>,
    client: Client,
    status: Mutex<Status>,
    /// Runs a truncation to its end even if the connection it belongs to is given up meanwhile.
    cutting: TaskGroup,
}

#[derive(Debug)]
struct Status {
    phase: SlavePhase,
    received_bytes: u64,
    last_read_ms: i64,
    last_report_ms: i64,
    last_fault: Option<Arc<SlaveFault>>,
    truncated_bytes: u64,
}

impl HaSlave {
    /// Replicates into `store` from the master named by [`set_master`](Self::set_master), until `parent` is cancelled or
    /// [`shutdown`](Self::shutdown). `client` asks the master for the digests of the comparison.
    pub fn start(config: HaSlaveConfig, store: Arc<Store>, client: Client, parent: &CancellationToken) -> HaSlave {
        assert!(config.tail_bytes > 0);
        assert!(config.body_bytes_max > 0);
        let status = Status {
            phase: SlavePhase::NoMaster,
            received_bytes: 0,
            last_read_ms: 0,
            last_report_ms: 0,
            last_fault: None,
            truncated_bytes: 0,
        };
        let shared =
            Arc::new(Shared { config, store, client, status: Mutex::new(status), cutting: TaskGroup::default() });
        let (master, told) = watch::channel(None);
        let tasks = TaskGroup::child_of(parent);
        tasks.spawn(run(Arc::clone(&shared), told, tasks.token().clone()));
        HaSlave { shared, master, tasks }
    }

    /// Names the master, or says that there is none. A connection to another master is closed; naming the same one again changes nothing.
    pub fn set_master(&self, master: Option<MasterAddr>) {
        self.master.send_if_modified(|current| {
            let changed = *current != master;
            *current = master;
            changed
        });
    }

    /// What the slave is doing.
    pub fn state(&self) -> HaSlaveState {
        let status = self.shared.status();
        HaSlaveState {
            phase: status.phase,
            master: self.master.borrow().clone(),
            log_end: self.shared.store.log_end(),
            received_bytes: status.received_bytes,
            last_read_ms: status.last_read_ms,
            last_report_ms: status.last_report_ms,
            last_fault: status.last_fault.clone(),
            truncated_bytes: status.truncated_bytes,
        }
    }

    /// Closes the connection and ends; a truncation that runs is waited for.
    pub async fn shutdown(&self) {
        self.tasks.shutdown().await;
        self.shared.cutting.shutdown().await;
    }
}

async fn run(shared: Arc<Shared>, mut told: watch::Receiver<Option<MasterAddr>>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let master = told.borrow_and_update().clone();
        let Some(master) = master else {
            shared.status().phase = SlavePhase::NoMaster;
            rt::select! { () = stop.cancelled() => break, changed = told.changed() => if changed.is_err() { break } }
            continue;
        };
        shared.status().phase = SlavePhase::Ready;
        let fault = rt::select! {
            () = stop.cancelled() => SlaveFault::Stopped,
            changed = told.changed() => if changed.is_err() { SlaveFault::Stopped } else { SlaveFault::MasterChanged },
            fault = shared.replicate(&master) => fault,
        };
        shared.ended(&master, &fault);
        let pause = !matches!(fault, SlaveFault::MasterChanged | SlaveFault::Stopped);
        shared.status().last_fault = Some(Arc::new(fault));
        if pause {
            shared.status().phase = SlavePhase::Ready;
            let pause = if rt::buggify!("replication.reconnect_soon") { LATE } else { shared.config.reconnect_pause };
            // Not `changed()`: a change during the pause is seen by the next `borrow_and_update`, and ends the pause.
            rt::select! {
                () = stop.cancelled() => break,
                changed = told.changed() => if changed.is_err() { break },
                () = sleep(pause) => {}
            }
        }
    }
    shared.status().phase = SlavePhase::Shutdown;
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().expect("no code that can panic runs under this lock")
    }

    fn ended(&self, master: &MasterAddr, fault: &SlaveFault) {
        let source = std::error::Error::source(fault).map(ToString::to_string);
        let source = source.as_deref();
        match fault {
            SlaveFault::Stopped | SlaveFault::MasterChanged | SlaveFault::Closed => {
                info!(master = %master.ha, %fault, "connection to master ended");
            }
            _ => warn!(master = %master.ha, %fault, source, "connection to master ended"),
        }
    }

    /// One connection, from the attempt to its end.
    async fn replicate(&self, master: &MasterAddr) -> SlaveFault {
        match self.try_replicate(master).await {
            Err(fault) => fault,
            Ok(never) => match never {},
        }
    }

    async fn try_replicate(&self, master: &MasterAddr) -> Result<std::convert::Infallible, SlaveFault> {
        if let Some(at) = self.sent_damage() {
            warn!(master = %master.ha, %at, log_end = %self.store.log_end(), "what the master has sent is cut off from there");
            self.truncate(at).await?;
        }
        let (addr, after) = (master.ha, self.config.connect_max);
        let stream = match within(after, TcpStream::connect(addr)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => return Err(SlaveFault::Connect { addr, source }),
            Err(_) => return Err(SlaveFault::ConnectTimeout { addr, after }),
        };
        stream.set_nodelay(true)?;
        self.status().phase = SlavePhase::Comparing;
        if self.store.log_end() == PhysicalOffset::ZERO {
            // A master sends its last segment to an empty slave; an own first segment without a byte would be in the way.
            self.truncate(PhysicalOffset::ZERO).await?;
        }
        // The stream stands before the comparison: it ends with the master's process, so nothing that another incarnation of the master would
        // send can follow what was compared.
        self.compare(master, stream.local_addr()?).await?;
        self.status().phase = SlavePhase::Transfer;
        info!(master = %addr, log_end = %self.store.log_end(), "replicating");
        self.transfer(stream).await
    }

    /// Makes this log a prefix of the master's, or fails.
    async fn compare(&self, master: &MasterAddr, ha_local: SocketAddr) -> Result<(), SlaveFault> {
        let Some(remoting) = &master.remoting else {
            warn!(master = %master.ha, "the logs are not compared: the master's remoting address is not known; if the master lost a suffix of its log, the copies differ from here on");
            return Ok(());
        };
        let questioner = Questioner {
            client: &self.client,
            master: remoting,
            slave_id: &self.config.slave_id,
            ha_local,
            timeout: self.config.compare_max,
        };
        let Some(bounds) = questioner.announce().await? else {
            rt::probe!("replication.master_cannot_compare");
            warn!(master = %master.ha, "the logs are not compared: the master does not know how; if it lost a suffix of its log, the copies differ from here on");
            return Ok(());
        };
        let (min, end) = (self.store.log_min(), self.store.log_end());
        if end == PhysicalOffset::ZERO {
            return Ok(());
        }
        let (low, high) = (min.max(bounds.min), end.min(bounds.end));
        let nothing = SlaveFault::NothingInCommon { min, end, master_min: bounds.min, master_end: bounds.end };
        if low > high {
            return Err(nothing);
        }
        let common = match self.search(&questioner, low, high).await? {
            Some(common) => common,
            // Both logs have their first byte, so cutting this one to nothing leaves a prefix: an empty one.
            None if low == PhysicalOffset::ZERO => low,
            None => return Err(nothing),
        };
        if common == end { Ok(()) } else { self.cut(master, common, end).await }
    }

    /// End of the common log, searched in `low..high`; `None`: not even the first byte is common.
    async fn search(
        &self,
        questioner: &Questioner<'_>,
        low: PhysicalOffset,
        high: PhysicalOffset,
    ) -> Result<Option<PhysicalOffset>, SlaveFault> {
        let tail = if rt::buggify!("replication.compare_short_tail") { SHORT_TAIL } else { self.config.tail_bytes };
        let mut search = Search::new(low, high, tail.min(QUESTION_BYTES_MAX));
        loop {
            match search.step() {
                Step::Compare { from, to } => {
                    let theirs = questioner.digest(from, to).await?;
                    let ours = own_digest(&self.store, from, to).await?;
                    search.answer(ours == theirs);
                }
                Step::Common(common) => return Ok(Some(common)),
                Step::Nothing => return Ok(None),
            }
        }
    }

    async fn cut(&self, master: &MasterAddr, common: PhysicalOffset, end: PhysicalOffset) -> Result<(), SlaveFault> {
        let bytes = u64::try_from(end - common).expect("the common prefix ends before the log does");
        let allowed = match self.config.divergence {
            DivergencePolicy::Truncate { everything_bytes_max, .. } if common == self.store.log_min() => {
                everything_bytes_max
            }
            DivergencePolicy::Truncate { bytes_max, .. } => bytes_max,
            DivergencePolicy::Refuse => 0,
        };
        if bytes > allowed {
            rt::probe!("replication.divergence_refused");
            return Err(SlaveFault::Diverged { common, end });
        }
        rt::probe!("replication.slave_truncated");
        warn!(master = %master.ha, %common, log_end = %end, bytes, "this log is no prefix of the master's; its tail is cut off");
        self.truncate(common).await?;
        self.status().truncated_bytes += bytes;
        Ok(())
    }

    /// Where what a master has sent is no record any more.
    fn sent_damage(&self) -> Option<PhysicalOffset> {
        *self.store.sent_damage().borrow()
    }

    async fn truncate(&self, to: PhysicalOffset) -> Result<(), SlaveFault> {
        let (done, result) = oneshot::channel();
        let store = Arc::clone(&self.store);
        self.cutting.spawn(async move {
            // The connection that wanted it may be gone: the log is cut all the same.
            let _ = done.send(store.truncate_to(to).await);
        });
        result.await.map_err(|_| SlaveFault::Stopped)??;
        Ok(())
    }

    async fn transfer(&self, stream: TcpStream) -> Result<std::convert::Infallible, SlaveFault> {
        let (mut read, mut write) = stream.into_split();
        let begun = Instant::now();
        let config = &self.config;
        let end = self.store.log_end();
        let mut damage = self.store.sent_damage();
        let mut core =
            SlaveCore::new(config.report_interval, config.housekeeping, config.body_bytes_max, end, Duration::ZERO);
        loop {
            self.report(&mut core, begun, &mut write).await?;
            let deadline = begun + core.deadline();
            core.buffer().reserve(READ_BYTES);
            let room = if rt::buggify!("replication.read_few_bytes") { FEW_BYTES } else { READ_BYTES };
            let mut space = core.buffer().limit(room);
            let count = rt::select! {
                _ = damage.wait_for(Option::is_some) => {
                    let at = self.sent_damage().unwrap_or(self.store.log_end());
                    return Err(SlaveFault::SentDamage { at });
                }
                count = read.read_buf(&mut space) => count?,
                () = sleep_until(deadline) => {
                    core.check_silence(begun.elapsed())?;
                    continue;
                }
            };
            if count == 0 {
                return Err(SlaveFault::Closed);
            }
            rt::dawdle!("replication.append_late", LATE);
            core.received(begun.elapsed());
            self.status().last_read_ms = rt::time::unix_ms();
            while let Some(append) = core.next_append()? {
                self.store.append_replica(append.at, &append.body)?;
                self.status().received_bytes += append.body.len() as u64;
                core.appended(&append, self.store.log_end());
            }
            core.check_invariants();
        }
    }

    /// Tells the master how far this log goes, if that is due. It was appended before: a report never runs ahead of the log.
    async fn report(&self, core: &mut SlaveCore, begun: Instant, write: &mut OwnedWriteHalf) -> Result<(), SlaveFault> {
        let now = begun.elapsed();
        let Some(end) = core.report_due(now) else { return Ok(()) };
        assert!(end <= self.store.log_end());
        rt::dawdle!("replication.report_late", LATE);
        core.reporting(now, end);
        // A master that does not read for so long is as good as gone.
        match within(self.config.housekeeping, write.write_all(&report(end))).await {
            Ok(result) => result?,
            Err(_) => return Err(SlaveFault::Silent { after: self.config.housekeeping }),
        }
        self.status().last_report_ms = rt::time::unix_ms();
        Ok(())
    }
}
