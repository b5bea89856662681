use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// What one connection may use, the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Largest frame read or written, in bytes, its 4 length bytes included. Apache's limit is 16 MiB.
    pub frame_bytes_max: usize,
    /// Requests of the peer in [`Lane::Prompt`](crate::Lane::Prompt) being served at a time; at the limit the connection is not read.
    pub prompt_in_flight_max: u32,
    /// Requests of the peer in [`Lane::Held`](crate::Lane::Held) waiting at a time; beyond it they are answered with SYSTEM_BUSY.
    pub held_in_flight_max: u32,
    /// Bytes of the peer's requests in either lane being served at a time; at the limit the connection is not read.
    pub in_flight_bytes_max: usize,
    /// Frames waiting to be written.
    pub write_queue_frames_max: usize,
    /// Bytes waiting to be written; a single frame may be larger and is then alone in the queue.
    pub write_queue_bytes_max: usize,
    /// A connection on which nothing was read and nothing was written for so long is closed.
    pub idle_max: Duration,
    /// How long a closing connection may take to finish the requests being served and to write its answers.
    pub drain_max: Duration,
}

impl ConnectionLimits {
    /// Apache's figures where it has them (frame 16 MiB, idle 120 s), ours elsewhere.
    pub fn standard() -> ConnectionLimits {
        ConnectionLimits {
            frame_bytes_max: 16 * MIB,
            prompt_in_flight_max: 1024,
            held_in_flight_max: 16_384,
            in_flight_bytes_max: 64 * MIB,
            write_queue_frames_max: 4096,
            write_queue_bytes_max: 16 * MIB,
            idle_max: Duration::from_secs(120),
            drain_max: Duration::from_secs(5),
        }
    }

    pub(crate) fn check(&self) {
        assert!(self.frame_bytes_max > 8);
        assert!(i32::try_from(self.frame_bytes_max).is_ok());
        assert!(self.prompt_in_flight_max > 0);
        assert!(self.held_in_flight_max > 0);
        assert!(u32::try_from(self.in_flight_bytes_max).is_ok_and(|max| max > 0));
        assert!(self.write_queue_frames_max > 0);
        assert!(u32::try_from(self.write_queue_bytes_max).is_ok_and(|max| max > 0));
        assert!(!self.idle_max.is_zero());
    }
}

/// A [`Server`](crate::Server)'s limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Each connection's limits.
    pub connection: ConnectionLimits,
    /// Connections at a time; one more is accepted and closed at once.
    pub connections_max: usize,
    /// Requests of this server to its peers that wait for a response at a time, over all connections.
    pub requests_max: u32,
    /// One-way requests of this server that are not written yet, over all connections.
    pub oneways_max: u32,
    /// How long a one-way request may wait for its place in the write queue.
    pub oneway_wait_max: Duration,
}

impl ServerConfig {
    /// Apache's figures: 64 requests and 256 one-way requests to clients at a time.
    pub fn standard() -> ServerConfig {
        ServerConfig {
            connection: ConnectionLimits::standard(),
            connections_max: 65_535,
            requests_max: 64,
            oneways_max: 256,
            oneway_wait_max: Duration::from_secs(3),
        }
    }
}

/// A [`Client`](crate::Client)'s limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Each connection's limits.
    pub connection: ConnectionLimits,
    /// How long an attempt to connect may take, name lookup included.
    pub connect_max: Duration,
    /// Addresses with a connection or an attempt at a time.
    pub connections_max: usize,
    /// Requests that wait for a response at a time, over all connections.
    pub requests_max: u32,
    /// One-way requests that are not written yet, over all connections.
    pub oneways_max: u32,
    /// How long a one-way request on a [`Connection`](crate::Connection) may wait for its place in the write queue.
    pub oneway_wait_max: Duration,
    /// A call that timed out after waiting at least this long, while the peer sent nothing on the connection, ends the connection (Apache
    /// ends it after any time-out, `clientCloseSocketIfTimeout`).
    pub silence_min: Duration,
}

impl ClientConfig {
    /// Apache's figures: connect 3 s, 65,535 requests and as many one-way requests at a time.
    pub fn standard() -> ClientConfig {
        ClientConfig {
            connection: ConnectionLimits::standard(),
            connect_max: Duration::from_secs(3),
            connections_max: 65_535,
            requests_max: 65_535,
            oneways_max: 65_535,
            oneway_wait_max: Duration::from_secs(3),
            silence_min: Duration::from_millis(100),
        }
    }
}
