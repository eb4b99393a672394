import requests

from harness import CLIENT_ID, ISSUER, REDIRECT_URI, done, sign_in

# docs: requests_oauth2client · Discovery, PKCE, PAR, DPoP and private_key_jwt, over requests · nothing
from requests_oauth2client import OAuth2AccessTokenAuth, OAuth2Client, PublicApp

client = OAuth2Client.from_discovery_endpoint(
    f"{ISSUER}/.well-known/oauth-authorization-server",
    redirect_uri=REDIRECT_URI,
    auth=PublicApp(CLIENT_ID),
    testing=True,  # only for an http server on your own machine
)
request = client.authorization_request(scope="profile:read events:read")
tokens = client.authorization_code(request.validate_callback(sign_in(str(request))))
api = requests.Session()
api.auth = OAuth2AccessTokenAuth(client, tokens)  # renews the token before it expires
me = api.get(f"{ISSUER}/api/public/me").json()
# end
renewed = client.refresh_token(tokens)
again = requests.get(f"{ISSUER}/api/public/me", auth=renewed).json()
client.pushed_authorization_request(client.authorization_request(scope="profile:read"))
assert client.introspect_token(renewed.access_token)["active"]
assert client.revoke_refresh_token(renewed.refresh_token)
done(me["username"], again["username"])
