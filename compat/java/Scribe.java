// docs: com.github.scribejava:scribejava-core · ScribeJava: PKCE · no discovery; checking `state`
import com.github.scribejava.core.builder.ServiceBuilder;
import com.github.scribejava.core.builder.api.DefaultApi20;
import com.github.scribejava.core.oauth.AccessTokenRequestParams;
import com.github.scribejava.core.oauth2.clientauthentication.*;

class Scribe extends DefaultApi20 {
  public String getAccessTokenEndpoint() {
    return Harness.ISSUER + "/oauth/token";
  }

  protected String getAuthorizationBaseUrl() {
    return Harness.ISSUER + "/oauth/authorize";
  }

  public ClientAuthentication getClientAuthentication() {
    return RequestBodyAuthenticationScheme.instance();
  }

  public static void main(String[] args) throws Exception {
    var state = java.util.UUID.randomUUID().toString();
    try (var service =
        new ServiceBuilder(Harness.CLIENT_ID)
            .callback(Harness.REDIRECT_URI)
            .defaultScope("profile:read events:read")
            .build(new Scribe())) {
      var url = service.createAuthorizationUrlBuilder().state(state).initPKCE();
      var back = service.extractAuthorization(Harness.signIn(url.build()).toString());
      if (!state.equals(back.getState())) throw new IllegalStateException("not the sign-in that was begun here");
      var request = AccessTokenRequestParams.create(back.getCode());
      var tokens = service.getAccessToken(request.pkceCodeVerifier(url.getPkce().getCodeVerifier()));
      var renewed = service.refreshAccessToken(tokens.getRefreshToken());
      // end
      Harness.done(Harness.me(tokens.getAccessToken()), Harness.me(renewed.getAccessToken()));
    }
  }
}
