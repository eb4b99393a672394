// auth: client_secret_basic client_secret_post
// id-token: RS256
import java.net.CookieManager;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Clock;
import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.RefreshTokenOAuth2AuthorizedClientProvider;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

public class Spring {
  private static final RefreshTokenOAuth2AuthorizedClientProvider RENEWAL = new RefreshTokenOAuth2AuthorizedClientProvider();

  /** Not @SpringBootApplication, which would scan the whole default package. */
  @Configuration
  @EnableAutoConfiguration
  public static class App {
    @Bean
    RefreshTokenOAuth2AuthorizedClientProvider renewal() {
      return RENEWAL;
    }
  }

  // docs: org.springframework.boot:spring-boot-starter-oauth2-client · Spring Security: discovery, PKCE, ID tokens, sessions, automatic renewal · ID tokens in RS256 (--id-token-alg RS256)
  /** The site: each page requires a sign-in, and Spring renews an expired token. */
  @RestController
  public static class Site {
    @GetMapping("/")
    String home(@RegisteredOAuth2AuthorizedClient("platform") OAuth2AuthorizedClient client) throws Exception {
      String token = client.getAccessToken().getTokenValue();
      return token + " " + Harness.me(token);
    }
  }

  /** application.properties */
  static final String PROPERTIES =
      """
      spring.security.oauth2.client.provider.platform.issuer-uri=${ISSUER}
      spring.security.oauth2.client.registration.platform.client-id=${CLIENT_ID}
      spring.security.oauth2.client.registration.platform.client-secret=${CLIENT_SECRET}
      spring.security.oauth2.client.registration.platform.client-authentication-method=${AUTH}
      spring.security.oauth2.client.registration.platform.scope=openid,profile,profile:read,events:read
      spring.security.oauth2.client.registration.platform.redirect-uri=https://app.example/login/oauth2/code/platform
      """;
  // end

  private static HttpClient browser;
  private static String site;

  public static void main(String[] arguments) throws Exception {
    var app = new SpringApplication(App.class, Site.class);
    var properties = new java.util.Properties();
    properties.load(new java.io.StringReader(PROPERTIES));
    properties.putAll(
        java.util.Map.of("server.port", "0", "server.address", "127.0.0.1", "spring.main.banner-mode", "off", "logging.level.root", "off"));
    app.setDefaultProperties(properties);
    var context = (WebServerApplicationContext) app.run();
    site = "http://127.0.0.1:" + context.getWebServer().getPort();
    browser = HttpClient.newBuilder().cookieHandler(new CookieManager()).build();

    var begun = get(get("/").headers().firstValue("location").orElseThrow());
    var back = Harness.signIn(begun.headers().firstValue("location").orElseThrow());
    get(back.getRawPath() + "?" + back.getRawQuery());
    var first = get("/").body().split(" ");
    RENEWAL.setClock(Clock.offset(Clock.systemUTC(), Duration.ofMinutes(20))); // the token has expired
    var second = get("/").body().split(" ");
    if (first[0].equals(second[0])) throw new IllegalStateException("the token was not renewed");
    Harness.done(first[1], second[1]);
    System.exit(0);
  }

  private static HttpResponse<String> get(String path) throws Exception {
    var uri = path.startsWith("/") ? URI.create(site + path) : URI.create(path);
    return browser.send(HttpRequest.newBuilder(uri).header("Accept", "text/html").build(), BodyHandlers.ofString());
  }
}
