//! A returning master takes back from its slaves what it lost: READ_LOG at both ends, and the round of questions.
use crate::digest::{QUESTION_BYTES_MAX, digest_at, own_digest};
use crate::error::RegainError;
use crate::regain_rule::{Bounds, Relation, Step, View, relation, step};
use bytes::Bytes;
use protocol::header::{ReadLogRequest, ReadLogResponse};
use protocol::{Command, PhysicalOffset, RequestCode, ResponseCode};
use remoting::Client;
use rt::sync::mpsc;
use rt::task::TaskGroup;
use rt::time::timeout;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tracing::{debug, info, warn};

/// Most bytes of one answer: small beside a frame's limit, large beside a round trip.
const ANSWER_BYTES_MAX: i32 = 1024 * 1024;

/// Answers a READ_LOG request from this broker's log.
pub async fn answer_read_log(store: &Store, request: &Command) -> Command {
    let header = match request.header::<ReadLogRequest>() {
        Ok(header) => header,
        Err(error) => return Command::reply(request, ResponseCode::SystemError).with_remark(error.to_string()),
    };
    let bounds =
        ReadLogResponse { log_min: store.log_min(), log_end: store.confirm_end(), written_end: store.log_end() };
    let bytes_max = u32::try_from(header.bytes_max.min(ANSWER_BYTES_MAX)).unwrap_or(0);
    let mut body = Bytes::new();
    if header.from >= bounds.log_min && header.from < bounds.log_end && bytes_max > 0 {
        match store.read_log(header.from, bytes_max).await {
            Ok(bytes) => body = bytes,
            Err(error) => return Command::reply(request, ResponseCode::SystemError).with_remark(error.to_string()),
        }
    }
    Command::reply(request, ResponseCode::Success).with_header(&bounds).with_body(body)
}

/// What one round of questions did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regained {
    /// Enough slaves were heard, and the master's log lacks nothing that one of them had.
    pub is_whole: bool,
    /// The slaves that answered, as they were given.
    pub heard: Vec<String>,
    /// Bytes taken over.
    pub bytes: u64,
}

/// A master's questions to its slaves, before it appends anything and before it lets one in: until then its log is a prefix of the
/// one it had, and no slave cuts its own to it.
#[derive(Clone, Debug)]
pub struct Regain {
    /// The master's store; it must be [started](Store::start).
    pub store: Arc<Store>,
    /// Asks the slaves.
    pub client: Client,
    /// Bytes before this log's end that must be equal at the slave: two maximal records, as in
    /// [`HaSlaveConfig::tail_bytes`](crate::HaSlaveConfig::tail_bytes).
    pub tail_bytes: u64,
    /// How long one question about a slave's log may take.
    pub question_max: Duration,
    /// How long one part of a slave's log may take to come.
    pub chunk_max: Duration,
}

impl Regain {
    /// Asks all `slaves` (remoting addresses), takes over the longest continuation of this log if at least `needed` of them were heard,
    /// and leaves the log synced, dispatched and without an incomplete record, so that appends may follow. To be repeated if the
    /// answer says that the log may not be whole; what was taken over by then stays.
    pub async fn round(&self, slaves: &[String], needed: usize) -> Regained {
        let views = self.views(slaves).await;
        let heard = slaves.iter().zip(&views).filter(|(_, view)| **view != View::Silent);
        let mut done = Regained { is_whole: false, heard: heard.map(|(slave, _)| slave.clone()).collect(), bytes: 0 };
        let (slave, to) = match step(&views, needed) {
            Step::Wait => return done,
            Step::Done => return Regained { is_whole: true, ..done },
            Step::Fetch { slave, to } => (&slaves[slave], to),
        };
        let from = self.store.log_end();
        assert!(from < to);
        let fetched = self.fetch(slave, to).await;
        let settled = self.store.settle_replica().await;
        done.bytes = u64::try_from(self.store.log_end() - from).unwrap_or(0);
        match fetched.and(settled.map_err(RegainError::from)) {
            Ok(()) => {
                rt::probe!("replication.regained");
                info!(%slave, %from, to = %self.store.log_end(), bytes = done.bytes, "lost suffix of the log regained");
                done.is_whole = true;
            }
            Err(error) => {
                warn!(%slave, %error, at = %self.store.log_end(), %to, "lost suffix of the log not regained");
            }
        }
        done
    }

    /// Asks all slaves at once, so that one that is down delays no other.
    async fn views(&self, slaves: &[String]) -> Vec<View> {
        let tasks = TaskGroup::default();
        let (sender, mut answers) = mpsc::channel(slaves.len().max(1));
        for (index, slave) in slaves.iter().cloned().enumerate() {
            let (this, sender) = (self.clone(), sender.clone());
            tasks.spawn(async move {
                let view = match this.view(&slave).await {
                    Ok(view) => view,
                    Err(error) => {
                        let source = std::error::Error::source(&error).map(ToString::to_string);
                        debug!(%slave, %error, source, "the slave did not tell its log");
                        View::Silent
                    }
                };
                // Nobody listens any more only if the round was given up.
                let _ = sender.send((index, view)).await;
            });
        }
        drop(sender);
        let mut views = vec![View::Silent; slaves.len()];
        while let Some((index, view)) = answers.recv().await {
            views[index] = view;
        }
        views
    }

    async fn view(&self, slave: &str) -> Result<View, RegainError> {
        let Some((bounds, _)) = self.ask(slave, PhysicalOffset::ZERO, 0, self.question_max).await? else {
            warn!(%slave, "the slave does not know how to tell its log; what it alone has is lost");
            return Ok(View::NothingToGive);
        };
        if bounds.log_end < bounds.written_end {
            return Err(RegainError::Unsettled { readable: bounds.log_end, written: bounds.written_end });
        }
        let own = Bounds { min: self.store.log_min(), end: self.store.log_end() };
        let theirs = Bounds { min: bounds.log_min, end: bounds.log_end };
        let Relation::Longer { from, to } = relation(own, theirs, self.tail_bytes.min(QUESTION_BYTES_MAX)) else {
            return Ok(View::NothingToGive);
        };
        if from < to {
            let digest = digest_at(&self.client, slave, from, to, self.question_max).await?;
            if digest != own_digest(&self.store, from, to).await? {
                rt::probe!("replication.longer_slave_diverged");
                warn!(%slave, log_end = %theirs.end, own_end = %own.end, "the slave's log is longer and another one");
                return Ok(View::NothingToGive);
            }
        }
        Ok(View::Continues { to: theirs.end })
    }

    async fn fetch(&self, slave: &str, to: PhysicalOffset) -> Result<(), RegainError> {
        loop {
            let at = self.store.log_end();
            if at >= to {
                return Ok(());
            }
            let wanted = i32::try_from(to - at).unwrap_or(i32::MAX).min(ANSWER_BYTES_MAX);
            let bytes = match self.ask(slave, at, wanted, self.chunk_max).await? {
                Some((_, bytes)) if !bytes.is_empty() && bytes.len() <= usize::try_from(wanted).unwrap_or(0) => bytes,
                _ => return Err(RegainError::Gone { at }),
            };
            self.store.append_replica(at, &bytes)?;
        }
    }

    /// `None`: the slave does not know the request.
    async fn ask(
        &self,
        slave: &str,
        from: PhysicalOffset,
        bytes_max: i32,
        after: Duration,
    ) -> Result<Option<(ReadLogResponse, Bytes)>, RegainError> {
        let request = Command::request(RequestCode::ReadLog, &ReadLogRequest { from, bytes_max });
        // The client's own limit does not cover a connection that is not made.
        let asked = timeout(after, self.client.request(slave, request, after)).await;
        let answer = asked.map_err(|_| RegainError::Timeout { after })??;
        match answer.response_code() {
            Some(ResponseCode::Success) => Ok(Some((answer.header()?, answer.body))),
            Some(ResponseCode::RequestCodeNotSupported) => Ok(None),
            _ => Err(RegainError::Refused { code: answer.code }),
        }
    }
}
