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
    /// Probes of an idle peer (keep-alive) or of a window without room.
    pub probes: u64,
    /// `connect` ended with `ConnectionRefused`.
    pub connections_refused: u64,
    /// `connect` ended with `TimedOut`.
    pub connections_timed_out: u64,
    /// Established streams that ended with `TimedOut`.
    pub streams_timed_out: u64,
    /// Established ends that a reset ended.
    pub resets: u64,
    /// Packets that a rule dropped in silence.
    pub dropped_by_rule: u64,
    /// Packets that a rule rejected.
    pub rejected_by_rule: u64,
    /// Packets that a rule delayed.
    pub delayed_by_rule: u64,
    /// Packets that waited for the bandwidth of their link.
    pub queued: u64,
    /// Packets that met a full queue of a narrow link.
    pub dropped_by_queue: u64,
    /// Datagrams that reached a socket.
    pub datagrams_delivered: u64,
    /// Datagrams that met a full receive buffer.
    pub dropped_by_buffer: u64,
    /// Datagrams that met no socket.
    pub datagrams_unreachable: u64,
    /// Datagrams that were sent once and travelled twice.
    pub duplicated: u64,
    /// Datagrams that were held back so that later ones may overtake them.
    pub reordered: u64,
    /// Name lookups that failed or answered from the table of the run.
    pub names_changed: u64,
}
