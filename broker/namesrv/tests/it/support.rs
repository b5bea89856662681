//! A name server, and what a broker and a client send it.

use std::future::Future;
use std::time::Duration;

use namesrv::{NameServer, NamesrvConfig};
use protocol::body::{DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigSerializeWrapper, TopicRouteData};
use protocol::header::{GetRouteInfoRequest, Header, RegisterBrokerRequest};
use protocol::{Command, RequestCode, ResponseCode, json};
use remoting::{Client, ClientConfig};
use rt::sync::CancellationToken;

pub const TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a test body in a simulated world.
#[cfg(madsim)]
#[track_caller]
pub fn run<F: Future<Output = ()> + 'static>(body: impl FnOnce() -> F + 'static) {
    rt::world::run_test(body);
}

/// Runs a test body on the real machine.
#[cfg(not(madsim))]
#[track_caller]
pub fn run<F: Future<Output = ()>>(body: impl FnOnce() -> F) {
    rt::block_on(body()).expect("the runtime starts");
}

/// A name server and one peer of it.
pub struct Bench {
    pub server: NameServer,
    pub addr: String,
    pub client: Client,
    pub token: CancellationToken,
}

impl Bench {
    pub async fn start(change: impl FnOnce(&mut NamesrvConfig)) -> Self {
        let token = CancellationToken::new();
        let mut config = NamesrvConfig::standard("127.0.0.1:0".parse().unwrap());
        change(&mut config);
        let server = NameServer::start(config, &token).await.unwrap();
        let addr = server.local_addr().to_string();
        let client = Client::new(ClientConfig::standard(), None, &token);
        Self { server, addr, client, token }
    }

    /// Another process: a client with connections of its own.
    pub fn other(&self) -> Client {
        Client::new(ClientConfig::standard(), None, &self.token)
    }

    pub async fn send(&self, command: Command) -> Command {
        let answer = self.client.request(&self.addr, command, TIMEOUT).await.unwrap();
        self.server.check_invariants();
        answer
    }

    pub async fn ask(&self, code: RequestCode, header: &impl Header) -> Command {
        self.send(Command::request(code, header)).await
    }

    pub async fn route(&self, topic: &str) -> Option<TopicRouteData> {
        let header = GetRouteInfoRequest { topic: topic.to_owned(), accept_standard_json_only: None };
        let answer = self.ask(RequestCode::GetRouteinfoByTopic, &header).await;
        match answer.response_code() {
            Some(ResponseCode::Success) => Some(json::from_slice(&answer.body).unwrap()),
            Some(ResponseCode::TopicNotExist) => None,
            _ => panic!("{answer}"),
        }
    }
}

/// A registration of master `b` with topics `T` and `U`.
pub fn registration(expiry: Option<Duration>) -> Command {
    let wrapper = TopicConfigSerializeWrapper {
        data_version: DataVersion::new(1),
        topic_config_table: ["T", "U"].map(|topic| (topic.to_owned(), TopicConfig::new(topic, 4))).into(),
        ..TopicConfigSerializeWrapper::default()
    };
    let body = RegisterBrokerBody { topic_config_serialize_wrapper: wrapper, ..RegisterBrokerBody::default() };
    let body = json::to_vec(&body).unwrap();
    let header = RegisterBrokerRequest {
        broker_name: "b".to_owned(),
        broker_addr: "10.0.0.1:10911".to_owned(),
        cluster_name: "C".to_owned(),
        ha_server_addr: "10.0.0.1:10912".to_owned(),
        broker_id: 0,
        heartbeat_timeout_millis: expiry.map(|expiry| i64::try_from(expiry.as_millis()).unwrap()),
        enable_acting_master: Some(false),
        compressed: false,
        body_crc32: i32::try_from(protocol::message::crc32(&body)).unwrap(),
        zone_name: None,
    };
    Command::request(RequestCode::RegisterBroker, &header).with_body(body)
}

pub fn check_success(answer: &Command) {
    assert_eq!(answer.response_code(), Some(ResponseCode::Success), "{answer}");
}
