import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** The input and output of every program in this folder, which prints the sign-in URL, then the member that it read. */
class Harness {
  static final String ISSUER = System.getenv("ISSUER");
  static final String CLIENT_ID = System.getenv("CLIENT_ID");
  static final String REDIRECT_URI = System.getenv("REDIRECT_URI");
  /** How the client authenticates. */
  static final String AUTH = System.getenv("AUTH");
  static final String CLIENT_SECRET = System.getenv("CLIENT_SECRET");

  /** Prints the sign-in URL. Returns the URL with which the member returned. */
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
