import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** What every program here is told, and how it tells what it did: the address to sign in at, then the member it read. */
class Harness {
  static final String ISSUER = System.getenv("ISSUER");
  static final String CLIENT_ID = System.getenv("CLIENT_ID");
  static final String REDIRECT_URI = System.getenv("REDIRECT_URI");
  /** How the client authenticates. */
  static final String AUTH = System.getenv("AUTH");
  static final String CLIENT_SECRET = System.getenv("CLIENT_SECRET");

  /** Prints where the member signs in. Returns the address at which they came back. */
  static URI signIn(Object url) throws Exception {
    System.out.println(url);
    return URI.create(new BufferedReader(new InputStreamReader(System.in)).readLine());
  }

  static String me(String token) throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(ISSUER + "/api/public/me")).header("Authorization", "Bearer " + token).build();
    String body = HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
    return body.replaceAll(".*\"username\":\"([^\"]*)\".*", "$1");
  }

  static void done(String username, String again) {
    System.out.println("{\"username\":\"" + username + "\",\"again\":\"" + again + "\"}");
  }
}
