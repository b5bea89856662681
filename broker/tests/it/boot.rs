use broker::{Config, Role, run};
use protocol::body::TopicRouteData;
use protocol::header::{GetRouteInfoRequest, SendMessageRequestV2};
use protocol::{Command, RequestCode, ResponseCode};
use remoting::{Client, ClientConfig};
use rt::sync::CancellationToken;
use rt::time::{Duration, sleep};
use rt::world;

const SECOND: Duration = Duration::from_secs(1);

fn send(topic: &str) -> Command {
    let header = SendMessageRequestV2 {
        producer_group: "P".to_owned(),
        topic: topic.to_owned(),
        default_topic: "TBW102".to_owned(),
        default_topic_queue_nums: 4,
        queue_id: 0,
        sys_flag: 0,
        born_timestamp: 1,
        flag: 0,
        properties: None,
        reconsume_times: None,
        unit_mode: None,
        max_reconsume_times: None,
        batch: None,
        broker_name: None,
    };
    Command::request(RequestCode::SendMessageV2, &header).with_body("x")
}

#[test]
fn a_cluster_from_configuration_text_serves_routes_stops_in_order_and_comes_back() {
    world::run_test(|| async {
        let (names, node) = (world::add_node("names"), world::add_node("broker"));
        let names_at = format!("{}:9876", world::ip(names));
        let stop = CancellationToken::new();
        let name_server = world::spawn_on(names, run(Role::NameServer, Config::default(), stop.clone()));
        let text = format!(
            "brokerName=b\nnamesrvAddr={names_at}\nstorePathRootDir=/store\nmappedFileSizeCommitLog=1048576\nmaxHashSlotNum=100\nmaxIndexNum=1000\nflushDiskType=SYNC_FLUSH\n"
        );
        let config = Config::parse(&text).expect("well-formed");
        let client = Client::new(ClientConfig::standard(), None, &stop);
        let at = format!("{}:10911", world::ip(node));
        for round in 0..2 {
            let stop_broker = CancellationToken::new();
            let broker = world::spawn_on(node, run(Role::Broker, config.clone(), stop_broker.clone()));
            sleep(SECOND).await;
            let sent = client.request(&at, send("T"), 5 * SECOND).await.expect("an answer");
            assert_eq!(sent.response_code(), Some(ResponseCode::Success), "{:?}", sent.remark);
            assert_eq!(sent.ext_fields.get("queueOffset"), Some(round.to_string().as_str()));
            sleep(SECOND).await;
            let header = GetRouteInfoRequest { topic: "T".to_owned(), accept_standard_json_only: None };
            let route = client
                .request(&names_at, Command::request(RequestCode::GetRouteinfoByTopic, &header), 5 * SECOND)
                .await
                .expect("an answer");
            let route: TopicRouteData = protocol::json::from_slice(&route.body).expect("a route");
            assert_eq!(
                route.broker_datas[0].broker_addrs.get(&0),
                Some(&at),
                "brokerIP1 is found by the connection to the name server"
            );
            stop_broker.cancel();
            broker.await.expect("the task ends").expect("stopped in order");
        }
        stop.cancel();
        name_server.await.expect("the task ends").expect("stopped in order");
    });
}

#[test]
fn a_taken_port_ends_the_run_with_one_clear_line() {
    world::run_test(|| async {
        let node = world::add_node("broker");
        let config = |root: &str| {
            Config::default()
                .with("brokerIP1", &world::ip(node).to_string())
                .with("storePathRootDir", root)
                .with("mappedFileSizeCommitLog", "1048576")
                .with("maxHashSlotNum", "100")
                .with("maxIndexNum", "1000")
        };
        let stop = CancellationToken::new();
        let first = world::spawn_on(node, run(Role::Broker, config("/a"), stop.clone()));
        sleep(SECOND).await;
        let second = world::spawn_on(node, run(Role::Broker, config("/b").with("haListenPort", "20000"), stop.clone()))
            .await
            .expect("the task ends");
        let text = second.expect_err("the port is taken").to_string();
        assert!(text.contains("10911"), "{text}");
        stop.cancel();
        first.await.expect("the task ends").expect("stopped in order");
    });
}
