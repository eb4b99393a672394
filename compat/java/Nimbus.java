// auth: none client_secret_basic client_secret_post
// docs: com.nimbusds:oauth2-oidc-sdk · Nimbus: discovery, PKCE, PAR, DPoP, ID tokens; used by Spring Security · checking `state`
import com.nimbusds.oauth2.sdk.*;
import com.nimbusds.oauth2.sdk.as.AuthorizationServerMetadata;
import com.nimbusds.oauth2.sdk.auth.*;
import com.nimbusds.oauth2.sdk.id.*;
import com.nimbusds.oauth2.sdk.pkce.*;
import java.net.URI;

class Nimbus {
  public static void main(String[] args) throws Exception {
    var server = AuthorizationServerMetadata.resolve(new Issuer(Harness.ISSUER));
    var client = new ClientID(Harness.CLIENT_ID);
    var secret = new Secret(Harness.CLIENT_SECRET);
    ClientAuthentication authentication = // null for a public client
        switch (Harness.AUTH) {
          case "client_secret_basic" -> new ClientSecretBasic(client, secret);
          case "client_secret_post" -> new ClientSecretPost(client, secret);
          default -> null;
        };
    var redirect = URI.create(Harness.REDIRECT_URI);
    var verifier = new CodeVerifier();
    var state = new State();
    var start =
        new AuthorizationRequest.Builder(ResponseType.CODE, client)
            .endpointURI(server.getAuthorizationEndpointURI())
            .redirectionURI(redirect)
            .scope(new Scope("profile:read", "events:read"))
            .state(state)
            .codeChallenge(verifier, CodeChallengeMethod.S256)
            .build();
    var back = AuthorizationResponse.parse(Harness.signIn(start.toURI())).toSuccessResponse();
    if (!state.equals(back.getState())) throw new IllegalStateException("not the sign-in that was begun here");
    var code = new AuthorizationCodeGrant(back.getAuthorizationCode(), redirect, verifier);
    var tokens = send(request(server.getTokenEndpointURI(), client, authentication, code));
    var refresh = new RefreshTokenGrant(tokens.getRefreshToken());
    var renewed = send(request(server.getTokenEndpointURI(), client, authentication, refresh));
    // end
    Harness.done(
        Harness.me(tokens.getAccessToken().getValue()), Harness.me(renewed.getAccessToken().getValue()));
  }

  static TokenRequest request(URI endpoint, ClientID client, ClientAuthentication authentication, AuthorizationGrant grant) {
    return authentication == null
        ? new TokenRequest.Builder(endpoint, client, grant).build()
        : new TokenRequest.Builder(endpoint, authentication, grant).build();
  }

  static com.nimbusds.oauth2.sdk.token.Tokens send(TokenRequest request) throws Exception {
    return TokenResponse.parse(request.toHTTPRequest().send()).toSuccessResponse().getTokens();
  }
}
