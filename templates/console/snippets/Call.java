import java.net.URI;
import java.net.URLEncoder;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Call {
    static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    public static void main(String[] arguments) throws Exception {
        String key = "@KEY@", secret = "@SECRET@", url = "@URL@";
        // All parameters, also those of a query or a form, are sorted and signed.
        var signed = new TreeMap<String, String>();
        signed.put("oauth_callback", "@CALLBACK@");  @flow
        signed.put("oauth_consumer_key", key);
        signed.put("oauth_nonce", UUID.randomUUID().toString());
        signed.put("oauth_signature_method", "HMAC-SHA1");
        signed.put("oauth_timestamp", Long.toString(System.currentTimeMillis() / 1000));
        signed.put("oauth_version", "1.0");
        String parameters = signed.entrySet().stream()
            .map(it -> encode(it.getKey()) + "=" + encode(it.getValue())).collect(Collectors.joining("&"));
        String base = "GET&" + encode(url) + "&" + encode(parameters);
        Mac mac = Mac.getInstance("HmacSHA1");
        mac.init(new SecretKeySpec((encode(secret) + "&").getBytes(StandardCharsets.UTF_8), "HmacSHA1"));
        byte[] signature = mac.doFinal(base.getBytes(StandardCharsets.UTF_8));
        signed.put("oauth_signature", Base64.getEncoder().encodeToString(signature));
        String header = signed.entrySet().stream()
            .map(it -> it.getKey() + "=\"" + encode(it.getValue()) + "\"").collect(Collectors.joining(", "));
        var request = HttpRequest.newBuilder(URI.create(url)).header("Authorization", "OAuth " + header).build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(response.statusCode() + " " + response.body());
        System.out.println("Open @OPEN@" + response.body().replaceAll(".*oauth_token=([^&]*).*", "$1"));  @flow
    }
}
