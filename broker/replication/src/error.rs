use protocol::{HeaderError, PhysicalOffset};
use remoting::RemotingError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use store::{ReadError, ReplicaError};

/// The HA port cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HaError {
    /// The address is taken or not ours.
    #[error("cannot listen on {addr} for slaves")]
    Bind {
        /// The address asked for.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// An append is not known to be on enough slaves. It may be, later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicationWaitError {
    /// Too few slaves acknowledged in time.
    #[error("log end {end} is on {holding} of {copies} slaves after {after:?}")]
    Timeout {
        /// The end waited for.
        end: PhysicalOffset,
        /// Slaves needed.
        copies: usize,
        /// Slaves that hold it.
        holding: usize,
        /// The time-out.
        after: Duration,
    },
    /// The master's HA is shut down.
    #[error("replication is shut down")]
    Stopped,
}

/// Why a master ended a slave's connection.
#[derive(Debug, thiserror::Error)]
pub enum StreamFault {
    /// The slave closed it.
    #[error("closed by the slave")]
    Closed,
    /// The socket failed.
    #[error("socket error")]
    Io(#[from] io::Error),
    /// No report came in time.
    #[error("no report from the slave for {after:?}")]
    Silent {
        /// The limit.
        after: Duration,
    },
    /// A report that is no offset.
    #[error("slave reports the negative offset {reported}")]
    Negative {
        /// The report.
        reported: i64,
    },
    /// The slave's log is longer than the master's: its tail is not ours.
    #[error("slave reports {reported}, beyond this log's end {readable_end}; its log has diverged")]
    BeyondLog {
        /// The first report.
        reported: PhysicalOffset,
        /// The master's readable end.
        readable_end: PhysicalOffset,
    },
    /// The slave claims bytes that it was not sent.
    #[error("slave reports {reported} but was sent nothing beyond {sent}")]
    BeyondSent {
        /// The report.
        reported: PhysicalOffset,
        /// End of what was sent on this connection.
        sent: PhysicalOffset,
    },
    /// The slave lost bytes without reconnecting.
    #[error("slave reports {reported} after {before}")]
    WentBack {
        /// The report.
        reported: PhysicalOffset,
        /// The report before it.
        before: PhysicalOffset,
    },
    /// The slave needs bytes that retention has removed here.
    #[error("slave needs the log from {reported}, but it begins at {log_min} here; the slave must be rebuilt")]
    BehindLog {
        /// The first report.
        reported: PhysicalOffset,
        /// The master's first offset.
        log_min: PhysicalOffset,
    },
    /// The master's own log cannot be read.
    #[error("log cannot be read")]
    Read(#[from] ReadError),
    /// A newer connection of the same slave has replaced this one.
    #[error("the slave has connected again")]
    Replaced,
    /// The master is shutting down.
    #[error("shut down")]
    Stopped,
}

/// The logs could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The master did not answer.
    #[error("master was not reached")]
    Remoting(#[from] RemotingError),
    /// The master answered with an error code.
    #[error("master refused with code {code}")]
    Refused {
        /// The response code.
        code: i32,
    },
    /// The master's answer lacks a field.
    #[error("master's answer cannot be read")]
    Answer(#[from] HeaderError),
    /// The master's answer contradicts the question or itself.
    #[error("master answered for {from}..{answered} when asked for {from}..{asked}")]
    Range {
        /// Start of the range.
        from: PhysicalOffset,
        /// End asked for.
        asked: PhysicalOffset,
        /// End answered.
        answered: PhysicalOffset,
    },
    /// The slave's own log cannot be read.
    #[error("own log cannot be read")]
    Read(#[from] ReadError),
}

/// A slave did not tell or give what its log has beyond its master's.
#[derive(Debug, thiserror::Error)]
pub enum RegainError {
    /// The slave did not answer.
    #[error("slave was not reached")]
    Remoting(#[from] RemotingError),
    /// No connection or no answer in time.
    #[error("no answer from the slave within {after:?}")]
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// The slave answered with an error code.
    #[error("slave refused with code {code}")]
    Refused {
        /// The response code.
        code: i32,
    },
    /// The slave's answer lacks a field.
    #[error("slave's answer cannot be read")]
    Answer(#[from] HeaderError),
    /// The slave is still syncing what it has.
    #[error("slave can read its log up to {readable} only, of {written}")]
    Unsettled {
        /// End of what it can read.
        readable: PhysicalOffset,
        /// End of what it has.
        written: PhysicalOffset,
    },
    /// The ends of the logs could not be compared.
    #[error("logs cannot be compared")]
    Compare(#[from] CompareError),
    /// The slave has no byte any more where its log went on before.
    #[error("slave's log has nothing at {at} any more")]
    Gone {
        /// The master's end.
        at: PhysicalOffset,
    },
    /// The own store refused the bytes.
    #[error("append failed")]
    Append(#[from] ReplicaError),
}

/// Why a slave's connection to its master ended, or was not used.
#[derive(Debug, thiserror::Error)]
pub enum SlaveFault {
    /// No connection.
    #[error("cannot connect to {addr}")]
    Connect {
        /// The master's HA address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No connection in time.
    #[error("no connection to {addr} within {after:?}")]
    ConnectTimeout {
        /// The master's HA address.
        addr: SocketAddr,
        /// The limit.
        after: Duration,
    },
    /// The master closed it.
    #[error("closed by the master")]
    Closed,
    /// The socket failed.
    #[error("socket error")]
    Io(#[from] io::Error),
    /// Nothing came from the master in time.
    #[error("nothing from the master for {after:?}")]
    Silent {
        /// The limit.
        after: Duration,
    },
    /// A frame's size field is negative or beyond the limit. Nothing was appended.
    #[error("frame at {at} has a body of {size} bytes, the limit is {limit}")]
    BadSize {
        /// The frame's log offset.
        at: PhysicalOffset,
        /// Its size field.
        size: i32,
        /// The limit.
        limit: u32,
    },
    /// A frame leaves a gap, or overlaps what is here. Nothing was appended.
    #[error("frame begins at {at} but this log ends at {end}")]
    NotContiguous {
        /// The frame's log offset.
        at: PhysicalOffset,
        /// This log's end.
        end: PhysicalOffset,
    },
    /// What it has sent is no record; this log is cut there before the next attempt.
    #[error("the master has sent what is no record at log offset {at}")]
    SentDamage {
        /// Start of what is no record.
        at: PhysicalOffset,
    },
    /// The store refused the bytes.
    #[error("append failed")]
    Append(#[from] ReplicaError),
    /// The logs could not be compared, so nothing may be appended.
    #[error("logs cannot be compared")]
    Compare(#[from] CompareError),
    /// The logs differ and the policy does not allow to cut this one.
    #[error("logs differ: common up to {common}, this log ends at {end}; an operator must decide")]
    Diverged {
        /// End of the common prefix.
        common: PhysicalOffset,
        /// This log's end.
        end: PhysicalOffset,
    },
    /// This log and the master's have no range in common.
    #[error("this log is {min}..{end}, the master's {master_min}..{master_end}; the slave must be rebuilt")]
    NothingInCommon {
        /// This log's start.
        min: PhysicalOffset,
        /// This log's end.
        end: PhysicalOffset,
        /// The master's start.
        master_min: PhysicalOffset,
        /// The master's end.
        master_end: PhysicalOffset,
    },
    /// The master was changed.
    #[error("another master was set")]
    MasterChanged,
    /// The slave is shutting down.
    #[error("shut down")]
    Stopped,
}
