//! Requests to calls of the core, results to answers. Each family of codes is a file.

mod brokers;
mod clients;
mod config;
mod topics;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use protocol::{Command, HeaderError, JsonError, RegisterBodyError, RequestCode, ResponseCode};
use remoting::{BoxFuture, Connection, Handler};
use rt::time::Instant;
use tracing::{debug, info};

use crate::config::{AnswerConfig, NamesrvConfig};
use crate::error::KvConfigError;
use crate::kv_config::KvConfig;
use crate::route_table::RouteTable;
use crate::server::KvFile;

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    RegisterBody(#[from] RegisterBodyError),
    #[error(transparent)]
    Register(#[from] crate::error::RegisterRefused),
    #[error(transparent)]
    KvFile(#[from] KvConfigError),
    #[error("crc32 not match")]
    Checksum,
    #[error("disable")]
    Disabled,
    #[error("name server not ready")]
    NotReady,
    #[error("No topic route info in name server for the topic: {topic}")]
    NoRoute { topic: String },
    #[error("No config item, Namespace: {namespace} Key: {key}")]
    NoConfig { namespace: String, key: String },
    #[error(" request type {code} not supported")]
    Unsupported { code: i32 },
}

impl Refused {
    const fn code(&self) -> ResponseCode {
        match self {
            Self::NoRoute { .. } => ResponseCode::TopicNotExist,
            Self::NoConfig { .. } => ResponseCode::QueryNotFound,
            Self::Unsupported { .. } => ResponseCode::RequestCodeNotSupported,
            Self::Header(_)
            | Self::Json(_)
            | Self::RegisterBody(_)
            | Self::Register(_)
            | Self::KvFile(_)
            | Self::Checksum
            | Self::Disabled
            | Self::NotReady => ResponseCode::SystemError,
        }
    }
}

type Answer = Result<Command, Refused>;

/// What all requests share.
pub(crate) struct Shared {
    routes: Mutex<RouteTable>,
    kv: Mutex<KvConfig>,
    kv_file: KvFile,
    answers: AnswerConfig,
    broker_expiry: Duration,
    started: Instant,
}

impl Shared {
    pub(crate) fn new(config: &NamesrvConfig, kv: KvConfig) -> Arc<Self> {
        Arc::new(Self {
            routes: Mutex::new(RouteTable::new()),
            kv: Mutex::new(kv),
            kv_file: KvFile::new(config.kv_config_path.clone()),
            answers: config.answers.clone(),
            broker_expiry: config.broker_expiry,
            started: Instant::now(),
        })
    }

    pub(crate) fn routes(&self) -> MutexGuard<'_, RouteTable> {
        self.routes.lock().expect("no code that can panic runs under this lock")
    }

    fn kv(&self) -> MutexGuard<'_, KvConfig> {
        self.kv.lock().expect("no code that can panic runs under this lock")
    }

    /// Time since the start: the core's clock.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// A connection has ended.
    pub(crate) fn connection_lost(&self, connection: &Connection) {
        let lost = {
            let mut routes = self.routes();
            let lost = routes.connection_lost(connection.id().as_u64());
            // Most connections are clients', whose end changes nothing.
            if !lost.is_empty() {
                routes.check_invariants();
            }
            lost
        };
        for key in lost {
            info!(broker = %key.name, addr = %key.addr, "broker unregistered: connection lost");
        }
    }

    async fn serve(self: Arc<Self>, connection: Connection, request: Command) -> Option<Command> {
        let answer = match request.request_code() {
            Some(code) => self.dispatch(code, &connection, &request).await,
            None => Err(Refused::Unsupported { code: request.code }),
        };
        Some(answer.unwrap_or_else(|refused| {
            debug!(%request, %refused, "request refused");
            Command::reply(&request, refused.code()).with_remark(refused.to_string())
        }))
    }

    async fn dispatch(&self, code: RequestCode, connection: &Connection, request: &Command) -> Answer {
        match code {
            RequestCode::RegisterBroker => self.register_broker(connection, request),
            RequestCode::UnregisterBroker => self.unregister_broker(connection, request),
            RequestCode::BrokerHeartbeat => self.broker_heartbeat(connection, request),
            RequestCode::QueryDataVersion => self.query_data_version(connection, request),
            RequestCode::GetBrokerMemberGroup => self.member_group(request),
            RequestCode::GetRouteinfoByTopic => self.route(request),
            RequestCode::GetBrokerClusterInfo => self.cluster_info(request),
            RequestCode::GetAllTopicListFromNameserver
            | RequestCode::GetTopicsByCluster
            | RequestCode::GetSystemTopicListFromNs
            | RequestCode::GetUnitTopicList
            | RequestCode::GetHasUnitSubTopicList
            | RequestCode::GetHasUnitSubUnunitTopicList => self.topic_list(code, request),
            RequestCode::DeleteTopicInNamesrv => self.delete_topic(request),
            RequestCode::RegisterTopicInNamesrv => self.register_topic(request),
            RequestCode::WipeWritePermOfBroker => self.wipe_write_permission(request),
            RequestCode::AddWritePermOfBroker => self.add_write_permission(request),
            RequestCode::PutKvConfig => self.put_kv(request).await,
            RequestCode::GetKvConfig => self.get_kv(request),
            RequestCode::DeleteKvConfig => self.delete_kv(request).await,
            RequestCode::GetKvlistByNamespace => self.kv_namespace(request),
            RequestCode::GetNamesrvConfig => self.properties(request),
            _ => Err(Refused::Unsupported { code: code.as_i32() }),
        }
    }
}

/// The handler that the server calls.
pub(crate) struct Requests(pub(crate) Arc<Shared>);

impl Handler for Requests {
    fn handle(&self, connection: Connection, request: Command) -> BoxFuture<'static, Option<Command>> {
        Box::pin(Arc::clone(&self.0).serve(connection, request))
    }

    fn connection_closed(&self, connection: &Connection) {
        self.0.connection_lost(connection);
    }
}

fn success(request: &Command) -> Command {
    Command::reply(request, ResponseCode::Success)
}
