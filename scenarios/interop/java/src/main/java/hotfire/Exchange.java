package hotfire;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A visit to whichever broker has the store just now, {@code NAMES FILE N}: each message of the file is there, at its place, and found by its
 * key; N more are sent, and each that is acknowledged is added to the file; then all of it is read again.
 */
@SuppressWarnings("deprecation")
public final class Exchange {
    private static final String TOPIC = "ExchangeTopic";
    /** A broker that has just started is not known to the name server yet, nor its topics. */
    private static final long ROUTE_MAX_MS = 60_000;

    public static void main(String[] args) {
        try {
            Path file = Path.of(args[1]);
            if (Files.exists(file)) {
                read(args[0], file);
            }
            send(args[0], file, Integer.parseInt(args[2]));
            read(args[0], file);
        } catch (Throwable error) {
            error.printStackTrace();
            // The client's threads would keep the process alive.
            System.exit(1);
        }
        System.exit(0);
    }

    private interface Call<T> {
        T make() throws Exception;
    }

    /** Makes a call until the broker can be found. */
    private static <T> T onceThereIsARoute(Call<T> call) throws Exception {
        long end = System.nanoTime() + ROUTE_MAX_MS * 1_000_000;
        while (true) {
            try {
                return call.make();
            } catch (MQClientException error) {
                if (System.nanoTime() > end) {
                    throw error;
                }
                Thread.sleep(200);
            }
        }
    }

    private static void send(String names, Path file, int count) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("exchange_producer");
        producer.setNamesrvAddr(names);
        producer.start();
        int before = Files.exists(file) ? Files.readAllLines(file).size() : 0;
        List<String> lines = new ArrayList<>();
        for (int n = before; n < before + count; n++) {
            String body = "message-" + n + "-" + "x".repeat(n * 37 % 900);
            Message message = new Message(TOPIC, n % 3 == 0 ? "even" : "odd", "key-" + n, body.getBytes(StandardCharsets.UTF_8));
            SendResult result = onceThereIsARoute(() -> producer.send(message));
            if (result.getSendStatus() != SendStatus.SEND_OK) {
                throw new IllegalStateException("send answered " + result.getSendStatus());
            }
            lines.add(result.getMessageQueue().getQueueId() + " " + result.getQueueOffset() + " key-" + n + " " + body);
        }
        Files.write(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        producer.shutdown();
        System.out.println("ok: " + count + " messages sent");
    }

    private static void read(String names, Path file) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("exchange_reader");
        consumer.setNamesrvAddr(names);
        consumer.start();
        Map<String, String> found = new HashMap<>();
        for (MessageQueue queue : onceThereIsARoute(() -> consumer.fetchSubscribeMessageQueues(TOPIC))) {
            long next = consumer.minOffset(queue);
            long end = consumer.maxOffset(queue);
            while (next < end) {
                PullResult pulled = consumer.pull(queue, "*", next, 32);
                if (pulled.getPullStatus() == PullStatus.FOUND) {
                    for (MessageExt message : pulled.getMsgFoundList()) {
                        String body = new String(message.getBody(), StandardCharsets.UTF_8);
                        found.put(message.getQueueId() + " " + message.getQueueOffset(), message.getKeys() + " " + body);
                    }
                }
                next = pulled.getNextBeginOffset();
            }
        }
        int read = 0;
        for (String line : Files.readAllLines(file)) {
            String[] parts = line.split(" ", 4);
            String expected = parts[2] + " " + parts[3];
            String is = found.get(parts[0] + " " + parts[1]);
            if (!expected.equals(is)) {
                throw new IllegalStateException("queue " + parts[0] + " offset " + parts[1] + ": expected " + expected + ", found " + is);
            }
            // The index: every tenth key, and the newest ones.
            if (read++ % 10 == 0 && consumer.queryMessage(TOPIC, parts[2], 8, 0, Long.MAX_VALUE).getMessageList().isEmpty()) {
                throw new IllegalStateException(parts[2] + " is not found by its key");
            }
        }
        consumer.shutdown();
        System.out.println("ok: all " + read + " messages are there");
    }
}
