import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Starts DynamoDB Local on 127.0.0.1 only. The engine itself has no such option and listens on every interface; its Jetty server is a
 * private field, so its connectors are given their host before they open.
 */
public final class LocalDynamoDb {
  public static void main(String[] arguments) throws Exception {
    DynamoDBProxyServer engine = ServerRunner.createServerFromCommandLineArgs(arguments);
    for (Connector connector : jettyOf(engine).getConnectors()) {
      ((ServerConnector) connector).setHost("127.0.0.1");
    }
    engine.start();
    engine.join();
  }

  private static Server jettyOf(DynamoDBProxyServer engine) throws IllegalAccessException {
    for (Field field : DynamoDBProxyServer.class.getDeclaredFields()) {
      if (Server.class.isAssignableFrom(field.getType())) {
        field.setAccessible(true);
        return (Server) field.get(engine);
      }
    }
    throw new IllegalStateException("This version of DynamoDB Local keeps its Jetty server elsewhere; refusing to listen everywhere.");
  }
}
