package hotfire;

import static hotfire.Steps.require;
import static hotfire.Steps.waitUntil;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** The kinds of messages beside the plain one, by the Apache client. Each step prints one line; a failed one ends the run. */
public final class Kinds {
    private static String nameServer;
    private static DefaultMQProducer producer;

    public static void main(String[] args) throws Exception {
        nameServer = args[0];
        producer = new DefaultMQProducer("kinds_producer");
        producer.setNamesrvAddr(nameServer);
        producer.start();
        transactions();
        expressions();
        orderly();
        batch();
        later();
        requestAndReply();
        producer.shutdown();
        System.out.println("kinds passed");
        System.exit(0);
    }

    private static void transactions() throws Exception {
        Map<String, Integer> asked = new ConcurrentHashMap<>();
        TransactionMQProducer transactional = new TransactionMQProducer("kinds_transactions");
        transactional.setNamesrvAddr(nameServer);
        transactional.setTransactionListener(new TransactionListener() {
            @Override public LocalTransactionState executeLocalTransaction(Message message, Object state) {
                return (LocalTransactionState) state;
            }
            @Override public LocalTransactionState checkLocalTransaction(MessageExt message) {
                boolean known = asked.merge(message.getKeys(), 1, Integer::sum) > 1;
                return known ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.UNKNOW;
            }
        });
        transactional.start();
        List<String> seen = new CopyOnWriteArrayList<>();
        DefaultMQPushConsumer consumer = consumer("KindsTransactions", seen);
        consumer.subscribe("KindsTransactions", "*");
        consumer.start();
        Map<String, LocalTransactionState> states = Map.of("committed", LocalTransactionState.COMMIT_MESSAGE,
            "rolled-back", LocalTransactionState.ROLLBACK_MESSAGE, "unknown", LocalTransactionState.UNKNOW);
        for (Map.Entry<String, LocalTransactionState> state : states.entrySet()) {
            Message message = new Message("KindsTransactions", "", state.getKey(), bytes("x"));
            SendResult result = transactional.sendMessageInTransaction(message, state.getValue());
            require(result.getSendStatus() == SendStatus.SEND_OK, "half message answered " + result.getSendStatus());
        }
        waitUntil(() -> seen.contains("committed") && seen.contains("unknown"), 60, () -> "transactions: seen " + seen);
        Thread.sleep(5000);
        require(seen.size() == 2, "transactions: seen " + seen);
        require(asked.keySet().equals(Collections.singleton("unknown")), "asked for " + asked);
        System.out.println("ok: transactions are committed, rolled back, and asked for");
        consumer.shutdown();
        transactional.shutdown();
    }

    private static void expressions() throws Exception {
        List<String> seen = new CopyOnWriteArrayList<>();
        DefaultMQPushConsumer consumer = consumer("KindsExpressions", seen);
        consumer.subscribe("KindsExpressions", MessageSelector.bySql("a BETWEEN 3 AND 5 AND region IS NOT NULL AND TAGS = 'T'"));
        for (int i = 0; i < 10; i++) {
            Message message = new Message("KindsExpressions", i == 4 ? "U" : "T", "e" + i, bytes("x"));
            message.putUserProperty("a", Integer.toString(i));
            message.putUserProperty(i == 9 ? "other" : "region", "here");
            producer.send(message);
        }
        consumer.start();
        waitUntil(() -> seen.size() >= 2, 60, () -> "expressions: seen " + seen);
        Thread.sleep(2000);
        require(seen.size() == 2 && seen.contains("e3") && seen.contains("e5"), "expressions: seen " + seen);
        consumer.shutdown();
        DefaultMQPushConsumer wrong = consumer("KindsWrong", seen);
        wrong.subscribe("KindsExpressions", MessageSelector.bySql("a BETWEEN"));
        try {
            wrong.start();
            require(false, "a damaged expression was taken");
        } catch (MQClientException expected) {
            System.out.println("ok: SQL92 expressions choose messages, and damaged ones are refused");
        }
        wrong.shutdown();
    }

    private static void orderly() throws Exception {
        List<String> seen = new CopyOnWriteArrayList<>();
        DefaultMQPushConsumer consumer = consumer("KindsOrder", seen);
        consumer.subscribe("KindsOrder", "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt message : messages) {
                // The third is not consumed at its first try, and nothing overtakes it.
                if (message.getKeys().equals("o2") && message.getReconsumeTimes() == 0) {
                    context.setSuspendCurrentQueueTimeMillis(200);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                seen.add(message.getKeys());
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.setConsumeMessageBatchMaxSize(1);
        for (int i = 0; i < 20; i++) {
            Message message = new Message("KindsOrder", "", "o" + i, bytes("x"));
            producer.send(message, (queues, sent, shard) -> queues.get(0), null);
        }
        consumer.start();
        waitUntil(() -> seen.size() >= 20, 60, () -> "order: seen " + seen);
        List<String> expected = IntStream.range(0, 20).mapToObj(i -> "o" + i).collect(Collectors.toList());
        require(seen.equals(expected), "order: seen " + seen);
        System.out.println("ok: an orderly consumer keeps the order of a queue, also across a failure");
        consumer.shutdown();
    }

    private static void batch() throws Exception {
        List<String> seen = new CopyOnWriteArrayList<>();
        DefaultMQPushConsumer consumer = consumer("KindsBatch", seen);
        consumer.subscribe("KindsBatch", "*");
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < 32; i++) {
            messages.add(new Message("KindsBatch", "", "b" + i, bytes("x")));
        }
        require(producer.send(messages).getSendStatus() == SendStatus.SEND_OK, "a batch was not stored");
        consumer.start();
        waitUntil(() -> seen.size() >= 32, 60, () -> "batch: seen " + seen.size());
        System.out.println("ok: a batch of 32 messages");
        consumer.shutdown();
    }

    private static void later() throws Exception {
        List<String> seen = new CopyOnWriteArrayList<>();
        DefaultMQPushConsumer consumer = consumer("KindsLater", seen);
        consumer.subscribe("KindsLater", "*");
        Message level = new Message("KindsLater", "", "level", bytes("x"));
        level.setDelayTimeLevel(1);
        Message timer = new Message("KindsLater", "", "timer", bytes("x"));
        timer.setDelayTimeMs(3000);
        Message recalled = new Message("KindsLater", "", "recalled", bytes("x"));
        recalled.setDelayTimeMs(4000);
        producer.send(level);
        producer.send(timer);
        SendResult victim = producer.send(recalled);
        String recalledId = producer.recallMessage("KindsLater", victim.getRecallHandle());
        require(victim.getMsgId().equals(recalledId), "recall answered " + recalledId);
        consumer.start();
        waitUntil(() -> seen.contains("level") && seen.contains("timer"), 60, () -> "later: seen " + seen);
        Thread.sleep(4000);
        require(seen.size() == 2, "later: seen " + seen);
        System.out.println("ok: a delay level, a moment, and a message that is taken back");
        consumer.shutdown();
    }

    private static void requestAndReply() throws Exception {
        DefaultMQPushConsumer consumer = consumer("KindsRequests", new CopyOnWriteArrayList<>());
        consumer.subscribe("KindsRequests", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt request : messages) {
                try {
                    Message reply = MessageUtil.createReplyMessage(request, bytes("re: " + new String(request.getBody(), StandardCharsets.UTF_8)));
                    producer.send(reply, 3000);
                } catch (Exception error) {
                    System.err.println("reply failed: " + error);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        producer.send(new Message("KindsRequests", "", "first", bytes("makes the topic")));
        consumer.start();
        List<String> replies = new CopyOnWriteArrayList<>();
        CountDownLatch replied = new CountDownLatch(1);
        // The callback hears of the send as well, without a message.
        producer.request(new Message("KindsRequests", "", "request", bytes("hello")), new RequestCallback() {
            @Override public void onSuccess(Message message) {
                if (message != null) {
                    replies.add(new String(message.getBody(), StandardCharsets.UTF_8));
                    replied.countDown();
                }
            }
            @Override public void onException(Throwable error) {
                System.err.println("request failed: " + error);
            }
        }, 20_000);
        require(replied.await(30, TimeUnit.SECONDS) && replies.get(0).equals("re: hello"), "replies " + replies);
        System.out.println("ok: a request and its reply");
        consumer.shutdown();
    }

    /** A consumer that notes the keys of what it gets; of a group with its topic's name. */
    private static DefaultMQPushConsumer consumer(String group, List<String> seen) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> seen.add(message.getKeys()));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return consumer;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
