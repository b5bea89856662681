//! Removing what has expired: segments of the log, then what names them in queues and index.
//!
//! A segment is as old as its newest message, which is no younger than the first record of the next segment: the files' times do not
//! count, so that a copied store keeps its ages. The oldest goes first, each durably before the next, so that no crash leaves a hole; and
//! it goes only when all that will be known of it is on the disk: the log up to the moment, queue entries, index, checkpoint. A reader
//! that has the file open reads on.
mod rule;

pub use rule::{Removal, RetentionConfig};

use crate::error::{ReadError, RetentionError};
use crate::segment::Segment;
use crate::store::Store;
use protocol::PhysicalOffset;
use protocol::message::RecordView;
use rule::{Decision, Situation, decide, is_expired};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs that follow one wish of an operator, as Apache's: a store of many segments needs more than one.
const ASKED_RUNS: u32 = 20;

/// Who still needs the log.
pub trait Retainer: Send + Sync {
    /// The first place of the log that must stay, whatever else speaks for its removal; [`PhysicalOffset`]'s largest value if nothing must.
    /// Asked before each removal.
    ///
    /// # Errors
    /// It cannot be found out: then nothing is removed.
    fn keep_from(&self, removal: Removal) -> impl Future<Output = Result<PhysicalOffset, ReadError>> + Send;
}

/// What a run removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Segments of the log.
    pub segments: u32,
    /// Files of queues.
    pub queue_files: u32,
}

/// What the store remembers between two runs.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    turn: rt::sync::Mutex<Turn>,
    /// How full the disk was when it was found full, in percent; 0: messages are taken.
    full_percent: AtomicU32,
    /// Runs that an operator has asked for.
    asked: AtomicU32,
}

#[derive(Debug, Default)]
struct Turn {
    /// The log's end when the disk was last looked at.
    looked_at: PhysicalOffset,
    /// The log's minimum that queues and index were last cut at.
    cleaned_at: PhysicalOffset,
}

impl Retention {
    /// How full the disk is, in percent, if messages are refused for that.
    pub(crate) fn full(&self) -> Option<u32> {
        Some(self.full_percent.load(Ordering::Acquire)).filter(|percent| *percent > 0)
    }
}

impl Store {
    /// Looks how full the disk is, and removes what has expired or has to go: at most so many segments as are configured for a run, and
    /// what names them in queues and index. To be called at intervals; a store whose log has one segment and has not grown costs nothing.
    ///
    /// # Errors
    /// A file could not be removed, or what the decision needs could not be read; the next run tries again. After a failed sync the store
    /// is poisoned.
    pub async fn remove_expired(&self, retainer: &impl Retainer) -> Result<Cleaned, RetentionError> {
        let mut turn = self.retention.turn.lock().await;
        let is_asked = self.take_wish();
        let mut cleaned = Cleaned::default();
        let has_grown = std::mem::replace(&mut turn.looked_at, self.log_end()) != self.log_end();
        if has_grown || self.log.segments().len() > 1 || self.retention.full().is_some() {
            while let Some(removal) = self.look(is_asked).removal {
                if cleaned.segments >= self.config.retention.batch_max || !self.remove_oldest(removal, retainer).await?
                {
                    break;
                }
                cleaned.segments += 1;
                rt::time::sleep(self.config.retention.log_pause).await;
            }
        }
        let min = self.log_min();
        if turn.cleaned_at != min {
            cleaned.queue_files = self.forget_below(min).await?;
            turn.cleaned_at = min;
        }
        Ok(cleaned)
    }

    /// Makes the next runs remove what has expired, at whatever hour they come (DELETE_EXPIRED_COMMITLOG).
    pub fn ask_for_removal(&self) {
        self.retention.asked.store(ASKED_RUNS, Ordering::Release);
    }

    /// Whether messages are refused because the disk is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.retention.full().is_some()
    }

    /// How full the disks of the commit log and of the consume queues are, in percent, rounded up.
    ///
    /// # Errors
    /// The system does not say.
    pub fn disk_used_percent(&self) -> Result<[u32; 2], RetentionError> {
        Ok([used_percent(&self.log.dir)?, used_percent(self.queues.root())?])
    }

    fn take_wish(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.retention.asked.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
    }

    /// Decides what is to be done now, and opens or closes the store for messages.
    fn look(&self, is_asked: bool) -> Decision {
        let used_percent = match self.fullest_percent() {
            Ok(percent) => Some(percent),
            Err(error) => {
                tracing::warn!(%error, "it is not known how full the disk is");
                None
            }
        };
        let was_full = self.is_disk_full();
        let situation = Situation { now_ms: rt::time::unix_ms(), used_percent, is_asked, was_full };
        let decision = decide(&self.config.retention, situation);
        if decision.is_full != was_full {
            rt::probe!("store.retention.disk_full_or_not");
            tracing::warn!(used_percent, refused = decision.is_full, "disk space: messages are refused or taken again");
        }
        let full_percent = if decision.is_full { used_percent.or(self.retention.full()).unwrap_or(100) } else { 0 };
        self.retention.full_percent.store(full_percent, Ordering::Release);
        decision
    }

    fn fullest_percent(&self) -> Result<u32, RetentionError> {
        let log = used_percent(&self.log.dir)?;
        // Only a log with a directory of its own may be on another disk.
        if self.config.commit_log_dir.is_none() {
            return Ok(log);
        }
        Ok(log.max(used_percent(self.queues.root())?))
    }

    /// Removes the oldest segment, durably; false if it has to stay.
    async fn remove_oldest(&self, removal: Removal, retainer: &impl Retainer) -> Result<bool, RetentionError> {
        let segments = self.log.segments();
        let [oldest, next, ..] = &segments[..] else { return Ok(false) };
        if removal == Removal::Expired && !self.has_expired(next).await? {
            return Ok(false);
        }
        // Asked before the log is flushed: what the answer rests on, copies of delayed messages for instance, is on the disk then.
        if retainer.keep_from(removal).await? < oldest.end() {
            rt::probe!("store.retention.held_back");
            return Ok(false);
        }
        self.flush_log().await.map_err(RetentionError::Poisoned)?;
        self.flush_queues().await.map_err(RetentionError::Poisoned)?;
        // A truncation works on a list of segments: it must not bring this one back.
        let _dispatcher = self.dispatcher.lock().await;
        let known_end =
            self.queue_flusher.hold().await.claimed_end().min(self.log.flushed()).min(self.dispatched_end());
        if known_end < oldest.end() || !self.log.is_removable(oldest) {
            return Ok(false);
        }
        self.remove_segment(oldest).await?;
        let (path, min) = (oldest.path().display(), self.log_min());
        tracing::info!(%path, ?removal, %min, "segment removed");
        Ok(true)
    }

    async fn remove_segment(&self, oldest: &Arc<Segment>) -> Result<(), RetentionError> {
        remove_file(oldest.path())?;
        self.log.forget_oldest(oldest);
        rt::fs::sync_dir(&self.log.dir).await.map_err(|source| {
            let cause = self.poison.set("sync the directory", &self.log.dir, source);
            RetentionError::Poisoned(cause)
        })
    }

    /// Whether the segment before `next` has expired: store times never go back in log order.
    async fn has_expired(&self, next: &Segment) -> Result<bool, RetentionError> {
        let Some(record) = self.record_at(next.start()).await? else { return Ok(false) };
        let Ok(view) = RecordView::parse(&record) else { return Ok(false) };
        Ok(is_expired(&self.config.retention, view.store_timestamp(), rt::time::unix_ms()))
    }

    /// Corrects the queues' minimums and removes files of queues and index that name only what lies below `min`; returns how many of
    /// queues. A crash before this is done leaves files that the next start's first run removes.
    async fn forget_below(&self, min: PhysicalOffset) -> Result<u32, RetentionError> {
        let failed = |(path, source)| RetentionError::Io { action: "remove", path, source };
        let mut files = 0;
        for queue in self.queues.all() {
            let removed = {
                // A truncation moves the queues' ends.
                let _dispatcher = self.dispatcher.lock().await;
                queue.remove_below(min).await.map_err(failed)?
            };
            files += removed;
            if removed > 0 {
                rt::time::sleep(self.config.retention.queue_pause).await;
            }
        }
        let _dispatcher = self.dispatcher.lock().await;
        self.index.remove_below(min).map_err(failed)?;
        Ok(files)
    }
}

/// Removes a file that may be gone already: a removal that failed may have happened.
pub(crate) fn remove_file(path: &Path) -> Result<(), RetentionError> {
    match rt::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(RetentionError::Io { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn used_percent(path: &Path) -> Result<u32, RetentionError> {
    let space = rt::fs::free_bytes(path);
    let (free, all) =
        space.map_err(|source| RetentionError::Io { action: "measure the disk of", path: path.to_owned(), source })?;
    let used = u128::from(all.saturating_sub(free));
    Ok(u32::try_from((used * 100).div_ceil(u128::from(all.max(1)))).unwrap_or(100).min(100))
}
