package hotfire;

import static hotfire.Steps.require;
import static hotfire.Steps.waitUntil;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What a user of the Apache client does, against a Hotfire name server and broker. Each step prints one line; a failed one ends the run. */
public final class Interop {
    private static final String TOPIC = "InteropTopic";
    private static final String GROUP = "interop_group";
    private static final int SYNC = 200;
    private static final int ASYNC = 200;

    public static void main(String[] args) throws Exception {
        String nameServer = args[0];
        Set<String> sent = ConcurrentHashMap.newKeySet();
        Set<String> received = ConcurrentHashMap.newKeySet();
        AtomicInteger[] share = {new AtomicInteger(), new AtomicInteger()};

        DefaultMQProducer producer = new DefaultMQProducer("interop_producer");
        producer.setNamesrvAddr(nameServer);
        producer.start();

        for (int i = 0; i < SYNC; i++) {
            SendResult result = producer.send(message(i));
            require(result.getSendStatus() == SendStatus.SEND_OK, "sync send answered " + result.getSendStatus());
            sent.add("key-" + i);
        }
        System.out.println("ok: " + SYNC + " synchronous sends");

        CountDownLatch answers = new CountDownLatch(ASYNC);
        List<String> failures = new ArrayList<>();
        for (int i = SYNC; i < SYNC + ASYNC; i++) {
            String key = "key-" + i;
            producer.send(message(i), new SendCallback() {
                @Override public void onSuccess(SendResult result) {
                    if (result.getSendStatus() == SendStatus.SEND_OK) {
                        sent.add(key);
                    }
                    answers.countDown();
                }
                @Override public void onException(Throwable error) {
                    synchronized (failures) {
                        failures.add(key + ": " + error);
                    }
                    answers.countDown();
                }
            });
        }
        require(answers.await(30, TimeUnit.SECONDS), "asynchronous sends were not all answered");
        require(failures.isEmpty(), "asynchronous sends failed: " + failures);
        System.out.println("ok: " + ASYNC + " asynchronous sends");

        DefaultMQPushConsumer first = consumer(nameServer, "one", received, share[0]);
        DefaultMQPushConsumer second = consumer(nameServer, "two", received, share[1]);
        waitUntil(() -> received.containsAll(sent), 60, () -> "received " + received.size() + " of " + sent.size());
        System.out.println("ok: two push consumers received all " + sent.size() + " messages");

        // Both members own queues once the group has settled: each gets a part of the next messages.
        waitUntil(() -> {
            int[] before = {share[0].get(), share[1].get()};
            for (int i = 0; i < 16; i++) {
                SendResult result = producer.send(message(1_000_000 + i + before[0] + before[1]));
                require(result.getSendStatus() == SendStatus.SEND_OK, "send answered " + result.getSendStatus());
            }
            Thread.sleep(1000);
            return share[0].get() > before[0] && share[1].get() > before[1];
        }, 60, () -> "the queues were not shared: " + share[0].get() + " and " + share[1].get());
        System.out.println("ok: the two consumers share the queues");

        // One leaves; the other takes over its queues.
        second.shutdown();
        int start = 2_000_000;
        Set<String> late = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            producer.send(message(start + i));
            late.add("key-" + (start + i));
        }
        waitUntil(() -> received.containsAll(late), 60, () -> "after the rebalance messages are missing");
        System.out.println("ok: the remaining consumer took over all queues");

        first.shutdown();
        producer.shutdown();
        System.out.println("interop passed");
        System.exit(0);
    }

    private static Message message(int number) {
        Message message = new Message(TOPIC, "TagA", "key-" + number, ("body " + number).getBytes(StandardCharsets.UTF_8));
        if (number % 50 == 7) {
            // Over 4 KiB: the client compresses it.
            message.setBody("x".repeat(8192).getBytes(StandardCharsets.UTF_8));
        }
        return message;
    }

    private static DefaultMQPushConsumer consumer(String nameServer, String instance, Set<String> received, AtomicInteger share)
            throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(GROUP);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(instance);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                received.add(message.getKeys());
                share.incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }
}
