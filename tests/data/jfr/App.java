import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingStream;

/** Works until each kind of event has occurred in two chunks, and writes them to the file in the first argument. */
public class App {
    static final String[] KINDS = {
        "jdk.ExecutionSample", "jdk.NativeMethodSample", "jdk.ObjectAllocationSample",
        "jdk.ObjectAllocationInNewTLAB", "jdk.ObjectAllocationOutsideTLAB", "jdk.JavaMonitorEnter", "jdk.ThreadPark",
    };
    static final Map<String, Integer> seen = new ConcurrentHashMap<>();
    static volatile long sink;
    static volatile boolean stopped;

    static boolean hasAll(int count) {
        for (String kind : KINDS) {
            if (seen.getOrDefault(kind, 0) < count) return false;
        }
        return true;
    }

    static long inner(long seed) {
        for (int i = 0; i < 20_000; i++) seed = seed * 31 + i;
        return seed;
    }

    static void work() {
        while (!stopped) {
            sink += inner(sink);
            sink += new byte[4096].length + new long[1 << 20].length;
            LockSupport.parkNanos(100_000);
        }
    }

    static synchronized void fight() {
        sink += inner(sink);
    }

    static void fights() {
        while (!stopped) fight();
    }

    static void read() {
        try (var server = new java.net.ServerSocket(0)) {
            server.setSoTimeout(200);
            while (!stopped) {
                try {
                    server.accept();
                } catch (java.net.SocketTimeoutException expected) {
                }
            }
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    public static void main(String[] args) throws Exception {
        try (Recording recording = new Recording(); RecordingStream stream = new RecordingStream()) {
            recording.enable("jdk.JVMInformation");
            for (String kind : KINDS) {
                recording.enable(kind).withoutThreshold().withStackTrace();
                stream.onEvent(kind, event -> seen.merge(kind, 1, Integer::sum));
            }
            recording.enable("jdk.ExecutionSample").withPeriod(java.time.Duration.ofMillis(10));
            recording.enable("jdk.NativeMethodSample").withPeriod(java.time.Duration.ofMillis(10));
            recording.start();
            stream.startAsync();
            for (Runnable task : new Runnable[] {App::work, App::fights, App::fights, App::read}) {
                Thread thread = new Thread(task, "worker");
                thread.setDaemon(true);
                thread.start();
            }
            while (!hasAll(1)) Thread.sleep(10);
            // Starting a recording begins a chunk.
            try (Recording other = new Recording()) {
                other.start();
            }
            stopped = true;
            recording.stop();
            recording.dump(Path.of(args[0]));
        }
    }
}
