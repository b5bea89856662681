//! Requests that real clients sent to a real name server, sent to ours: same code, same header fields, same shape of body.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bytes::BytesMut;
use protocol::body::{RegisterBrokerBody, TopicConfig};
use protocol::header::{GetRouteInfoRequest, RegisterBrokerRequest};
use protocol::{Command, FrameLimits, RequestCode, ResponseCode, json};
use serde_json::Value;

use crate::support::{Bench, check_success, registration, run};

const PEERS: &[&str] =
    &["java-5.3.3", "java-4.9.8", "go", "java-5.3.3-binary", "all-binary", "java-5.3.3-signed", "java-5.3.3-vip"];

fn decode(hex: &Value) -> Option<Command> {
    let hex = hex.as_str()?;
    let bytes: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    Command::decode(&mut BytesMut::from(&bytes[..]), FrameLimits::ROCKETMQ).unwrap()
}

/// What a peer asked and was answered, in an order in which the answers can be had again: what deletes comes last.
fn exchanges(peer: &str) -> Vec<(Command, Command)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/wire").join(peer);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut exchanges = Vec::new();
    for file in files {
        let whole: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        for exchange in std::iter::once(&whole).chain(whole["variants"].as_array().unwrap()) {
            if exchange["to"].as_str().unwrap().starts_with("namesrv")
                && let (Some(request), Some(response)) =
                    (decode(&exchange["request_hex"]), decode(&exchange["response_hex"]))
            {
                exchanges.push((request, response));
            }
        }
    }
    exchanges.sort_by_key(|(request, response)| {
        let stage = match (request.code, response.code) {
            // What was asked for before it was there.
            (105, 17) => -1,
            (102 | 216, _) => 1,
            // What was asked for once it was deleted.
            (101, 22) => 2,
            _ => 0,
        };
        (stage, request.code)
    });
    exchanges
}

/// Registers a broker that serves every topic for which the peer got a route.
async fn register_topics(bench: &Bench, exchanges: &[(Command, Command)]) {
    let mut command = registration(None);
    let mut body: RegisterBrokerBody = json::from_slice(&command.body).unwrap();
    for (request, response) in exchanges {
        if request.request_code() == Some(RequestCode::GetRouteinfoByTopic) && response.code == 0 {
            let topic = request.header::<GetRouteInfoRequest>().unwrap().topic;
            body.topic_config_serialize_wrapper.topic_config_table.insert(topic.clone(), TopicConfig::new(topic, 2));
        }
    }
    let header = RegisterBrokerRequest {
        cluster_name: "GoldenCluster".to_owned(),
        broker_name: "golden-a".to_owned(),
        body_crc32: 0,
        ..command.header().unwrap()
    };
    command = Command::request(RequestCode::RegisterBroker, &header).with_body(json::to_vec(&body).unwrap());
    check_success(&bench.send(command).await);
}

fn keys(command: &Command) -> BTreeSet<String> {
    command.ext_fields.iter().map(|(key, _)| key.to_owned()).collect()
}

/// Members of the body and of the first element of each list in it.
fn shape(command: &Command) -> BTreeSet<String> {
    let Ok(Value::Object(members)) = json::from_slice::<Value>(&command.body) else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    for (name, value) in &members {
        if let Some(Value::Object(first)) = value.as_array().and_then(|elements| elements.first()) {
            names.extend(first.keys().map(|inner| format!("{name}.{inner}")));
        }
        names.insert(name.clone());
    }
    names
}

async fn check_peer(peer: &str) -> usize {
    let exchanges = exchanges(peer);
    assert!(!exchanges.is_empty(), "{peer}");
    let bench = Bench::start(|_| {}).await;
    let mut is_registered = false;
    for (request, expected) in &exchanges {
        if !is_registered && expected.response_code() != Some(ResponseCode::TopicNotExist) {
            register_topics(&bench, &exchanges).await;
            is_registered = true;
        }
        let answer = bench.send(request.clone()).await;
        if request.request_code() == Some(RequestCode::UpdateNamesrvConfig) {
            assert_eq!(answer.response_code(), Some(ResponseCode::RequestCodeNotSupported), "a known gap");
            continue;
        }
        assert_eq!(answer.code, expected.code, "{peer}: {request}: {answer}");
        assert_eq!(keys(&answer), keys(expected), "{peer}: {request}: {answer}");
        assert_eq!(shape(&answer), shape(expected), "{peer}: {request}");
        assert_eq!(answer.body.is_empty(), expected.body.is_empty(), "{peer}: {request}");
    }
    bench.server.shutdown().await;
    exchanges.len()
}

#[test]
fn captured_requests_of_clients_get_the_captured_answers() {
    run(|| async {
        let mut checked = 0;
        for peer in PEERS {
            checked += check_peer(peer).await;
        }
        assert!(checked > 60, "only {checked} requests");
    });
}

#[test]
fn captured_registrations_of_brokers_get_the_captured_answers() {
    run(|| async {
        for peer in ["broker-5.3.3", "broker-5.3.3-binary"] {
            let bench = Bench::start(|_| {}).await;
            // Ext fields and refusals depend on what was registered before; the codes of full registrations do not.
            let (registrations, others): (Vec<_>, Vec<_>) = exchanges(peer)
                .into_iter()
                .partition(|(request, _)| request.request_code() == Some(RequestCode::RegisterBroker));
            for (request, expected) in registrations.iter().filter(|(_, expected)| expected.code == 0) {
                let answer = bench.send(request.clone()).await;
                assert_eq!(answer.code, expected.code, "{peer}: {request}: {answer}");
            }
            for (request, expected) in &others {
                let answer = bench.send(request.clone()).await;
                assert_eq!(answer.code, expected.code, "{peer}: {request}: {answer}");
                assert_eq!(keys(&answer), keys(expected), "{peer}: {request}: {answer}");
            }
            bench.server.shutdown().await;
        }
    });
}
