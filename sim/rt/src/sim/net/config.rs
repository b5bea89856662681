//! What the wires of a run are like before any fault.
use crate::sim::rand::Rng;
use std::ops::RangeInclusive;

/// How long a segment travels, in nanoseconds: uniform between `min` and `max`, and now and then up to `tail_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Shortest time.
    pub min_ns: u64,
    /// Longest usual time.
    pub max_ns: u64,
    /// One segment in so many takes up to `tail_max_ns`; 0 means none.
    pub tail_one_in: u64,
    /// Longest time of a straggler.
    pub tail_max_ns: u64,
}

impl Latency {
    /// Uniform between two bounds, without stragglers.
    pub const fn uniform(min_ns: u64, max_ns: u64) -> Latency {
        assert!(min_ns <= max_ns);
        Latency { min_ns, max_ns, tail_one_in: 0, tail_max_ns: max_ns }
    }

    /// How long one packet travels.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        if self.tail_one_in > 0 && rng.below(self.tail_one_in) == 0 {
            return self.min_ns + rng.below(self.tail_max_ns.saturating_sub(self.min_ns) + 1);
        }
        match self.max_ns.saturating_sub(self.min_ns) {
            0 => self.min_ns,
            width => self.min_ns + rng.below(width + 1),
        }
    }
}

/// How much a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Bytes a second, headers of 40 bytes a packet included; at least 1.
    pub bytes_per_second: u64,
    /// Bytes that may wait for their turn; a packet beyond them is lost.
    pub queue_bytes: u64,
}

/// How datagrams of a link get out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// So many of a million are held back.
    pub ppm: u32,
    /// For that long at most, in nanoseconds; the others overtake them meanwhile.
    pub held_ns_max: u64,
}

/// The network of a run. Every number is a default of Linux or named as ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Travel time between two nodes (ours: a data centre with a tail).
    pub latency: Latency,
    /// Travel time within a node, never lost or blocked.
    pub loopback_ns: u64,
    /// Bytes that a writer may hand over before the peer's kernel has acknowledged them.
    pub send_buffer: usize,
    /// Bytes that the peer's kernel keeps for a reader that does not read.
    pub receive_buffer: usize,
    /// One transmission in so many is cut at a random place; 0 means never.
    pub split_one_in: u64,
    /// First retransmission time-out; it doubles with each try.
    pub rto_ns: u64,
    /// Longest retransmission time-out.
    pub rto_ns_max: u64,
    /// After this long without an acknowledgement a stream ends with `TimedOut` (Linux: about 15 minutes).
    pub retransmit_limit_ns: u64,
    /// SYNs sent, 1, 2, 4, … seconds apart, before `connect` ends with `TimedOut`: 6 give 63 seconds.
    pub syn_attempts: u8,
    /// Established connections that a listener keeps for `accept`; a SYN beyond it is dropped.
    pub backlog: usize,
    /// How long the side that closed first keeps the four-tuple of a connection (Linux: 60 seconds, half of it is called MSL).
    pub time_wait_ns: u64,
    /// Port numbers for clients and for sockets that bind to port 0 (Linux: `ip_local_port_range`), for streams and for datagrams.
    pub ephemeral_ports: RangeInclusive<u16>,
    /// Receive buffer of a datagram socket, in bytes (Linux: `rmem_default`). A datagram counts with its length and
    /// [`DATAGRAM_OVERHEAD`]; one that arrives when the buffer is full is lost.
    pub datagram_buffer: usize,
}

/// What Linux's kernel adds to the length of a small datagram in a receive buffer: a socket buffer and its rounding.
pub const DATAGRAM_OVERHEAD: usize = 768;

impl Default for NetworkConfig {
    fn default() -> Self {
        NetworkConfig {
            latency: Latency { min_ns: 100_000, max_ns: 1_000_000, tail_one_in: 256, tail_max_ns: 5_000_000 },
            loopback_ns: 5_000,
            send_buffer: 64 << 10,
            receive_buffer: 64 << 10,
            split_one_in: 16,
            rto_ns: 200_000_000,
            rto_ns_max: 120_000_000_000,
            retransmit_limit_ns: 924_000_000_000,
            syn_attempts: 6,
            backlog: 128,
            time_wait_ns: 60_000_000_000,
            ephemeral_ports: 32_768..=60_999,
            datagram_buffer: 212_992,
        }
    }
}
