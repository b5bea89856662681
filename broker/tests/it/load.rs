use broker::load::{self, LoadConfig, LoadError};
use broker::{Config, Role, run};
use rt::sync::CancellationToken;
use rt::time::{Duration, sleep, timeout};
use rt::world;

const SECOND: Duration = Duration::from_secs(1);

fn config(name_servers: Vec<String>) -> LoadConfig {
    LoadConfig {
        name_servers,
        topic: "LoadTopic".to_owned(),
        messages: 2000,
        body_bytes: 100,
        in_flight: 16,
        time_limit: 120 * SECOND,
    }
}

fn broker_config(names: &str) -> Config {
    Config::default()
        .with("namesrvAddr", names)
        .with("storePathRootDir", "/store")
        .with("mappedFileSizeCommitLog", "1048576")
        .with("maxHashSlotNum", "100")
        .with("maxIndexNum", "1000")
        .with("flushDiskType", "SYNC_FLUSH")
}

#[test]
fn a_load_consumes_every_acknowledged_message_across_a_power_loss_of_the_broker() {
    world::run_test(|| async {
        let (names, node, user) = (world::add_node("names"), world::add_node("broker"), world::add_node("user"));
        let names_at = format!("{}:9876", world::ip(names));
        let stop = CancellationToken::new();
        drop(world::spawn_on(names, run(Role::NameServer, Config::default(), stop.clone())));
        drop(world::spawn_on(node, run(Role::Broker, broker_config(&names_at), stop.clone())));
        sleep(SECOND).await;

        let mut loaded = world::spawn_on(user, load::run(config(vec![names_at.clone()])));
        assert!(timeout(Duration::from_millis(150), &mut loaded).await.is_err(), "the load is under way");
        world::power_loss(node);
        sleep(SECOND).await;
        drop(world::spawn_on(node, run(Role::Broker, broker_config(&names_at), stop.clone())));

        let summary = loaded.await.expect("the task ends").expect("all arrives");
        assert_eq!((summary.acknowledged, summary.consumed, summary.kept), (2000, 2000, 2000), "{summary}");
        assert!(summary.sending > SECOND, "the broker was away for a second of the load: {summary}");
        stop.cancel();
    });
}

#[test]
fn a_load_that_no_broker_answers_tells_how_far_it_came() {
    world::run_test(|| async {
        let (names, node) = (world::add_node("names"), world::add_node("broker"));
        let names_at = format!("{}:9876", world::ip(names));
        let stop = CancellationToken::new();
        drop(world::spawn_on(names, run(Role::NameServer, Config::default(), stop.clone())));

        let error = load::run(config(vec![names_at.clone()])).await.expect_err("no broker");
        assert!(matches!(error, LoadError::Topic { .. }), "{error}");

        drop(world::spawn_on(node, run(Role::Broker, broker_config(&names_at), stop.clone())));
        sleep(SECOND).await;
        let short = LoadConfig { time_limit: Duration::from_millis(200), messages: 100_000, ..config(vec![names_at]) };
        let error = load::run(short).await.expect_err("too little time");
        assert!(matches!(error, LoadError::TimeLimit { acknowledged: 1.., messages: 100_000, .. }), "{error}");
        stop.cancel();
    });
}
