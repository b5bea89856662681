//! The outside world (clock, network, disk, tasks, entropy) behind one API whose names follow tokio.
//!
//! **Owns** every touch of the world, in two halves of one shape: the *real* half (`cfg(not(madsim))`) is tokio and system
//! calls; the *simulated* half (`cfg(madsim)`) is a world of our own, run inside one poll of madsim's `block_on`.
//! The type names are the same in both, so a program written on `rt` is one source with two builds.
//!
//! **Must never know** any program that runs on it: no broker, no scenario, no plan.
//!
//! | module | what it gives |
//! |---|---|
//! | [`time`] | monotonic [`time::Instant`], wall clock of the node, `sleep`, `timeout`, `interval` |
//! | [`task`] | `spawn`, `JoinHandle`, [`task::TaskGroup`] (tasks with an owner), `yield_now` |
//! | [`net`] | TCP listener and stream, UDP socket, name lookup |
//! | [`fs`] | positional files; what is volatile until which sync |
//! | [`io`], [`sync`] | runtime-free parts of tokio, the same in both halves |
//! | [`rand`] | named streams of entropy |
//! | [`select!`], [`probe!`], [`sometimes!`], [`always!`], [`buggify!`], [`dawdle!`] | biased select; marks for the explorer |
//! | `world` | simulation only: nodes, crash, faults, findings, trace |
//!
//! Where the halves differ on purpose stands in `PARITY.md`.

#[cfg(not(madsim))]
mod real;
#[cfg(not(madsim))]
use real as half;
#[cfg(madsim)]
mod sim;
#[cfg(madsim)]
use sim as half;

mod cancelled;
mod durable;
mod keep_alive;
mod open_options;
pub mod probe;
pub mod rand;
mod select;
mod task_group;

/// Starts the program: builds the runtime and drives `main` to its end. Production only; a simulation starts with `world::run`.
#[cfg(not(madsim))]
pub use half::block_on;
/// Simulation only: builds a world, its nodes and its faults, and runs them from a seed.
///
/// `main` runs on node 0, the experimenter's desk, which has no faults; the run ends when `main` ends, or with the first finding.
#[cfg(madsim)]
pub mod world {
    pub use crate::sim::clock::ClockConfig;
    pub use crate::sim::control::{
        Limits, LogContext, Outcome, WorldConfig, add_node, add_node_with_clock, crash, crash_at, current_node,
        disk_operations, elapsed, forget_crash_points, freeze_clock, incarnation, ip, is_up, log_context, node_name,
        nodes, on_checkpoint, on_node_end, packets, pause, power_loss, power_on, record, request_stop, resume,
        set_clock_drift_ppm, set_poll_cost, spawn_on, step_wall_clock, tasks, thaw_clock, timers, trace_tail,
        unix_nanos_of,
    };
    pub use crate::sim::crash::{CrashKind, CrashPoint, NodeEnd};
    pub use crate::sim::finding::{Finding, FindingKind};
    pub use crate::sim::fs::control as disk;
    pub use crate::sim::fs::{
        BadSectors, DiskAnomaly, DiskChance, DiskConfig, DiskEffects, DiskError, DiskFault, DiskFaultId, DiskLatency,
        DiskOperation,
    };
    pub use crate::sim::net::control as network;
    pub use crate::sim::net::{
        Bandwidth, DATAGRAM_OVERHEAD, Latency, NetworkConfig, NetworkEffects, Packet, PacketKind, Reordering, Rule,
        Sockets, Verdict,
    };
    pub use crate::sim::node::NodeId;
    pub use crate::sim::policy::Policy;
    pub use crate::sim::probes::{Buggify, ProbeReport, Sometimes};
    pub use crate::sim::run::{run, run_test, run_test_with};
    pub use crate::sim::sight::{Fate, Flow, Sight, look_on};
    pub use crate::sim::trace::{Checkpoint, Event, TraceEvent};
}

/// Reading and writing byte streams: tokio's runtime-free traits and adapters.
pub mod io {
    pub use tokio::io::{
        AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter,
        ReadBuf,
    };
}

/// Channels, locks and tokens: tokio's runtime-free ones, the same in both halves (but for `watch`, whose waiters tokio wakes in a
/// random order), and [`cancelled`](sync::cancelled), a cheaper wait for a token.
pub mod sync {
    pub use tokio::sync::{
        Mutex, MutexGuard, Notify, OnceCell, OwnedSemaphorePermit, RwLock, Semaphore, SemaphorePermit, TryAcquireError,
        broadcast, mpsc, oneshot,
    };
    pub use tokio_util::sync::{CancellationToken, DropGuard};

    pub use crate::cancelled::cancelled;

    #[cfg(madsim)]
    pub use crate::sim::watch;
    #[cfg(not(madsim))]
    pub use tokio::sync::watch;
}

/// Monotonic time, the node's wall clock, and timers.
pub mod time {
    pub use crate::half::time::{
        Elapsed, Instant, Interval, MissedTickBehavior, Sleep, Timeout, interval, interval_at, sleep, sleep_until,
        timeout, timeout_at, unix_nanos,
    };
    pub use std::time::Duration;

    /// The node's wall clock in milliseconds since 1970: RocketMQ's timestamps. It may step both ways; never measure with it.
    pub fn unix_ms() -> i64 {
        unix_nanos() / 1_000_000
    }
}

/// Tasks. Spawn only with an owner: see [`task::TaskGroup`].
pub mod task {
    pub use crate::half::task::{AbortHandle, JoinError, JoinHandle, spawn, yield_now};
    pub use crate::task_group::TaskGroup;
}

/// TCP, UDP, and names to addresses.
pub mod net {
    pub use crate::half::net::{
        OwnedReadHalf, OwnedWriteHalf, TcpListener, TcpStream, UdpSocket, keep_alive, lookup_host, set_keep_alive,
    };
    pub use crate::keep_alive::KeepAlive;
}

/// Positional files. `write_at` is volatile until [`fs::File::sync_data`]; a created, renamed or removed name is volatile until
/// [`fs::sync_dir`] of its directory.
pub mod fs {
    pub use crate::durable::{create_dir_durably, read_or_backup, replace};
    pub use crate::open_options::OpenOptions;

    pub use crate::half::fs::{
        File, Metadata, create_dir, create_dir_all, free_bytes, metadata, read, read_dir, remove_dir, remove_file,
        rename, sync_dir,
    };
}

/// The operator's wish to end the process.
pub mod signal {
    pub use crate::half::signal::termination;
}

#[doc(hidden)]
pub mod macro_support {
    #[cfg(madsim)]
    pub use crate::half::probes::{always, buggify, hit, sometimes};
    pub use tokio::select;
}
