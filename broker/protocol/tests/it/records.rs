//! Records, batches and properties of every shape survive being written and read.

use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use protocol::message::record::stamp;
use protocol::message::{BatchEntry, RecordVersion, RecordView, batch};
use protocol::{MessageId, PhysicalOffset, Properties, QueueOffset, Record, SysFlag};

fn hosts() -> impl Strategy<Value = SocketAddr> {
    let ip = prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from),];
    (ip, any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn records() -> impl Strategy<Value = Record> {
    let numbers = (any::<i32>(), any::<i32>(), any::<i64>(), any::<i64>(), any::<i32>());
    let times = (any::<i64>(), any::<i64>(), any::<i32>(), any::<i64>());
    let texts = (vec(any::<u8>(), 0..100), prop_oneof!["[a-z%]{0,127}", "[a-z]{128,300}"], vec(any::<u8>(), 0..100));
    (numbers, times, texts, hosts(), hosts()).prop_map(|(numbers, times, (body, topic, properties), born, store)| {
        Record {
            version: RecordVersion::for_topic(&topic),
            queue_id: numbers.0,
            flag: numbers.1,
            queue_offset: QueueOffset(numbers.2),
            physical_offset: PhysicalOffset(numbers.3),
            sys_flag: SysFlag(numbers.4).with_hosts(born.ip(), store.ip()),
            born_timestamp: times.0,
            born_host: born,
            store_timestamp: times.1,
            store_host: store,
            reconsume_times: times.2,
            prepared_transaction_offset: times.3,
            body: Bytes::from(body),
            topic,
            properties: Bytes::from(properties),
        }
    })
}

fn property_tables() -> impl Strategy<Value = Properties> {
    // Neither end mark may stand in a name, nor the property's end in a value.
    vec(("[^\u{1}\u{2}]{1,8}", "[^\u{2}]{1,8}"), 0..10).prop_map(|pairs| pairs.into_iter().collect())
}

proptest! {
    #[test]
    fn a_record_written_and_read_is_the_same(record in records(), tail in vec(any::<u8>(), 0..20)) {
        let mut bytes = BytesMut::new();
        record.encode(&mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), record.encoded_bytes());
        bytes.extend_from_slice(&tail);
        let bytes = bytes.freeze();
        prop_assert_eq!(Record::decode(&bytes).unwrap(), record);
        prop_assert!(RecordView::parse(&bytes).unwrap().check_body().is_ok());
    }

    #[test]
    fn a_stamp_changes_places_and_time_only(record in records(), queue in any::<i64>(), log in any::<i64>(), time in any::<i64>()) {
        let mut bytes = BytesMut::new();
        record.encode(&mut bytes).unwrap();
        stamp(&mut bytes, QueueOffset(queue), PhysicalOffset(log), time);
        let expected = Record { queue_offset: QueueOffset(queue), physical_offset: PhysicalOffset(log), store_timestamp: time, ..record };
        prop_assert_eq!(Record::decode(&bytes.freeze()).unwrap(), expected);
    }

    #[test]
    fn a_cut_record_is_refused(record in records(), cut in any::<proptest::sample::Index>()) {
        let mut bytes = BytesMut::new();
        record.encode(&mut bytes).unwrap();
        let at = cut.index(bytes.len());
        prop_assert!(Record::decode(&bytes.freeze().slice(..at)).is_err());
    }

    #[test]
    fn a_batch_written_and_read_is_the_same(parts in vec((any::<i32>(), vec(any::<u8>(), 0..50), vec(any::<u8>(), 0..50)), 0..10)) {
        let entries: Vec<_> = parts
            .into_iter()
            .map(|(flag, body, properties)| BatchEntry { flag, body: body.into(), properties: properties.into() })
            .collect();
        let bytes = batch::encode(&entries).unwrap();
        prop_assert_eq!(batch::decode(&bytes, entries.len()).unwrap(), entries);
    }

    #[test]
    fn properties_written_and_read_are_the_same(properties in property_tables()) {
        let text = properties.to_text();
        prop_assert_eq!(Properties::parse(&text), properties.clone());
        // 4.9 leaves the last end out.
        prop_assert_eq!(Properties::parse(text.strip_suffix('\u{2}').unwrap_or("")), properties);
    }

    #[test]
    fn a_message_id_written_and_read_is_the_same(host in hosts(), offset in any::<i64>()) {
        let id = MessageId::new(host, PhysicalOffset(offset));
        prop_assert_eq!(id.to_string().parse::<MessageId>().unwrap(), id);
    }
}
