//! What is answered to each request.

use protocol::body::{ClusterInfo, DataVersion, KvTable, TopicList};
use protocol::header::{
    Empty, GetKvConfigRequest, GetKvListByNamespaceRequest, GetRouteInfoRequest, GetTopicsByClusterRequest,
    PutKvConfigRequest, QueryDataVersionRequest, QueryDataVersionResponse, WipeWritePermissionRequest,
    WipeWritePermissionResponse,
};
use protocol::{Command, RequestCode, ResponseCode, json};

use crate::support::{Bench, check_success, registration, run};

fn text(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}

#[test]
fn routes_are_strict_json_for_new_clients_and_the_dialect_for_old_ones() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        check_success(&bench.send(registration(None)).await);
        let ask = |version: i32, strict: Option<bool>| {
            let header = GetRouteInfoRequest { topic: "T".to_owned(), accept_standard_json_only: strict };
            let mut command = Command::request(RequestCode::GetRouteinfoByTopic, &header);
            command.version = version;
            bench.send(command)
        };
        let strict = text(&ask(479, None).await.body);
        let dialect = text(&ask(317, None).await.body);
        insta::assert_snapshot!(strict, @r#"{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"b","cluster":"C","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}"#);
        assert_eq!(dialect, strict.replace("\"0\":", "0:"));
        assert_eq!(text(&ask(317, Some(true)).await.body), strict);
        let missing = GetRouteInfoRequest { topic: "X".to_owned(), accept_standard_json_only: None };
        let answer = bench.ask(RequestCode::GetRouteinfoByTopic, &missing).await;
        assert_eq!(answer.response_code(), Some(ResponseCode::TopicNotExist));
        insta::assert_snapshot!(answer.remark.unwrap(), @"No topic route info in name server for the topic: X");
        bench.server.shutdown().await;
    });
}

#[test]
fn data_versions_are_compared() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        let ask = |version: DataVersion| {
            let header = QueryDataVersionRequest {
                broker_name: "b".to_owned(),
                broker_addr: "10.0.0.1:10911".to_owned(),
                cluster_name: "C".to_owned(),
                broker_id: 0,
            };
            let body = json::to_vec(&version).unwrap();
            bench.send(Command::request(RequestCode::QueryDataVersion, &header).with_body(body))
        };
        let changed = |answer: &Command| answer.header::<QueryDataVersionResponse>().unwrap().changed;
        let unknown = ask(DataVersion::new(1)).await;
        assert!(changed(&unknown) && unknown.body.is_empty());
        check_success(&bench.send(registration(None)).await);
        let same = ask(DataVersion::new(1)).await;
        assert!(!changed(&same));
        assert_eq!(json::from_slice::<DataVersion>(&same.body).unwrap(), DataVersion::new(1));
        assert!(changed(&ask(DataVersion::new(2)).await));
        bench.server.shutdown().await;
    });
}

#[test]
fn damaged_registrations_are_refused() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        let mut damaged = registration(None);
        let mut bytes = damaged.body.to_vec();
        bytes[5] ^= 1;
        damaged.body = bytes.into();
        let answer = bench.send(damaged).await;
        assert_eq!(
            (answer.response_code(), answer.remark.as_deref()),
            (Some(ResponseCode::SystemError), Some("crc32 not match"))
        );
        let mut nameless = registration(None);
        nameless.ext_fields.remove("brokerName");
        let answer = bench.send(nameless).await;
        insta::assert_snapshot!(answer.remark.unwrap(), @"header field brokerName is missing");
        assert!(bench.route("T").await.is_none());
        bench.server.shutdown().await;
    });
}

#[test]
fn lists_and_permissions() {
    run(|| async {
        let bench = Bench::start(|config| config.answers.topic_list = false).await;
        check_success(&bench.send(registration(None)).await);
        let all = bench.ask(RequestCode::GetAllTopicListFromNameserver, &Empty {}).await;
        assert_eq!(json::from_slice::<TopicList>(&all.body).unwrap().topic_list, ["T", "U"]);
        let refused =
            bench.ask(RequestCode::GetTopicsByCluster, &GetTopicsByClusterRequest { cluster: "C".to_owned() }).await;
        assert_eq!(
            (refused.response_code(), refused.remark.as_deref()),
            (Some(ResponseCode::SystemError), Some("disable"))
        );
        let info = bench.ask(RequestCode::GetBrokerClusterInfo, &Empty {}).await;
        let info: ClusterInfo = json::from_slice(&info.body).unwrap();
        assert_eq!(info.cluster_addr_table["C"], ["b"]);
        let wipe = WipeWritePermissionRequest { broker_name: "b".to_owned() };
        let answer = bench.ask(RequestCode::WipeWritePermOfBroker, &wipe).await;
        assert_eq!(answer.header::<WipeWritePermissionResponse>().unwrap().wipe_topic_count, 2);
        assert_eq!(bench.route("T").await.unwrap().queue_datas[0].perm, 4);
        bench.server.shutdown().await;
    });
}

#[test]
fn what_is_not_served_is_said() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        for code in [RequestCode::UpdateNamesrvConfig.as_i32(), 9999] {
            let mut request = Command::request(RequestCode::UpdateNamesrvConfig, &Empty {});
            request.code = code;
            let answer = bench.send(request).await;
            assert_eq!(answer.response_code(), Some(ResponseCode::RequestCodeNotSupported));
            assert_eq!(answer.remark.unwrap(), format!(" request type {code} not supported"));
        }
        let config = bench.ask(RequestCode::GetNamesrvConfig, &Empty {}).await;
        insta::assert_snapshot!(text(&config.body), @r"
        deleteTopicWithBrokerRegistration=false
        enableAllTopicList=true
        enableTopicList=true
        kvConfigPath=
        needWaitForService=false
        orderMessageEnable=false
        returnOrderTopicConfigToBroker=true
        supportActingMaster=false
        waitSecondsForService=0
        ");
        bench.server.shutdown().await;
    });
}

fn put(namespace: &str, key: &str, value: &str) -> PutKvConfigRequest {
    PutKvConfigRequest { namespace: namespace.to_owned(), key: key.to_owned(), value: value.to_owned() }
}

async fn get(bench: &Bench, namespace: &str, key: &str) -> Command {
    let header = GetKvConfigRequest { namespace: namespace.to_owned(), key: key.to_owned() };
    bench.ask(RequestCode::GetKvConfig, &header).await
}

#[test]
fn order_configuration_reaches_brokers_and_clients() {
    run(|| async {
        let bench = Bench::start(|config| config.answers.order_message = true).await;
        check_success(&bench.ask(RequestCode::PutKvConfig, &put("ORDER_TOPIC_CONFIG", "T", "b:4")).await);
        let registered = bench.send(registration(None)).await;
        assert_eq!(json::from_slice::<KvTable>(&registered.body).unwrap().table["T"], "b:4");
        assert_eq!(bench.route("T").await.unwrap().order_topic_conf.as_deref(), Some("b:4"));
        assert_eq!(bench.route("U").await.unwrap().order_topic_conf, None);
        let missing = GetKvListByNamespaceRequest { namespace: "N".to_owned() };
        let answer = bench.ask(RequestCode::GetKvlistByNamespace, &missing).await;
        assert_eq!(answer.response_code(), Some(ResponseCode::QueryNotFound));
        assert_eq!(get(&bench, "N", "k").await.response_code(), Some(ResponseCode::QueryNotFound));
        bench.server.shutdown().await;
    });
}

/// Needs a disk: the simulated one. On the real machine the same code is run by `rt`'s own conformance suite.
#[cfg(madsim)]
#[test]
fn the_key_value_configuration_outlives_the_process() {
    run(|| async {
        let with_file =
            |config: &mut namesrv::NamesrvConfig| config.kv_config_path = Some("/data/kv/kvConfig.json".into());
        let bench = Bench::start(with_file).await;
        check_success(&bench.ask(RequestCode::PutKvConfig, &put("N", "k", "v")).await);
        check_success(&bench.ask(RequestCode::PutKvConfig, &put("N", "l", "w")).await);
        let gone = protocol::header::DeleteKvConfigRequest { namespace: "N".to_owned(), key: "l".to_owned() };
        check_success(&bench.ask(RequestCode::DeleteKvConfig, &gone).await);
        bench.server.shutdown().await;
        let again = Bench::start(with_file).await;
        let found = get(&again, "N", "k").await.header::<protocol::header::GetKvConfigResponse>().unwrap();
        assert_eq!(found.value.as_deref(), Some("v"));
        assert_eq!(get(&again, "N", "l").await.response_code(), Some(ResponseCode::QueryNotFound));
        again.server.shutdown().await;
    });
}
