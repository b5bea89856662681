//! A broker comes and goes.

use std::time::Duration;

use protocol::header::UnregisterBrokerRequest;
use protocol::{Command, RequestCode};

use crate::support::{Bench, TIMEOUT, check_success, registration, run};

/// Waits until the topic has (or has not) a route; time is virtual in the simulator, and short on the real machine.
async fn wait_for_route(bench: &Bench, wanted: bool) {
    for _ in 0..200 {
        if bench.route("T").await.is_some() == wanted {
            return;
        }
        rt::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the route never came to be {wanted}");
}

#[test]
fn a_registered_broker_is_in_the_route_and_gone_after_its_goodbye() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        assert!(bench.route("T").await.is_none());
        check_success(&bench.send(registration(None)).await);
        let route = bench.route("T").await.unwrap();
        assert_eq!(route.broker_datas[0].master_addr(), Some("10.0.0.1:10911"));
        assert_eq!((route.queue_datas[0].read_queue_nums, route.queue_datas[0].perm), (4, 6));
        let goodbye = UnregisterBrokerRequest {
            broker_name: "b".to_owned(),
            broker_addr: "10.0.0.1:10911".to_owned(),
            cluster_name: "C".to_owned(),
            broker_id: 0,
        };
        check_success(&bench.ask(RequestCode::UnregisterBroker, &goodbye).await);
        assert!(bench.route("T").await.is_none());
        bench.client.shutdown().await;
        bench.server.shutdown().await;
    });
}

#[test]
fn the_end_of_its_connection_ends_a_registration() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        let broker = bench.other();
        check_success(&broker.request(&bench.addr, registration(None), TIMEOUT).await.unwrap());
        wait_for_route(&bench, true).await;
        broker.close(&bench.addr);
        wait_for_route(&bench, false).await;
        bench.server.shutdown().await;
    });
}

#[test]
fn a_broker_that_reconnects_survives_the_end_of_its_old_connection() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        let (old, new) = (bench.other(), bench.other());
        check_success(&old.request(&bench.addr, registration(None), TIMEOUT).await.unwrap());
        check_success(&new.request(&bench.addr, registration(None), TIMEOUT).await.unwrap());
        old.close(&bench.addr);
        for _ in 0..10 {
            rt::time::sleep(Duration::from_millis(20)).await;
            assert!(bench.route("T").await.is_some());
        }
        bench.server.shutdown().await;
    });
}

#[test]
fn silence_ends_a_registration_although_the_connection_stands() {
    run(|| async {
        let bench = Bench::start(|config| config.scan_interval = Duration::from_millis(50)).await;
        check_success(&bench.send(registration(Some(Duration::from_millis(300)))).await);
        assert!(bench.route("T").await.is_some());
        let broker = bench.client.connected(&bench.addr).unwrap();
        let watcher = Bench { client: bench.other(), ..bench };
        wait_for_route(&watcher, false).await;
        rt::time::timeout(TIMEOUT, broker.closed()).await.unwrap();
        watcher.server.shutdown().await;
    });
}

#[test]
fn a_cancelled_name_server_stops_in_order() {
    run(|| async {
        let bench = Bench::start(|_| {}).await;
        bench.token.cancel();
        rt::time::timeout(TIMEOUT, bench.server.shutdown()).await.unwrap();
        let fresh =
            remoting::Client::new(remoting::ClientConfig::standard(), None, &rt::sync::CancellationToken::new());
        let request = Command::request(RequestCode::GetBrokerClusterInfo, &protocol::header::Empty {});
        assert!(fresh.request(&bench.addr, request, TIMEOUT).await.is_err());
    });
}
