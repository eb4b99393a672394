// docs: com.google.oauth-client:google-oauth-client · Google’s: PKCE, and credentials that renew themselves · no discovery; checking `state`
import com.google.api.client.auth.oauth2.*;
import com.google.api.client.http.GenericUrl;
import com.google.api.client.http.javanet.NetHttpTransport;
import com.google.api.client.json.gson.GsonFactory;
import java.util.List;

class Google {
  public static void main(String[] args) throws Exception {
    var flow =
        new AuthorizationCodeFlow.Builder(
                BearerToken.authorizationHeaderAccessMethod(),
                new NetHttpTransport(),
                GsonFactory.getDefaultInstance(),
                new GenericUrl(Harness.ISSUER + "/oauth/token"),
                new ClientParametersAuthentication(Harness.CLIENT_ID, null),
                Harness.CLIENT_ID,
                Harness.ISSUER + "/oauth/authorize")
            .setScopes(List.of("profile:read", "events:read"))
            .enablePKCE()
            .build();
    var state = java.util.UUID.randomUUID().toString();
    var url = flow.newAuthorizationUrl().setRedirectUri(Harness.REDIRECT_URI).setState(state);
    var back = new AuthorizationCodeResponseUrl(Harness.signIn(url).toString());
    if (!state.equals(back.getState())) throw new IllegalStateException("not the sign-in that was begun here");
    var tokens = flow.newTokenRequest(back.getCode()).setRedirectUri(Harness.REDIRECT_URI).execute();
    var credential = flow.createAndStoreCredential(tokens, "member");
    var username = Harness.me(credential.getAccessToken());
    credential.refreshToken();
    // end
    Harness.done(username, Harness.me(credential.getAccessToken()));
  }
}
