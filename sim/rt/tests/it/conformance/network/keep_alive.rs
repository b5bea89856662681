//! Keep-alive as a program sets it; what it does to a silent peer only the simulated half can show (`network_probes`).
use super::pair;
use crate::conformance::stage::Stage;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{KeepAlive, keep_alive, set_keep_alive};
use rt::time::{Duration, timeout};
use std::io::ErrorKind;

crate::conformance::table! {
    keep_alive_is_off_until_it_is_set
    keep_alive_is_remembered_and_turned_off
    keep_alive_is_of_one_end
    keep_alive_counts_in_seconds
    keep_alive_out_of_its_bounds_is_invalid
    keep_alive_is_set_through_a_half
    keep_alive_does_not_disturb_a_live_idle_peer
}

const S: Duration = Duration::from_secs(1);
const QUICK: KeepAlive = KeepAlive { idle: S, interval: S, probes: 1 };

async fn keep_alive_is_off_until_it_is_set(stage: Stage) {
    let (client, server) = pair(&stage).await;
    assert_eq!(keep_alive(&client).unwrap(), None);
    assert_eq!(keep_alive(&server).unwrap(), None);
}

async fn keep_alive_is_remembered_and_turned_off(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    let options = KeepAlive { idle: S * 600, interval: S * 30, probes: 5 };
    for options in [Some(KeepAlive::LINUX), Some(options), None, Some(QUICK)] {
        set_keep_alive(&client, options).unwrap();
        assert_eq!(keep_alive(&client).unwrap(), options);
    }
}

async fn keep_alive_is_of_one_end(stage: Stage) {
    let (client, server) = pair(&stage).await;
    set_keep_alive(&server, Some(QUICK)).unwrap();
    assert_eq!(keep_alive(&client).unwrap(), None);
}

async fn keep_alive_counts_in_seconds(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    let idle = Duration::from_millis(2999);
    set_keep_alive(&client, Some(KeepAlive { idle, ..QUICK })).unwrap();
    assert_eq!(keep_alive(&client).unwrap(), Some(KeepAlive { idle: S * 2, ..QUICK }));
}

async fn keep_alive_out_of_its_bounds_is_invalid(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    let most = KeepAlive { idle: S * 32_767, interval: S * 32_767, probes: 127 };
    set_keep_alive(&client, Some(most)).unwrap();
    let bad = [
        KeepAlive { idle: S * 32_768, ..QUICK },
        KeepAlive { idle: S / 2, ..QUICK },
        KeepAlive { interval: S * 32_768, ..QUICK },
        KeepAlive { interval: Duration::ZERO, ..QUICK },
        KeepAlive { probes: 128, ..QUICK },
        KeepAlive { probes: 0, ..QUICK },
    ];
    for options in bad {
        assert_eq!(set_keep_alive(&client, Some(options)).unwrap_err().kind(), ErrorKind::InvalidInput, "{options:?}");
    }
    assert_eq!(keep_alive(&client).unwrap(), Some(most), "a call that fails changes nothing");
}

async fn keep_alive_is_set_through_a_half(stage: Stage) {
    let (client, _server) = pair(&stage).await;
    let (read, write) = client.into_split();
    set_keep_alive(read.as_ref(), Some(QUICK)).unwrap();
    assert_eq!(keep_alive(write.as_ref()).unwrap(), Some(QUICK));
}

async fn keep_alive_does_not_disturb_a_live_idle_peer(stage: Stage) {
    let (mut client, mut server) = pair(&stage).await;
    set_keep_alive(&client, Some(QUICK)).unwrap();
    set_keep_alive(&server, Some(QUICK)).unwrap();
    // Nothing comes, for longer than a dead peer would be given.
    assert!(timeout(Duration::from_millis(3500), client.read(&mut [0; 8])).await.is_err());
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);
    server.write_all(b"y").await.unwrap();
    assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 1);
}
