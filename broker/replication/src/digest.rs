//! LOG_DIGEST: how a Hotfire slave asks its master what a range of the log looks like there, and tells who it is.
//!
//! The request travels over remoting because the HA stream has no room for a question. An Apache master answers
//! REQUEST_CODE_NOT_SUPPORTED, and the slave then has nothing to compare with.
use crate::error::CompareError;
use crate::master::HaMaster;
use protocol::header::{LogDigestRequest, LogDigestResponse};
use protocol::{Command, PhysicalOffset, RequestCode, ResponseCode};
use remoting::{Client, RemotingError};
use std::net::SocketAddr;
use std::time::Duration;
use store::Store;

/// Most bytes that one answer digests: a hostile question costs no more than this read.
const ANSWER_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Most bytes that a slave asks for at a time.
pub(crate) const QUESTION_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Ext field: the slave's name for itself.
const SLAVE_ID: &str = "slaveId";
/// Ext field: the slave's end of its HA connection, by which the master knows which stream is whose.
const SLAVE_HA_ADDRESS: &str = "slaveHaAddress";

/// Answers a LOG_DIGEST request from this broker's log. `master`: the running HA master, if this broker is one; it learns from the request
/// which stream belongs to which slave.
pub async fn answer_log_digest(store: &Store, master: Option<&HaMaster>, request: &Command) -> Command {
    let header = match request.header::<LogDigestRequest>() {
        Ok(header) => header,
        Err(error) => return Command::reply(request, ResponseCode::SystemError).with_remark(error.to_string()),
    };
    let announced = (request.ext_fields.get(SLAVE_HA_ADDRESS), request.ext_fields.get(SLAVE_ID));
    if let (Some(master), (Some(addr), Some(id))) = (master, announced)
        && let Ok(addr) = addr.parse()
    {
        master.announce(addr, id);
    }
    let LogDigestRequest { from, to } = header;
    let (log_min, log_end) = (store.log_min(), store.confirm_end());
    let end = to.min(log_end).min(from + ANSWER_BYTES_MAX);
    let mut answer = LogDigestResponse { digest: String::new(), digest_end: from, log_min, log_end };
    // A range that is not here is answered as an empty one: the bounds say why.
    if from >= log_min && from < end {
        match store.log_digest(from, end).await {
            Ok(digest) => {
                answer.digest = format!("{:016x}", digest.0);
                answer.digest_end = end;
            }
            Err(error) => return Command::reply(request, ResponseCode::SystemError).with_remark(error.to_string()),
        }
    }
    Command::reply(request, ResponseCode::Success).with_header(&answer)
}

/// A master's log as it was when it answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) min: PhysicalOffset,
    pub(crate) end: PhysicalOffset,
}

/// The slave's questions to one master.
pub(crate) struct Questioner<'a> {
    pub(crate) client: &'a Client,
    /// The master's remoting address.
    pub(crate) master: &'a str,
    pub(crate) slave_id: &'a str,
    /// This side's address of the HA connection.
    pub(crate) ha_local: SocketAddr,
    pub(crate) timeout: Duration,
}

impl Questioner<'_> {
    /// Tells the master who owns the HA connection and asks for its bounds. `None`: the master does not know the request.
    pub(crate) async fn announce(&self) -> Result<Option<Bounds>, CompareError> {
        let answer = bounds_in(self.ask(PhysicalOffset::ZERO, PhysicalOffset::ZERO).await?);
        if let Err(CompareError::Refused { code }) = &answer
            && *code == ResponseCode::RequestCodeNotSupported.as_i32()
        {
            return Ok(None);
        }
        answer.map(|answer| Some(Bounds { min: answer.log_min, end: answer.log_end }))
    }

    /// The digest of the master's log in `from..to`, which must lie inside it.
    pub(crate) async fn digest(&self, from: PhysicalOffset, to: PhysicalOffset) -> Result<String, CompareError> {
        digest_in(self.ask(from, to).await?, from, to)
    }

    async fn ask(&self, from: PhysicalOffset, to: PhysicalOffset) -> Result<Command, RemotingError> {
        let request = Command::request(RequestCode::LogDigest, &LogDigestRequest { from, to })
            .with_ext(SLAVE_ID, self.slave_id)
            .with_ext(SLAVE_HA_ADDRESS, self.ha_local.to_string());
        self.client.request(self.master, request, self.timeout).await
    }
}

/// The digest of another broker's log in `from..to`, which must lie inside it, asked without the announcement of a slave.
pub(crate) async fn digest_at(
    client: &Client,
    address: &str,
    from: PhysicalOffset,
    to: PhysicalOffset,
    timeout: Duration,
) -> Result<String, CompareError> {
    let request = Command::request(RequestCode::LogDigest, &LogDigestRequest { from, to });
    digest_in(client.request(address, request, timeout).await?, from, to)
}

fn digest_in(answer: Command, from: PhysicalOffset, to: PhysicalOffset) -> Result<String, CompareError> {
    assert!(from < to);
    let answer = bounds_in(answer)?;
    if answer.digest_end != to {
        return Err(CompareError::Range { from, asked: to, answered: answer.digest_end });
    }
    Ok(answer.digest)
}

fn bounds_in(answer: Command) -> Result<LogDigestResponse, CompareError> {
    if answer.response_code() != Some(ResponseCode::Success) {
        return Err(CompareError::Refused { code: answer.code });
    }
    Ok(answer.header()?)
}

/// A digest as it is compared: as text.
pub(crate) async fn own_digest(
    store: &Store,
    from: PhysicalOffset,
    to: PhysicalOffset,
) -> Result<String, CompareError> {
    Ok(format!("{:016x}", store.log_digest(from, to).await?.0))
}
