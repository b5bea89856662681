//! Requests that wait for a reply.
use crate::support::{Broker, Cluster, SECOND, TOPIC, producer_config, run};
use client::{Producer, ProducerConfig, RequestError, reply_to};
use protocol::message::property;
use protocol::{Message, StoredMessage};
use rt::time::sleep;
use std::sync::Arc;

/// The first message of the topic, as who consumes it sees it.
async fn consumed(broker: &Broker) -> StoredMessage {
    loop {
        let record =
            broker.state().log.iter().find(|((topic, _), _)| topic == TOPIC).map(|(_, queue)| queue[0].clone());
        if let Some(record) = record {
            let mut message = StoredMessage::decode(&record).unwrap();
            // Set by brokers.
            message.properties.insert(property::CLUSTER, "c");
            return message;
        }
        sleep(SECOND / 10).await;
    }
}

#[test]
fn a_request_gets_the_reply_of_who_consumes_it() {
    run(|| async {
        let cluster = Cluster::start().await;
        cluster.name_server.route("c_REPLY_TOPIC", 1, &[&cluster.broker]);
        let asking = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        let replying = Producer::start(&cluster.client("r"), ProducerConfig::new("repliers")).await.unwrap();
        let broker = Arc::clone(&cluster.broker);
        let reply = rt::task::spawn(async move {
            let request = consumed(&broker).await;
            assert_eq!(request.properties.get(property::TTL), Some("5000"));
            let body = [&b"re: "[..], &request.body[..]].concat();
            replying.send(reply_to(&request, body.clone()).unwrap()).await.unwrap();
            // The call is over: a second reply is for nobody, and who replies is told.
            replying.send(reply_to(&request, body).unwrap()).await.unwrap_err();
        });
        let found = asking.request(Message::new(TOPIC, "hello"), 5 * SECOND).await.unwrap();
        assert_eq!(&found.body[..], b"re: hello");
        assert_eq!((found.topic.as_str(), found.store_timestamp), ("c_REPLY_TOPIC", 5));
        reply.await.unwrap();
    });
}

#[test]
fn a_request_waits_no_longer_than_it_says() {
    run(|| async {
        let cluster = Cluster::start().await;
        let asking = Producer::start(&cluster.client("p"), producer_config()).await.unwrap();
        let begun = rt::time::Instant::now();
        let failed = asking.request(Message::new(TOPIC, "hello"), 3 * SECOND).await.unwrap_err();
        assert!(matches!(failed, RequestError::NoReply { .. }), "{failed}");
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert_eq!(cluster.broker.stored(TOPIC), 1);
        let failed = asking.request(Message::new("bad topic", "hello"), 3 * SECOND).await.unwrap_err();
        assert!(matches!(failed, RequestError::Send(_)), "{failed}");
    });
}
