import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.*;

/** What the threads of a Java program wait for. */
public class Sync {
    static final Object monitor = new Object();
    static int turn, entered;

    static int turns() throws Exception {
        Thread[] threads = new Thread[2];
        for (int me = 0; me < 2; me++) {
            int mine = me;
            threads[me] = new Thread(() -> {
                for (int i = 0; i < 200; i++) {
                    synchronized (monitor) {
                        while (turn != mine) {
                            try { monitor.wait(); } catch (InterruptedException e) { return; }
                        }
                        turn = 1 - mine;
                        entered++;
                        monitor.notifyAll();
                    }
                }
            }, "player " + me);
            threads[me].start();
        }
        for (Thread t : threads) t.join();
        return entered;
    }

    static int contended() throws Exception {
        int[] sum = {0};
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 40; i++)
            pool.submit(() -> {
                synchronized (sum) {
                    sum[0]++;
                    Thread.sleep(1);
                }
                return 0;
            });
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.MINUTES);
        return sum[0];
    }

    static int parked() throws Exception {
        AtomicInteger go = new AtomicInteger();
        Thread t = new Thread(() -> {
            while (go.get() == 0) LockSupport.park();
            LockSupport.parkNanos(1_000_000);
            go.incrementAndGet();
        });
        t.start();
        Thread.sleep(5);
        go.set(1);
        LockSupport.unpark(t);
        t.join();
        return go.get();
    }

    static int others() throws Exception {
        ReentrantLock lock = new ReentrantLock();
        Condition filled = lock.newCondition();
        ArrayBlockingQueue<Integer> queue = new ArrayBlockingQueue<>(1);
        CyclicBarrier barrier = new CyclicBarrier(3);
        AtomicInteger sum = new AtomicInteger();
        Thread[] threads = new Thread[3];
        for (int i = 0; i < 3; i++) {
            int id = i;
            threads[i] = new Thread(() -> {
                try {
                    for (int k = 0; k < 20; k++) {
                        barrier.await();
                        if (id == 0) queue.put(k);
                        if (id == 1) sum.addAndGet(queue.take());
                        if (id == 2) {
                            lock.lock();
                            filled.awaitNanos(100_000);
                            lock.unlock();
                        }
                    }
                } catch (Exception e) { e.printStackTrace(); }
            });
            threads[i].start();
        }
        for (Thread t : threads) t.join();
        System.gc();
        return sum.get();
    }

    static int overflow(int n) {
        return overflow(n + 1) + 1;
    }

    /** Handled by the JVM with SIGSEGV: a null pointer in compiled code, and a stack that is full. */
    static int faults() {
        int caught = 0;
        String[] strings = {"a", null};
        for (int i = 0; i < 50_000; i++) {
            try { caught += strings[i & 1].length() - 1; } catch (NullPointerException e) { caught++; }
        }
        try { overflow(0); } catch (StackOverflowError e) { caught++; }
        return caught;
    }

    public static void main(String[] args) throws Exception {
        System.out.println(turns() + " " + contended() + " " + parked() + " " + others() + " " + faults());
        System.exit(3);
    }
}
