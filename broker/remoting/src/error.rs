use protocol::FrameError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Whether a request that failed may have reached its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No byte of it was given to the socket and none will be: the peer has not seen it.
    NotSent,
    /// It was written, wholly or in part: the peer may or may not have acted on it.
    MaybeSent,
}

/// Why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RemotingError {
    /// No connection to the address.
    #[error("connect to {addr} failed: {reason}")]
    Connect {
        /// The address as the caller wrote it.
        addr: String,
        /// What went wrong.
        reason: ConnectReason,
    },
    /// No response (request) or no room to write it (one-way) in time.
    #[error("no response from {addr} within {after:?} ({fate:?})")]
    Timeout {
        /// The peer.
        addr: String,
        /// The caller's time-out.
        after: Duration,
        /// Whether the peer may have seen the request.
        fate: Fate,
    },
    /// The connection ended before the response came.
    #[error("connection to {addr} is closed ({fate:?})")]
    Closed {
        /// The peer.
        addr: String,
        /// Whether the peer may have seen the request.
        fate: Fate,
    },
    /// The limit of calls in flight stayed reached for the whole time-out. Never sent.
    #[error("too many requests in flight, limit {limit}")]
    TooManyRequests {
        /// The limit that is reached.
        limit: u32,
    },
    /// The command does not fit a frame. Never sent.
    #[error("frame of {bytes} bytes exceeds the limit of {limit}")]
    FrameTooLarge {
        /// Its size with the length bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The limit of connections is reached. Never sent.
    #[error("too many connections, limit {limit}")]
    TooManyConnections {
        /// The limit.
        limit: usize,
    },
    /// This client has been shut down. Never sent.
    #[error("the remoting client is shut down")]
    ShutDown,
}

impl RemotingError {
    /// Whether the peer may have seen the request.
    pub fn fate(&self) -> Fate {
        match self {
            RemotingError::Timeout { fate, .. } | RemotingError::Closed { fate, .. } => *fate,
            RemotingError::Connect { .. }
            | RemotingError::TooManyRequests { .. }
            | RemotingError::FrameTooLarge { .. }
            | RemotingError::TooManyConnections { .. }
            | RemotingError::ShutDown => Fate::NotSent,
        }
    }
}

/// Why an attempt to connect failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectReason {
    /// The text is no `host:port`, or the name has no address.
    #[error("address cannot be resolved: {0}")]
    Resolve(io::ErrorKind),
    /// The system refused or the peer did.
    #[error("{0}")]
    Io(io::ErrorKind),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// Why a connection ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CloseReason {
    /// The peer closed it in order.
    #[error("closed by peer")]
    Peer,
    /// The socket failed.
    #[error("socket error: {0}")]
    Io(io::ErrorKind),
    /// Nothing was read or written for the configured time.
    #[error("idle")]
    Idle,
    /// The peer sent bytes that are no frame, or too large a one.
    #[error("bad frame: {0}")]
    Frame(#[from] FrameError),
    /// The peer began a TLS handshake; this server speaks plain remoting only.
    #[error("tls is not supported")]
    Tls,
    /// The peer (a proxy) began with a PROXY protocol header; it is not supported.
    #[error("proxy protocol is not supported")]
    ProxyProtocol,
    /// This side closed the connection or is shutting down.
    #[error("closed by this side")]
    Local,
}

/// A server could not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}: {source}")]
pub struct BindError {
    /// The address asked for.
    pub addr: SocketAddr,
    /// The system's error.
    pub source: io::Error,
}
