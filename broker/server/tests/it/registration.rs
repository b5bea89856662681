use crate::support::{Raw, SECOND, TestBroker, cluster, config, eventually, name_server, run};
use rt::time::Instant;
use rt::world;

#[test]
fn a_name_server_that_is_down_does_not_delay_the_other() {
    run(|| async {
        let (names, address) = name_server("names").await;
        let down = world::add_node("down");
        world::power_loss(down);
        let node = world::add_node("master");
        let servers = [format!("{}:9876", world::ip(down)), address];
        let start = Instant::now();
        let master = TestBroker::start(node, cluster(), config(world::ip(node), 0, &servers)).await;
        assert!(start.elapsed() <= 10 * SECOND, "{:?}", start.elapsed());
        let known = names.registered.lock().unwrap().get(&0).cloned().expect("registered");
        assert_eq!((known.0, known.1), (master.address(), master.config.ha_advertised.to_string()));
        master.stop().await;
        assert!(names.registered.lock().unwrap().is_empty(), "unregistered");
    });
}

#[test]
fn a_new_topic_is_registered_at_once() {
    run(|| async {
        let (names, address) = name_server("names").await;
        let node = world::add_node("master");
        let master = TestBroker::start(node, cluster(), config(world::ip(node), 0, &[address])).await;
        let count = || names.registered.lock().unwrap().get(&0).map_or(0, |entry| entry.2);
        let before = count();
        let start = Instant::now();
        Raw::to(&master.address()).sent(0, "x").await;
        eventually("registered again", async || count() > before).await;
        assert!(start.elapsed() < 2 * SECOND);
    });
}
