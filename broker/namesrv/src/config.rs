//! Settings of a name server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use remoting::ServerConfig;

/// Settings of a name server; in parentheses RocketMQ's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesrvConfig {
    /// Where to listen (`bindAddress`, `listenPort`). Port 0: one the system chooses.
    pub listen: SocketAddr,
    /// File of the key-value configuration (`kvConfigPath`); `None`: it is lost with the process.
    pub kv_config_path: Option<PathBuf>,
    /// How often silent brokers are looked for (`scanNotActiveBrokerInterval`).
    pub scan_interval: Duration,
    /// After this silence a broker that does not say otherwise counts as dead. Fixed at 120 s in RocketMQ.
    pub broker_expiry: Duration,
    /// Limits of the connections.
    pub remoting: ServerConfig,
    /// What is answered.
    pub answers: AnswerConfig,
}

/// What a name server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerConfig {
    /// Routes carry the order configuration of their topic (`orderMessageEnable`).
    pub order_message: bool,
    /// Brokers get the order configuration when they register (`returnOrderTopicConfigToBroker`).
    pub order_config_to_brokers: bool,
    /// All topics may be listed (`enableAllTopicList`).
    pub all_topic_list: bool,
    /// Topics may be listed by cluster and unit (`enableTopicList`).
    pub topic_list: bool,
    /// A slave may be shown in the place of a missing master (`supportActingMaster`).
    pub acting_master: bool,
    /// A registration removes the topics that it lacks (`deleteTopicWithBrokerRegistration`).
    pub delete_missing_topics: bool,
    /// For so long after the start no route is given (`needWaitForService`, `waitSecondsForService`).
    pub wait_for_service: Option<Duration>,
}

impl NamesrvConfig {
    /// RocketMQ's figures.
    #[must_use]
    pub fn standard(listen: SocketAddr) -> Self {
        Self {
            listen,
            kv_config_path: None,
            scan_interval: Duration::from_secs(5),
            broker_expiry: Duration::from_secs(120),
            remoting: ServerConfig::standard(),
            answers: AnswerConfig::standard(),
        }
    }
}

impl AnswerConfig {
    /// RocketMQ's choices.
    #[must_use]
    pub const fn standard() -> Self {
        Self {
            order_message: false,
            order_config_to_brokers: true,
            all_topic_list: true,
            topic_list: true,
            acting_master: false,
            delete_missing_topics: false,
            wait_for_service: None,
        }
    }
}
