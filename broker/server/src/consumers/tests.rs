use super::{Change, ConsumerTable, Joining, Member, Peer};
use protocol::Language;
use protocol::body::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData};
use std::collections::BTreeSet;
use std::time::Duration;

fn member(client_id: &str, second: u64) -> Member {
    Member {
        client_id: client_id.to_owned(),
        address: "127.0.0.1:5".parse().expect("an address"),
        language: Language::Java,
        version: 1,
        last_heartbeat: Duration::from_secs(second),
    }
}

fn joining(model: MessageModel, topics: Option<&[(&str, i64)]>) -> Joining {
    Joining {
        group: "G".to_owned(),
        consume_type: ConsumeType::Passively,
        message_model: model,
        consume_from: ConsumeFromWhere::LastOffset,
        subscriptions: topics.map(|topics| {
            topics.iter().map(|(topic, version)| SubscriptionData::by_tags(*topic, "*", *version)).collect()
        }),
    }
}

/// A heartbeat of a connection: topics with versions, if it carries any.
type Heartbeat<'a> = (u64, Option<&'a [(&'a str, i64)]>);

/// Heartbeats `(connection, topics with versions)` of group G one after the other; what the last one changes.
fn check(heartbeats: &[Heartbeat<'_>], changed: Option<&[u64]>) {
    let mut table = ConsumerTable::default();
    let mut last = None;
    for (connection, topics) in heartbeats {
        last = table.join(
            Peer(*connection),
            member(&format!("c{connection}"), 0),
            joining(MessageModel::Clustering, *topics),
        );
    }
    let expected =
        changed.map(|members| Change { group: "G".to_owned(), members: members.iter().copied().map(Peer).collect() });
    assert_eq!(last, expected, "{heartbeats:?}");
}

#[test]
fn a_new_member_or_another_set_of_topics_is_a_change() {
    check(&[(1, Some(&[("T", 1)]))], Some(&[1]));
    check(&[(1, Some(&[("T", 1)])), (1, Some(&[("T", 1)]))], None);
    check(&[(1, Some(&[("T", 1)])), (2, Some(&[("T", 1)]))], Some(&[1, 2]));
    check(&[(1, Some(&[("T", 1)])), (1, Some(&[("T", 2)]))], None);
    check(&[(1, Some(&[("T", 1)])), (1, Some(&[("U", 1)]))], Some(&[1]));
    check(&[(1, Some(&[("T", 1), ("U", 1)])), (1, Some(&[("U", 1)]))], Some(&[1]));
    check(&[(1, Some(&[("T", 1)])), (1, None)], None);
}

#[test]
fn an_older_subscription_does_not_replace_a_newer_one() {
    let mut table = ConsumerTable::default();
    table.join(Peer(1), member("a", 0), joining(MessageModel::Clustering, Some(&[("T", 5)])));
    table.join(Peer(2), member("b", 0), joining(MessageModel::Clustering, Some(&[("T", 3)])));
    assert_eq!(table.subscription("G", "T").map(|subscription| subscription.sub_version), Some(5));
}

#[test]
fn members_of_a_broadcasting_group_need_not_be_told() {
    let mut table = ConsumerTable::default();
    assert_eq!(table.join(Peer(1), member("a", 0), joining(MessageModel::Broadcasting, Some(&[("T", 1)]))), None);
}

#[test]
fn those_left_behind_are_told() {
    let mut table = ConsumerTable::default();
    for connection in 1..=3 {
        table.join(Peer(connection), member("same", connection), joining(MessageModel::Clustering, Some(&[("T", 1)])));
    }
    assert_eq!(table.client_ids("G"), BTreeSet::from(["same".to_owned()]));
    assert_eq!(table.leave(Peer(9), "G"), None);
    assert_eq!(table.leave(Peer(1), "G"), Some(Change { group: "G".to_owned(), members: vec![Peer(2), Peer(3)] }));
    let (changes, silent) = table.expire(Duration::from_secs(123), Duration::from_secs(120));
    assert_eq!(
        (changes, silent),
        (vec![Change { group: "G".to_owned(), members: vec![Peer(3)] }], BTreeSet::from([Peer(2)]))
    );
    assert_eq!(table.disconnected(Peer(3)), []);
    assert!(table.group("G").is_none());
    assert_eq!(table.client_ids("G"), BTreeSet::new());
}
