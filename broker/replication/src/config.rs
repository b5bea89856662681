use std::net::SocketAddr;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// The master's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaMasterConfig {
    /// Where slaves connect (`haListenPort`).
    pub listen: SocketAddr,
    /// A slave that has been sent nothing for so long gets a heartbeat (`haSendHeartbeatInterval`).
    pub heartbeat_interval: Duration,
    /// A slave that has reported nothing for so long is disconnected (`haHousekeepingInterval`).
    pub housekeeping: Duration,
    /// Largest body of one frame, in bytes (`haTransferBatchSize`).
    pub batch_bytes: u32,
    /// A slave whose acknowledged end is this many bytes or more behind does not count as in sync (`haMaxGapNotInSync`).
    pub gap_not_in_sync: u64,
    /// Slave connections at a time; one more is closed at once.
    pub slaves_max: usize,
    /// The log that a slave needs is kept for it, unless the disk fills up, until it has been away for longer (`hotfireSlaveRetainTime`).
    pub away_max: Duration,
}

impl HaMasterConfig {
    /// Apache's figures.
    pub fn standard(listen: SocketAddr) -> HaMasterConfig {
        HaMasterConfig {
            listen,
            heartbeat_interval: Duration::from_secs(5),
            housekeeping: Duration::from_secs(20),
            batch_bytes: 32 * 1024,
            gap_not_in_sync: 256 * MIB,
            slaves_max: 64,
            away_max: Duration::from_secs(24 * 3600),
        }
    }
}

/// What a slave does when its log is not a prefix of its master's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergencePolicy {
    /// Cut the slave's log to the common prefix if that drops at most so many bytes, else refuse.
    Truncate {
        /// Largest number of bytes that are dropped without an operator: far more than a power loss takes from an asynchronously flushed
        /// log, far less than what a mistaken pairing of two brokers would.
        bytes_max: u64,
        /// The same if nothing at all is common. It is small: a master whose disk was replaced must not empty the only good copy.
        everything_bytes_max: u64,
    },
    /// Never cut: the slave stays disconnected, with an error in its log, until an operator acts.
    Refuse,
}

/// The slave's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaSlaveConfig {
    /// Names this slave to its master, so that two connections of it are counted once: broker name and id, for instance.
    pub slave_id: String,
    /// Apache's 5 s: how long connecting to the master may take.
    pub connect_max: Duration,
    /// Pause after a failed or ended connection.
    pub reconnect_pause: Duration,
    /// A master that has been told nothing for so long is told the slave's end again (`haSendHeartbeatInterval`).
    pub report_interval: Duration,
    /// A master that has sent nothing for so long is disconnected (`haHousekeepingInterval`).
    pub housekeeping: Duration,
    /// Largest body of one frame accepted, in bytes: Apache's read buffer of 4 MiB less the frame's header.
    pub body_bytes_max: u32,
    /// First range compared with the master, in bytes before the slave's end. Two maximal records are enough to be sure that a whole record
    /// with its store time lies in it.
    pub tail_bytes: u64,
    /// How long one comparison request may take.
    pub compare_max: Duration,
    /// What to do if the logs differ.
    pub divergence: DivergencePolicy,
}

impl HaSlaveConfig {
    /// Apache's figures, and a check of 9 MiB.
    pub fn standard(slave_id: impl Into<String>) -> HaSlaveConfig {
        HaSlaveConfig {
            slave_id: slave_id.into(),
            connect_max: Duration::from_secs(5),
            reconnect_pause: Duration::from_secs(5),
            report_interval: Duration::from_secs(5),
            housekeeping: Duration::from_secs(20),
            body_bytes_max: 4 * 1024 * 1024 - 12,
            tail_bytes: 9 * MIB,
            compare_max: Duration::from_secs(3),
            divergence: DivergencePolicy::Truncate { bytes_max: 256 * MIB, everything_bytes_max: MIB },
        }
    }
}

/// Where a slave finds its master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterAddr {
    /// The HA port.
    pub ha: SocketAddr,
    /// The remoting address (`host:port`) for the comparison of logs. Without one the slave replicates as Apache's does, and warns.
    pub remoting: Option<String>,
}
