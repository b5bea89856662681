//! What the wires of a run are like before any fault.

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
}

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
        }
    }
}
