from harness import AUTH, CLIENT_ID, CLIENT_SECRET, ISSUER, REDIRECT_URI, done, sign_in

# auth: none client_secret_basic client_secret_post

# docs: Authlib · PKCE and state, with requests or httpx, and for Flask, Django and Starlette · no discovery in the plain client
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

client = OAuth2Session(
    CLIENT_ID,
    CLIENT_SECRET,  # or None
    scope="profile:read events:read",
    redirect_uri=REDIRECT_URI,
    code_challenge_method="S256",
    token_endpoint=f"{ISSUER}/oauth/token",
    token_endpoint_auth_method=AUTH,  # "none", "client_secret_basic" or "client_secret_post"
)
verifier = generate_token(48)
url, state = client.create_authorization_url(f"{ISSUER}/oauth/authorize", code_verifier=verifier)
tokens = client.fetch_token(authorization_response=sign_in(url), state=state, code_verifier=verifier)
me = client.get(f"{ISSUER}/api/public/me").json()  # renews the token when it has expired
# end
client.refresh_token(f"{ISSUER}/oauth/token", refresh_token=tokens["refresh_token"])
again = client.get(f"{ISSUER}/api/public/me").json()["username"]
assert client.introspect_token(f"{ISSUER}/oauth/introspect", token=client.token["access_token"]).json()["active"]
client.revoke_token(f"{ISSUER}/oauth/revoke", token=client.token["refresh_token"]).raise_for_status()
done(me["username"], again)
