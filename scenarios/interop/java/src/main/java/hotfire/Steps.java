package hotfire;

import java.util.concurrent.TimeUnit;

/** What every part of the client's program needs: waiting, and failing. */
final class Steps {
    private Steps() {
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    interface Explanation {
        String text();
    }

    static void waitUntil(Condition condition, int seconds, Explanation explanation) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (!condition.holds()) {
            require(System.nanoTime() < end, explanation.text());
            Thread.sleep(100);
        }
    }

    static void require(boolean condition, String failure) {
        if (!condition) {
            System.err.println("FAILED: " + failure);
            System.exit(1);
        }
    }
}
