import os

from harness import CLIENT_ID, ISSUER, REDIRECT_URI, done, sign_in

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # only for a server on your own machine

# docs: requests-oauthlib · PKCE and state, over requests · no discovery
from requests_oauthlib import OAuth2Session

client = OAuth2Session(
    CLIENT_ID, scope=["profile:read", "events:read"], redirect_uri=REDIRECT_URI, pkce="S256"
)
url, state = client.authorization_url(f"{ISSUER}/oauth/authorize")
tokens = client.fetch_token(
    f"{ISSUER}/oauth/token", authorization_response=sign_in(url), include_client_id=True
)
me = client.get(f"{ISSUER}/api/public/me").json()
# end
client.refresh_token(f"{ISSUER}/oauth/token", client_id=CLIENT_ID)
done(me["username"], client.get(f"{ISSUER}/api/public/me").json()["username"])
