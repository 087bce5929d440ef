// An API on Tomcat: it takes `;…` off each segment, decodes the path, merges its slashes and resolves its dots.
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.logging.LogManager;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

class Api extends HttpServlet {
    static final String[][] ROUTES = {
        {"", "/admin", "secret"},
        {"", "/open/admin", "secret"},
        {"", "/items/[^/]+/secret", "secret"},
        {"", "/items/[^/]+", "item"},
        {"", "/open/.*", "open"},
        {"POST", "/write/[^/]+", "write"},
        {"GET HEAD", "/report/[^/]+", "report"},
        {"GET HEAD", "/read/.*", "read"},
    };

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String path = request.getServletPath() + (request.getPathInfo() == null ? "" : request.getPathInfo());
        for (String[] route : ROUTES) {
            boolean hasMethod = route[0].isEmpty() || (" " + route[0] + " ").contains(" " + request.getMethod() + " ");
            if (hasMethod && path.matches(route[1])) {
                response.setHeader("X-Route", route[2]);
                response.getWriter().print(route[2]);
                return;
            }
        }
        response.setStatus(404);
        response.setHeader("X-Route", "none");
    }

    public static void main(String[] arguments) throws Exception {
        LogManager.getLogManager().reset();
        String directory = arguments[1];
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(directory);
        tomcat.setPort(Integer.parseInt(arguments[0]));
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", directory);
        Tomcat.addServlet(context, "api", new Api());
        context.addServletMappingDecoded("/*", "api");
        tomcat.start();
        tomcat.getServer().await();
    }
}
