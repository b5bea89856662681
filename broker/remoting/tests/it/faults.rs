//! Crashes, partitions and silence, in virtual time.
use crate::support::{SECOND, Script, Scripted, client, echo, pull, reaching, until};
use protocol::Command;
use remoting::{Client, ClientConfig, ConnectReason, Fate, RemotingError, Server, ServerConfig};
use rt::time::{Duration, Instant, sleep};
use rt::world::{
    NodeId, WorldConfig, add_node, crash, ip, network, power_loss, power_on, run, run_test, run_test_with, spawn_on,
};
use std::net::SocketAddr;
use std::sync::Arc;

const PORT: u16 = 10911;

/// Serves on `node` until the node ends.
pub fn serve(node: NodeId, config: ServerConfig) -> Arc<Script> {
    let script = Arc::new(Script::default());
    let (addr, handler) = (SocketAddr::new(ip(node), PORT), Arc::new(Scripted(Arc::clone(&script))));
    spawn_on(node, async move {
        let _server = Server::bind(addr, config, handler).await.unwrap();
        std::future::pending::<()>().await;
    });
    script
}

pub fn addr(node: NodeId) -> String {
    SocketAddr::new(ip(node), PORT).to_string()
}

/// Asks from `node`, and says how long the answer took.
async fn ask(
    node: NodeId,
    client: &Client,
    addr: &str,
    request: Command,
    timeout: Duration,
) -> (Result<Command, RemotingError>, Duration) {
    let (client, addr) = (client.clone(), addr.to_owned());
    let asked = async move {
        let begun = Instant::now();
        let result = client.request(&addr, request, timeout).await;
        (result, begun.elapsed())
    };
    spawn_on(node, asked).await.unwrap()
}

/// A broker, a client's machine, and a client there that has a connection.
async fn pair() -> (NodeId, NodeId, Arc<Script>, Client, String) {
    let (broker, desk) = (add_node("broker"), add_node("desk"));
    let script = serve(broker, ServerConfig::standard());
    sleep(SECOND).await;
    let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
    let addr = addr(broker);
    ask(desk, &client, &addr, echo("first"), SECOND).await.0.unwrap();
    (broker, desk, script, client, addr)
}

#[test]
fn answers_find_their_callers_under_random_delays_and_segmentation() {
    for seed in 1..=20 {
        run_test_with(WorldConfig { seed, ..WorldConfig::default() }, || async {
            let (_, desk, script, client, addr) = pair().await;
            network::set_loss_everywhere(20_000);
            let calls: Vec<_> = (0..60)
                .map(|i| {
                    let (client, addr) = (client.clone(), addr.clone());
                    let body = format!("{i}").repeat(1 + i * i);
                    let request = echo(&body).with_ext("delay_ms", ((i * 7) % 40).to_string());
                    spawn_on(
                        desk,
                        async move { (client.request(&addr, request, 60 * SECOND).await.unwrap().body, body) },
                    )
                })
                .collect();
            for call in calls {
                let (answered, asked) = call.await.unwrap();
                assert_eq!(answered, asked);
            }
            assert_eq!(script.handled(), 61);
            assert_eq!(client.late_responses(), 0);
        });
    }
}

#[test]
fn a_peer_that_dies_fails_every_call_at_once_and_may_have_served_them() {
    run_test(|| async {
        let (broker, desk, script, client, addr) = pair().await;
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let (client, addr) = (client.clone(), addr.clone());
                spawn_on(
                    desk,
                    async move { client.request(&addr, echo("x").with_ext("hold", "never"), 30 * SECOND).await },
                )
            })
            .collect();
        until(|| script.handled() == 11).await;
        crash(broker);
        let died = Instant::now();
        for call in calls {
            assert!(matches!(call.await.unwrap(), Err(RemotingError::Closed { fate: Fate::MaybeSent, .. })));
        }
        assert!(died.elapsed() < SECOND);
        let (result, _) = ask(desk, &client, &addr, echo("x"), SECOND).await;
        assert!(matches!(result, Err(RemotingError::Connect { .. })), "{result:?}");
        serve(broker, ServerConfig::standard());
        sleep(SECOND).await;
        ask(desk, &client, &addr, echo("x"), SECOND).await.0.unwrap();
    });
}

#[test]
fn a_partition_is_a_time_out_of_uncertain_fate_and_is_over_when_the_network_is_back() {
    reaching("remoting.silent_connection_given_up", || async {
        let (broker, desk, script, client, addr) = pair().await;
        network::isolate(broker);
        let (result, took) = ask(desk, &client, &addr, echo("lost?"), 3 * SECOND).await;
        assert!(matches!(result, Err(RemotingError::Timeout { fate: Fate::MaybeSent, .. })), "{result:?}");
        assert_eq!(took.as_secs(), 3);
        let (result, _) = ask(desk, &client, &addr, echo("never sent"), 30 * SECOND).await;
        assert!(matches!(result, Err(RemotingError::Connect { .. })), "{result:?}");
        sleep(60 * SECOND).await;
        network::rejoin(broker);
        let (result, took) = ask(desk, &client, &addr, echo("found"), 3 * SECOND).await;
        assert_eq!(result.unwrap().body, "found");
        assert!(took < SECOND, "a new connection does not wait for the old one's retransmission: {took:?}");
        sleep(200 * SECOND).await;
        // The kernel of a closed socket goes on with what it holds: the first request may still arrive, once.
        assert!((2..=3).contains(&script.handled()));
    });
}

#[test]
fn a_slow_answer_does_not_end_a_connection_on_which_others_are_answered() {
    run_test(|| async {
        let (_, desk, script, client, addr) = pair().await;
        let slow = {
            let (client, addr) = (client.clone(), addr.clone());
            spawn_on(
                desk,
                async move { client.request(&addr, echo("slow").with_ext("delay_ms", "5000"), 3 * SECOND).await },
            )
        };
        sleep(SECOND).await;
        ask(desk, &client, &addr, echo("quick"), SECOND).await.0.unwrap();
        assert!(matches!(slow.await.unwrap(), Err(RemotingError::Timeout { .. })));
        sleep(3 * SECOND).await;
        assert!(script.closed().is_empty());
        assert_eq!(client.late_responses(), 1);
    });
}

#[test]
fn connecting_into_a_partition_times_out_and_never_sends() {
    run_test(|| async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let script = serve(broker, ServerConfig::standard());
        sleep(SECOND).await;
        network::isolate(broker);
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let (result, took) = ask(desk, &client, &addr(broker), echo("x"), 30 * SECOND).await;
        let expected = ConnectReason::Timeout(3 * SECOND);
        assert!(matches!(&result, Err(RemotingError::Connect { reason, .. }) if *reason == expected), "{result:?}");
        assert_eq!(took.as_secs(), 3);
        let (result, took) = ask(desk, &client, &addr(broker), echo("x"), SECOND).await;
        assert!(matches!(&result, Err(RemotingError::Timeout { fate: Fate::NotSent, .. })), "{result:?}");
        assert_eq!(took.as_secs(), 1);
        network::rejoin(broker);
        sleep(60 * SECOND).await;
        assert_eq!(script.handled(), 0);
    });
}

#[test]
fn concurrent_callers_share_one_attempt_and_its_failure() {
    run_test(|| async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let script = serve(broker, ServerConfig::standard());
        sleep(SECOND).await;
        network::isolate(broker);
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let (client, addr) = (&client, &addr(broker));
        let begun = Instant::now();
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let (client, addr) = (client.clone(), addr.clone());
                spawn_on(desk, async move { client.request(&addr, echo("x"), 30 * SECOND).await })
            })
            .collect();
        for call in calls {
            assert!(matches!(call.await.unwrap(), Err(RemotingError::Connect { .. })));
        }
        assert_eq!(begun.elapsed().as_secs(), 3, "one attempt for all, not one after another");
        network::rejoin(broker);
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let (client, addr) = (client.clone(), addr.clone());
                spawn_on(desk, async move { client.request(&addr, echo("x"), 30 * SECOND).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert_eq!(script.opened.lock().unwrap().len(), 1);
    });
}

#[test]
fn a_half_open_connection_is_noticed_and_replaced() {
    run_test(|| async {
        let (broker, desk, _, client, addr) = pair().await;
        power_loss(broker);
        let old = client.connected(&addr).unwrap();
        let (result, took) = ask(desk, &client, &addr, echo("x"), 3 * SECOND).await;
        assert!(matches!(result, Err(RemotingError::Timeout { fate: Fate::MaybeSent, .. })), "{result:?}");
        assert_eq!(took.as_secs(), 3);
        power_on(broker);
        serve(broker, ServerConfig::standard());
        assert_eq!(ask(desk, &client, &addr, echo("y"), 3 * SECOND).await.0.unwrap().body, "y");
        assert!(old.is_closed());
    });
}

#[test]
fn an_idle_connection_is_closed_after_120_seconds_and_opened_again_on_use() {
    run_test(|| async {
        let (_, desk, script, client, addr) = pair().await;
        sleep(110 * SECOND).await;
        ask(desk, &client, &addr, echo("still here"), SECOND).await.0.unwrap();
        sleep(119 * SECOND).await;
        assert!(script.closed().is_empty());
        sleep(2 * SECOND).await;
        assert_eq!(script.closed().len(), 1);
        assert!(client.connected(&addr).is_none());
        ask(desk, &client, &addr, echo("again"), SECOND).await.0.unwrap();
        assert_eq!(script.opened.lock().unwrap().len(), 2);
    });
}

#[test]
fn a_server_forgets_a_client_that_lost_power_after_120_seconds() {
    run_test(|| async {
        let (_, desk, script, ..) = pair().await;
        let peer = script.connection(0).peer_addr();
        power_loss(desk);
        sleep(118 * SECOND).await;
        assert!(script.closed().is_empty());
        sleep(3 * SECOND).await;
        assert_eq!(script.closed(), [peer]);
    });
}

#[test]
fn a_held_request_is_dropped_when_its_client_goes_and_a_prompt_one_is_finished() {
    run_test(|| async {
        let (_, desk, script, client, addr) = pair().await;
        for request in [pull().with_ext("hold", "never"), echo("").with_ext("delay_ms", "5000")] {
            let (client, addr) = (client.clone(), addr.clone());
            spawn_on(desk, async move { client.request(&addr, request, 30 * SECOND).await });
        }
        until(|| script.handled() == 3).await;
        crash(desk);
        sleep(10 * SECOND).await;
        assert_eq!(script.closed().len(), 1);
        // The held one never counts itself as ended, because it was dropped.
        assert_eq!(script.running.load(std::sync::atomic::Ordering::SeqCst), 1);
    });
}

#[test]
fn a_late_answer_is_dropped_and_counted() {
    run_test(|| async {
        let (_, desk, _, client, addr) = pair().await;
        let late = client.connect(&addr, SECOND).await.unwrap();
        let result = spawn_on(desk, async move { late.request(echo("x").with_ext("delay_ms", "1500"), SECOND).await });
        let result = result.await.unwrap();
        assert!(matches!(result, Err(RemotingError::Timeout { fate: Fate::MaybeSent, .. })));
        assert_eq!(client.late_responses(), 0);
        sleep(SECOND).await;
        assert_eq!(client.late_responses(), 1);
        assert_eq!(ask(desk, &client, &addr, echo("y"), SECOND).await.0.unwrap().body, "y");
    });
}

#[test]
fn a_shutdown_gives_up_waiting_for_a_handler_after_the_drain_time() {
    reaching("remoting.drain_gave_up", || async {
        let (broker, desk) = (add_node("broker"), add_node("desk"));
        let script = Arc::new(Script::default());
        let (at, handler) = (SocketAddr::new(ip(broker), PORT), Arc::new(Scripted(Arc::clone(&script))));
        let stopped = spawn_on(broker, async move {
            let server = Server::bind(at, ServerConfig::standard(), handler).await.unwrap();
            sleep(5 * SECOND).await;
            let begun = Instant::now();
            server.shutdown().await;
            begun.elapsed()
        });
        sleep(SECOND).await;
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let (result, took) = ask(desk, &client, &addr(broker), echo("x").with_ext("hold", "never"), 30 * SECOND).await;
        assert!(matches!(result, Err(RemotingError::Closed { fate: Fate::MaybeSent, .. })), "{result:?}");
        assert_eq!(took.as_secs(), 9);
        assert_eq!(stopped.await.unwrap().as_secs(), 5);
        assert_eq!(script.closed().len(), 1);
    });
}

#[test]
fn a_name_is_looked_up_and_its_failure_is_no_connection() {
    run_test(|| async {
        let (_, desk, _, client, _) = pair().await;
        assert_eq!(ask(desk, &client, "broker:10911", echo("by name"), SECOND).await.0.unwrap().body, "by name");
        network::fail_name("broker");
        client.close("broker:10911");
        sleep(SECOND).await;
        let (result, _) = ask(desk, &client, "broker:10911", echo("x"), SECOND).await;
        assert!(matches!(result, Err(RemotingError::Connect { reason: ConnectReason::Resolve(_), .. })), "{result:?}");
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "worlds of one thread share its thread-locals, and these are compared")]
fn the_same_seed_runs_the_same_way() {
    let body = || async {
        let (broker, desk, _, client, addr) = pair().await;
        network::set_loss_everywhere(50_000);
        for i in 0..20 {
            let _ = ask(desk, &client, &addr, echo("x").with_ext("delay_ms", i.to_string()), SECOND).await;
        }
        crash(broker);
        let _ = ask(desk, &client, &addr, echo("x"), SECOND).await;
    };
    let hash = |seed| {
        std::thread::spawn(move || run(WorldConfig { seed, ..WorldConfig::default() }, body).hash).join().unwrap()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

#[test]
fn a_client_follows_a_name_that_means_another_machine() {
    reaching("remoting.name_moved", || async {
        let [right, wrong, desk] = ["right", "wrong", "desk"].map(add_node);
        let scripts = [serve(right, ServerConfig::standard()), serve(wrong, ServerConfig::standard())];
        sleep(SECOND).await;
        let client = spawn_on(desk, async { client(ClientConfig::standard()) }).await.unwrap();
        let name = format!("right:{PORT}");
        let say = async || ask(desk, &client, &name, echo("hello"), SECOND).await.0.unwrap();
        network::set_name_on(desk, "right", &[ip(wrong)]);
        say().await;
        assert_eq!(scripts.each_ref().map(|script| script.handled()), [0, 1]);
        network::fail_name_on(desk, "right");
        sleep(60 * SECOND).await;
        say().await;
        assert_eq!(scripts.each_ref().map(|script| script.handled()), [0, 2], "a resolver that fails ends nothing");
        network::restore_name_on(desk, "right");
        sleep(31 * SECOND).await;
        say().await;
        assert_eq!(scripts.each_ref().map(|script| script.handled()), [1, 2]);
    });
}
