// A server of HTTP with 50 threads.
import com.sun.net.httpserver.HttpServer;
public class Served {
    public static void main(String[] a) throws Exception {
        var server = HttpServer.create(new java.net.InetSocketAddress("127.0.0.1", Integer.parseInt(a[0])), 0);
        server.createContext("/", e -> {
            byte[] body = e.getRequestURI().getPath().substring(1).repeat(1000).getBytes();
            e.sendResponseHeaders(200, body.length);
            e.getResponseBody().write(body);
            e.close();
        });
        server.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(50));
        server.start();
    }
}
