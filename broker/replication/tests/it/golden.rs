//! The shells against the recorded connections: raw bytes on the wire, a real store behind.
use crate::support::{HA_PORT, Machine, SECOND, store_config, wait_end};
use flate2::read::GzDecoder;
use protocol::PhysicalOffset;
use replication::{HaSlaveConfig, MasterAddr};
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::time::{sleep, timeout};
use rt::world::{add_node, ip, run_test, spawn_on};
use std::io::Read;
use std::net::SocketAddr;
use store::{FlushMode, StoreConfig};

macro_rules! golden {
    ($name:literal) => {
        &include_bytes!(concat!("../../../../fixtures/golden/ha/default/", $name))[..]
    };
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn log() -> Vec<u8> {
    let mut log = unpack(golden!("commitlog-m/00000000000000000000.gz"));
    log.extend(unpack(golden!("commitlog-m/00000000000000262144.gz")));
    log
}

fn config() -> StoreConfig {
    StoreConfig { segment_size: 262_144, max_message_size: 4 << 20, ..store_config(FlushMode::Async) }
}

#[test]
fn the_recorded_master_stream_fills_our_slaves_store_with_the_same_log() {
    run_test(|| async {
        let slave = Machine::new("slave");
        let recorded = add_node("recorded master");
        let ha = SocketAddr::new(ip(recorded), HA_PORT);
        let reports = spawn_on(recorded, async move {
            let listener = TcpListener::bind(ha).await.unwrap();
            let mut reports = Vec::new();
            for stream in [
                unpack(golden!("connection1.master-to-slave.bin.gz")),
                unpack(golden!("connection2.master-to-slave.bin.gz")),
            ] {
                let (mut socket, _) = listener.accept().await.unwrap();
                socket.write_all(&stream).await.unwrap();
                let mut heard = Vec::new();
                while timeout(2 * SECOND, socket.read_buf(&mut heard)).await.is_ok() {}
                reports.push(heard.as_chunks::<8>().0.iter().map(|r| i64::from_be_bytes(*r)).collect::<Vec<_>>());
            }
            reports
        });
        let master = MasterAddr { ha, remoting: None };
        slave.boot_slave_of(config(), HaSlaveConfig::standard("golden-a:1"), Some(master)).await;
        let end = PhysicalOffset(352_617);
        wait_end(&slave, end, 30 * SECOND).await;
        assert_eq!(slave.log().await, log()[..end.get() as usize]);
        let reports = reports.await.unwrap();
        assert_eq!((reports[0].first(), reports[0].last()), (Some(&0), Some(&63_612)));
        assert_eq!((reports[1].first(), reports[1].last()), (Some(&63_612), Some(&352_617)));
        sleep(SECOND).await;
        let queues = slave.store().queues();
        assert!(queues.iter().any(|(topic, _)| topic.starts_with("Golden")), "the records are dispatched: {queues:?}");
    });
}

#[test]
fn our_master_with_the_recorded_log_sends_it_to_a_slave_that_reports_as_recorded() {
    run_test(|| async {
        let master = Machine::new("master");
        master.boot_master(config(), true).await;
        let (store, end) = (master.store(), 352_617);
        master
            .run(async move {
                let log = log();
                for (segment, bytes) in log[..end].chunks(262_144).enumerate() {
                    store.append_replica(PhysicalOffset(segment as i64 * 262_144), bytes).unwrap();
                }
            })
            .await;
        let at = SocketAddr::new(ip(master.node), HA_PORT);
        let slave = add_node("recorded slave");
        let taken = spawn_on(slave, async move {
            let mut socket = TcpStream::connect(at).await.unwrap();
            socket.write_all(&63_612_i64.to_be_bytes()).await.unwrap();
            let (mut taken, mut next, mut header) = (Vec::new(), 63_612, [0; 12]);
            while next < end as i64 {
                socket.read_exact(&mut header).await.unwrap();
                assert_eq!(i64::from_be_bytes(header[..8].try_into().unwrap()), next);
                let size = i32::from_be_bytes(header[8..].try_into().unwrap());
                assert!((1..=32_768).contains(&size));
                let from = taken.len();
                taken.resize(from + size as usize, 0);
                socket.read_exact(&mut taken[from..]).await.unwrap();
                assert!(next / 262_144 == (next + i64::from(size) - 1) / 262_144, "no frame crosses a segment");
                next += i64::from(size);
                socket.write_all(&next.to_be_bytes()).await.unwrap();
            }
            // Then nothing but heartbeats with the next offset.
            for _ in 0..2 {
                timeout(6 * SECOND, socket.read_exact(&mut header)).await.unwrap().unwrap();
                assert_eq!(header[..8], next.to_be_bytes());
                assert_eq!(header[8..], [0; 4]);
            }
            taken
        });
        assert_eq!(taken.await.unwrap(), log()[63_612..end]);
    });
}
