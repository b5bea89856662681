/// What the network did so far, counted so that a fault without effect shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkEffects {
    /// Segments of data that reached a kernel.
    pub segments_delivered: u64,
    /// Segments (also SYN, FIN, RST) that met a blocked link.
    pub dropped_by_block: u64,
    /// Segments that a lossy link lost.
    pub dropped_by_loss: u64,
    /// Segments that met a node without power.
    pub dropped_by_silence: u64,
    /// SYNs that met a full accept queue.
    pub dropped_by_backlog: u64,
    /// Segments that travelled by a latency set for their link.
    pub delayed: u64,
    /// Retransmission timers that sent again.
    pub retransmissions: u64,
    /// `connect` ended with `ConnectionRefused`.
    pub connections_refused: u64,
    /// `connect` ended with `TimedOut`.
    pub connections_timed_out: u64,
    /// Established streams that ended with `TimedOut`.
    pub streams_timed_out: u64,
    /// Established ends that a reset ended.
    pub resets: u64,
    /// Name lookups that failed or answered from the table of the run.
    pub names_changed: u64,
}
