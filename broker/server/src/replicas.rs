//! The broker's side of replication: waiting for slaves as a master, following a master as a slave.
use crate::config::{BrokerRole, ClusterConfig, ServerConfig};
use crate::error::ServerError;
use protocol::PhysicalOffset;
use protocol::body::{HaClientRuntimeInfo, HaConnectionRuntimeInfo, HaRuntimeInfo};
use replication::{HaMaster, HaSlave, MasterAddr, SlavePhase};
use rt::sync::CancellationToken;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tracing::warn;

/// Replication as this broker takes part in it.
pub(crate) enum Replicas {
    Master {
        ha: HaMaster,
        /// Slaves that must hold a message before it is acknowledged.
        slaves_needed: usize,
        timeout: Duration,
    },
    Slave(HaSlave),
}

impl Replicas {
    /// Takes the port for slaves, which stays closed to them until the broker is whole, or stands ready to follow a master.
    pub async fn start(
        cluster: &ClusterConfig,
        config: &ServerConfig,
        store: &Arc<Store>,
        client: &remoting::Client,
        shutdown: &CancellationToken,
    ) -> Result<Replicas, ServerError> {
        if config.role == BrokerRole::Slave {
            let ha = HaSlave::start(config.as_slave.clone(), Arc::clone(store), client.clone(), shutdown);
            return Ok(Replicas::Slave(ha));
        }
        let ha = HaMaster::bind(config.as_master.clone(), Arc::clone(store), shutdown).await?;
        let waits = config.role == BrokerRole::SyncMaster;
        let slaves_needed = if waits { cluster.in_sync_replicas.saturating_sub(1) } else { 0 };
        Ok(Replicas::Master { ha, slaves_needed, timeout: config.timing.slave_timeout })
    }

    /// The port slaves connect to.
    pub fn ha_addr(&self) -> Option<SocketAddr> {
        match self {
            Replicas::Master { ha, .. } => Some(ha.local_addr()),
            Replicas::Slave(_) => None,
        }
    }

    /// Waits until enough slaves hold the log up to `end`; false if they did not in time.
    pub async fn wait(&self, end: PhysicalOffset) -> bool {
        match self {
            Replicas::Master { ha, slaves_needed, timeout } if *slaves_needed > 0 => {
                ha.wait_replicated(end, *slaves_needed, *timeout).await.is_ok()
            }
            Replicas::Master { .. } | Replicas::Slave(_) => true,
        }
    }

    /// Whether a slave receives from its master now.
    pub fn master_connected(&self) -> bool {
        match self {
            Replicas::Master { .. } => false,
            Replicas::Slave(ha) => ha.state().phase == SlavePhase::Transfer,
        }
    }

    /// Follows the master at the HA address `ha`, whose requests go to `remoting`.
    pub async fn follow(&self, ha: &str, remoting: Option<String>) {
        let Replicas::Slave(slave) = self else { return };
        let resolved = match ha.parse::<SocketAddr>() {
            Ok(address) => Some(address),
            Err(_) => rt::net::lookup_host(ha).await.ok().and_then(|all| all.first().copied()),
        };
        match resolved {
            Some(address) => slave.set_master(Some(MasterAddr { ha: address, remoting })),
            None => warn!(ha, "the master's HA address cannot be resolved"),
        }
    }

    /// The running master side, if this broker is one.
    pub fn master(&self) -> Option<&HaMaster> {
        match self {
            Replicas::Master { ha, .. } => Some(ha),
            Replicas::Slave(_) => None,
        }
    }

    /// The first place of the log that a slave still needs, which is connected or was not long ago.
    pub fn needed_from(&self) -> Option<PhysicalOffset> {
        self.master().and_then(HaMaster::needed_from)
    }

    /// What GET_BROKER_HA_STATUS tells.
    pub fn info(&self, log_end: PhysicalOffset) -> HaRuntimeInfo {
        match self {
            Replicas::Master { ha, .. } => {
                let connections = ha.slaves().into_iter().map(|slave| HaConnectionRuntimeInfo {
                    addr: slave.addr.to_string(),
                    diff: i64::try_from(slave.behind_bytes).unwrap_or(i64::MAX),
                    in_sync: slave.in_sync,
                    slave_ack_offset: slave.acked.map_or(-1, PhysicalOffset::get),
                    transfer_from_where: slave.transfer_from.map_or(-1, PhysicalOffset::get),
                    transferred_byte_in_second: 0,
                });
                HaRuntimeInfo {
                    ha_connection_info: connections.collect(),
                    in_sync_slave_nums: i32::try_from(ha.in_sync_slaves()).unwrap_or(i32::MAX),
                    master: true,
                    master_commit_log_max_offset: log_end.get(),
                    ..HaRuntimeInfo::default()
                }
            }
            Replicas::Slave(ha) => {
                let state = ha.state();
                let client = HaClientRuntimeInfo {
                    last_read_timestamp: state.last_read_ms,
                    last_write_timestamp: state.last_report_ms,
                    master_addr: state.master.map(|master| master.ha.to_string()),
                    max_offset: state.log_end.get(),
                    ..HaClientRuntimeInfo::default()
                };
                HaRuntimeInfo { ha_client_runtime_info: client, ..HaRuntimeInfo::default() }
            }
        }
    }

    /// Ends replication.
    pub async fn shutdown(&self) {
        match self {
            Replicas::Master { ha, .. } => ha.shutdown().await,
            Replicas::Slave(ha) => ha.shutdown().await,
        }
    }
}
