//! The push consumer while all is well, and when messages cannot be consumed.
use crate::support::{Cluster, GROUP, Mood, Recorder, SECOND, TOPIC, blank, consumer_config, run, wait_until};
use client::{
    ClientInstance, ConsumeFrom, ConsumeOutcome, ConsumerConfig, MessageModel, MessageSelector, PushConsumer,
    StartError,
};
use protocol::body::ResetOffsetBody;
use protocol::header::ResetOffsetRequest;
use protocol::message::{property, retry_topic};
use protocol::{Command, MessageQueue, RequestCode, ResponseCode};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

async fn consumer(instance: &ClientInstance, config: ConsumerConfig, recorder: &Arc<Recorder>) -> PushConsumer {
    let subscriptions = vec![(TOPIC.to_owned(), MessageSelector::all())];
    PushConsumer::start(instance, config, subscriptions, Arc::clone(recorder) as _).await.unwrap()
}

fn fill(cluster: &Cluster, queue_id: i32, count: usize) {
    for index in 0..count {
        cluster.broker.append(blank(TOPIC, queue_id, format!("{queue_id}-{index:03}").into()));
    }
}

#[test]
fn every_message_is_delivered_and_progress_is_committed() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 50);
        fill(&cluster, 1, 3);
        let recorder = Recorder::accepting();
        let consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        recorder.wait_for(53).await;
        let expected: Vec<String> =
            (0..50).map(|i| format!("0-{i:03}")).chain((0..3).map(|i| format!("1-{i:03}"))).collect();
        assert_eq!(recorder.bodies(), expected);
        let owned = [
            MessageQueue::new(retry_topic(GROUP), "a", 0),
            MessageQueue::new(TOPIC, "a", 0),
            MessageQueue::new(TOPIC, "a", 1),
        ];
        assert_eq!(consumer.assigned(), owned);
        rt::time::sleep(SECOND * 6).await;
        assert_eq!((cluster.broker.committed(TOPIC, 0), cluster.broker.committed(TOPIC, 1)), (Some(50), Some(3)));
        // A held pull answers as soon as something arrives.
        fill(&cluster, 1, 1);
        rt::time::sleep(SECOND).await;
        assert_eq!(recorder.all().len(), 54);
        assert_eq!(consumer.held(), 0);
    });
}

#[test]
fn shutdown_stores_progress_and_leaves_the_group() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 5);
        let (instance, recorder) = (cluster.client("c"), Recorder::accepting());
        let first = consumer(&instance, consumer_config(), &recorder).await;
        recorder.wait_for(5).await;
        rt::time::sleep(Duration::from_millis(50)).await;
        first.shutdown().await;
        assert_eq!(cluster.broker.committed(TOPIC, 0), Some(5));
        assert!(cluster.broker.state().members[GROUP].is_empty());
        fill(&cluster, 0, 1);
        let again = consumer(&instance, consumer_config(), &recorder).await;
        recorder.wait_for(6).await;
        assert_eq!(recorder.all().len(), 6);
        again.shutdown().await;
    });
}

#[test]
fn a_new_member_takes_its_share_at_once_and_a_leaving_one_gives_it_back() {
    run(|| async {
        let cluster = Cluster::start().await;
        let recorder = Recorder::accepting();
        let first = consumer(&cluster.client("c1"), consumer_config(), &recorder).await;
        wait_until(|| first.assigned().len() == 3).await;
        let second = consumer(&cluster.client("c2"), consumer_config(), &recorder).await;
        let begun = rt::time::Instant::now();
        wait_until(|| first.assigned().len() == 2 && second.assigned().len() == 1).await;
        // The retry queue and queue 0 belong to the first in order, queue 1 to the second.
        assert_eq!(second.assigned(), [MessageQueue::new(TOPIC, "a", 1)]);
        second.shutdown().await;
        wait_until(|| first.assigned().len() == 3).await;
        assert!(begun.elapsed() < SECOND * 5, "{:?}", begun.elapsed());
    });
}

#[test]
fn a_message_handed_back_comes_again_under_its_first_topic() {
    run(|| async {
        let cluster = Cluster::start().await;
        let recorder = Recorder::judging(|delivery| match delivery.reconsume_times {
            0 => ConsumeOutcome::Later { delay_level: 0 },
            _ => ConsumeOutcome::Success,
        });
        let consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        fill(&cluster, 0, 1);
        recorder.wait_for(2).await;
        let all = recorder.all();
        assert_eq!((all[1].topic.as_str(), all[1].reconsume_times, &all[1].body), (TOPIC, 1, &all[0].body));
        wait_until(|| consumer.progress().iter().any(|(queue, offset)| queue.topic == TOPIC && offset.0 == 1)).await;
    });
}

#[test]
fn a_message_that_nobody_takes_back_pins_progress_and_is_tried_again_here() {
    run(|| async {
        let cluster = Cluster::start().await;
        let recorder = Recorder::judging(|delivery| match (delivery.offset, delivery.reconsume_times) {
            (0, 0) => ConsumeOutcome::Later { delay_level: 0 },
            _ => ConsumeOutcome::Success,
        });
        let consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        let busy = [Mood::Refuse(ResponseCode::SystemBusy); 3];
        cluster.broker.next_mood(RequestCode::ConsumerSendMsgBack, &busy[..1]);
        cluster.broker.next_mood(RequestCode::SendMessageV2, &busy);
        fill(&cluster, 0, 3);
        recorder.wait_for(3).await;
        rt::time::sleep(SECOND * 4).await;
        let progress =
            || consumer.progress().into_iter().find(|(queue, _)| queue.topic == TOPIC && queue.queue_id == 0);
        assert_eq!(progress().unwrap().1.0, 0);
        recorder.wait_for(4).await;
        rt::time::sleep(SECOND).await;
        assert_eq!(progress().unwrap().1.0, 3);
        assert_eq!(recorder.all()[3].reconsume_times, 1);
    });
}

#[test]
fn what_its_broker_does_not_take_back_goes_to_the_retry_topic_as_a_new_message() {
    run(|| async {
        let cluster = Cluster::start().await;
        let recorder = Recorder::judging(|delivery| match delivery.reconsume_times {
            0 => ConsumeOutcome::Later { delay_level: 0 },
            _ => ConsumeOutcome::Success,
        });
        let _consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        cluster.broker.next_mood(RequestCode::ConsumerSendMsgBack, &[Mood::Refuse(ResponseCode::SystemError)]);
        fill(&cluster, 0, 1);
        recorder.wait_for(2).await;
        assert_eq!((recorder.all()[1].topic.as_str(), recorder.all()[1].reconsume_times), (TOPIC, 1));
    });
}

#[test]
fn a_failed_question_for_progress_is_not_an_answer() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 10);
        cluster.broker.state().offsets.insert((GROUP.into(), TOPIC.into(), 0), 7);
        cluster.broker.next_mood(RequestCode::QueryConsumerOffset, &[Mood::Refuse(ResponseCode::SystemError); 6]);
        let recorder = Recorder::accepting();
        let consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        recorder.wait_for(3).await;
        rt::time::sleep(SECOND * 2).await;
        assert_eq!(recorder.all().iter().map(|delivery| delivery.offset).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(consumer.assigned().len(), 3);
    });
}

#[test]
fn a_start_at_the_end_is_claimed_before_anything_is_consumed() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 10);
        let config = ConsumerConfig { consume_from: ConsumeFrom::LastOffset, ..consumer_config() };
        let recorder = Recorder::accepting();
        let first = consumer(&cluster.client("c"), config.clone(), &recorder).await;
        wait_until(|| first.assigned().len() == 3).await;
        assert_eq!(cluster.broker.committed(TOPIC, 0), Some(10));
        // It dies before it has consumed what comes next; its successor must not start behind that.
        drop(first);
        fill(&cluster, 0, 2);
        let _second = consumer(&cluster.client("c2"), config, &recorder).await;
        recorder.wait_for(2).await;
        let mut offsets: Vec<i64> = recorder.all().iter().map(|delivery| delivery.offset).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, [10, 11]);
    });
}

#[test]
fn an_illegal_offset_is_left_for_the_one_the_broker_names() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 10);
        cluster.broker.state().minimum = 4;
        cluster.broker.state().offsets.insert((GROUP.into(), TOPIC.into(), 0), 2);
        let recorder = Recorder::accepting();
        let _consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        wait_until(|| cluster.broker.committed(TOPIC, 0) == Some(4)).await;
        recorder.wait_for(6).await;
        assert_eq!(recorder.all().iter().map(|d| d.offset).min(), Some(4));
    });
}

#[test]
fn a_reset_wins_over_a_listener_that_is_still_at_work() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 10);
        let recorder = Recorder::slow(SECOND * 3);
        let consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        recorder.wait_for(10).await;
        let header = ResetOffsetRequest {
            group: GROUP.into(),
            topic: TOPIC.into(),
            queue_id: -1,
            offset: None,
            timestamp: 0,
            force: true,
        };
        let body = ResetOffsetBody { offset_table: BTreeMap::from([(MessageQueue::new(TOPIC, "a", 0), 8)]) };
        let request = Command::request(RequestCode::ResetConsumerClientOffset, &header);
        cluster.broker.push(request.with_body(protocol::json::to_vec(&body).unwrap())).await;
        wait_until(|| cluster.broker.committed(TOPIC, 0) == Some(8)).await;
        recorder.wait_for(12).await;
        let again: Vec<i64> = recorder.all()[10..].iter().map(|delivery| delivery.offset).collect();
        assert_eq!(again, [8, 9]);
        // The ten calls of before end now, and change nothing: the last of the new calls do.
        wait_until(|| consumer.held() == 0).await;
        assert_eq!(consumer.progress().iter().find(|(queue, _)| queue.topic == TOPIC).unwrap().1.0, 10);
    });
}

#[test]
fn only_wanted_tags_are_delivered_and_the_others_do_not_pin_progress() {
    run(|| async {
        let cluster = Cluster::start().await;
        for tag in ["Aa", "BB", "BB"] {
            let mut message = blank(TOPIC, 0, tag.into());
            message.properties.insert(property::TAGS, tag);
            cluster.broker.append(message);
        }
        let recorder = Recorder::accepting();
        let subscriptions = vec![(TOPIC.to_owned(), MessageSelector::tags("Aa || x"))];
        let consumer =
            PushConsumer::start(&cluster.client("c"), consumer_config(), subscriptions, Arc::clone(&recorder) as _)
                .await
                .unwrap();
        recorder.wait_for(1).await;
        cluster.broker.append({
            let mut message = blank(TOPIC, 0, "BB".into());
            message.properties.insert(property::TAGS, "BB");
            message
        });
        wait_until(|| consumer.progress().iter().any(|(queue, offset)| queue.topic == TOPIC && offset.0 == 4)).await;
        assert_eq!(recorder.bodies(), ["Aa"]);
    });
}

#[test]
fn flow_control_bounds_what_is_held() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 400);
        let recorder = Recorder::slow(SECOND / 2);
        let config = ConsumerConfig { pull_threshold_for_queue: 40, consume_concurrency: 10, ..consumer_config() };
        let consumer = consumer(&cluster.client("c"), config, &recorder).await;
        let mut most = 0;
        while recorder.all().len() < 400 {
            most = most.max(consumer.held());
            rt::time::sleep(Duration::from_millis(20)).await;
        }
        assert!((41..=40 + 32).contains(&most), "{most}");
    });
}

#[test]
fn a_call_that_takes_too_long_is_handed_back_and_no_longer_pins_progress() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 1);
        let recorder = Recorder::slow(SECOND * 300);
        let config = ConsumerConfig { consume_timeout: SECOND * 60, ..consumer_config() };
        let consumer = consumer(&cluster.client("c"), config, &recorder).await;
        wait_until(|| consumer.progress().iter().any(|(queue, offset)| queue.topic == TOPIC && offset.0 == 1)).await;
        recorder.wait_for(2).await;
        assert_eq!(recorder.all()[1].reconsume_times, 1);
    });
}

#[test]
fn a_broadcasting_consumer_goes_on_where_its_file_says() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 5);
        fill(&cluster, 1, 5);
        let config = ConsumerConfig {
            model: MessageModel::Broadcasting,
            local_offset_dir: "/offsets".into(),
            ..consumer_config()
        };
        let recorders = [Recorder::accepting(), Recorder::accepting()];
        let first = consumer(&cluster.client("c1"), config.clone(), &recorders[0]).await;
        let _second = consumer(&cluster.client("c2"), config.clone(), &recorders[1]).await;
        recorders[0].wait_for(10).await;
        recorders[1].wait_for(10).await;
        rt::time::sleep(SECOND * 6).await;
        drop(first);
        let text = rt::fs::read("/offsets/10.0.0.1@c1/g/offsets.json").await.unwrap();
        let compact: String = String::from_utf8(text).unwrap().split_whitespace().collect();
        let entry = |id: i32| format!("{{\"brokerName\":\"a\",\"queueId\":{id},\"topic\":\"T\"}}:5");
        assert_eq!(compact, format!("{{\"offsetTable\":{{{},{}}}}}", entry(0), entry(1)));
        fill(&cluster, 0, 1);
        let again = Recorder::accepting();
        let _first = consumer(&cluster.client("c1"), config, &again).await;
        again.wait_for(1).await;
        rt::time::sleep(SECOND * 2).await;
        assert_eq!(again.bodies().len(), 1);
        assert_eq!(cluster.broker.committed(TOPIC, 0), None);
    });
}

#[test]
fn unsubscribing_stores_progress() {
    run(|| async {
        let cluster = Cluster::start().await;
        fill(&cluster, 0, 5);
        let recorder = Recorder::accepting();
        let consumer = consumer(&cluster.client("c"), consumer_config(), &recorder).await;
        recorder.wait_for(5).await;
        rt::time::sleep(Duration::from_millis(20)).await;
        consumer.unsubscribe(TOPIC);
        wait_until(|| consumer.assigned().len() == 1).await;
        wait_until(|| cluster.broker.committed(TOPIC, 0) == Some(5)).await;
        consumer.subscribe(TOPIC, &MessageSelector::all()).await.unwrap();
        wait_until(|| consumer.assigned().len() == 3).await;
        rt::time::sleep(SECOND * 2).await;
        assert_eq!(recorder.all().len(), 5);
    });
}

#[test]
fn an_expression_that_a_broker_refuses_is_told_at_the_start() {
    run(|| async {
        let cluster = Cluster::start().await;
        let (recorder, client) = (Recorder::accepting(), cluster.client("c"));
        let start = || {
            let subscriptions = vec![(TOPIC.to_owned(), MessageSelector::sql("a = 'x'"))];
            PushConsumer::start(&client, consumer_config(), subscriptions, Arc::clone(&recorder) as _)
        };
        cluster
            .broker
            .next_mood(RequestCode::CheckClientConfig, &[Mood::Refuse(ResponseCode::SubscriptionParseFailed)]);
        let Err(StartError::Subscription { topic, cause }) = start().await else { panic!("it starts") };
        assert_eq!((topic.as_str(), cause.code()), (TOPIC, Some(ResponseCode::SubscriptionParseFailed)));
        let consumer = start().await.unwrap();
        // Not consumed by the client's own choice: whatever the broker gives is wanted.
        fill(&cluster, 0, 1);
        recorder.wait_for(1).await;
        cluster.broker.next_mood(RequestCode::CheckClientConfig, &[Mood::Refuse(ResponseCode::SystemError)]);
        assert!(consumer.subscribe("U", &MessageSelector::sql("b")).await.is_ok(), "no broker has the topic yet");
        assert!(consumer.subscribe(TOPIC, &MessageSelector::sql("b")).await.is_err());
        assert!(consumer.subscribe(TOPIC, &MessageSelector::sql("")).await.is_err());
        fill(&cluster, 0, 1);
        recorder.wait_for(2).await;
        let empty = vec![(TOPIC.to_owned(), MessageSelector::sql(" "))];
        let refused = PushConsumer::start(&cluster.client("d"), consumer_config(), empty, recorder as _).await;
        assert!(matches!(refused, Err(StartError::Config(_))));
    });
}
