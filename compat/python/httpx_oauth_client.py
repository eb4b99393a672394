import asyncio
import base64
import hashlib
import secrets
from urllib.parse import parse_qs, urlsplit

import httpx

from harness import CLIENT_ID, ISSUER, REDIRECT_URI, done, sign_in

# docs: httpx-oauth · Async, over httpx; used by FastAPI Users · discovery only for OpenID; verifier, challenge, checking `state`; requires a secret, which stays empty
from httpx_oauth.oauth2 import BaseOAuth2

client = BaseOAuth2(
    CLIENT_ID,
    "",
    f"{ISSUER}/oauth/authorize",
    f"{ISSUER}/oauth/token",
    f"{ISSUER}/oauth/token",
    base_scopes=["profile:read", "events:read"],
    token_endpoint_auth_method="client_secret_post",
)


async def main():
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    url = await client.get_authorization_url(
        REDIRECT_URI, state=state, code_challenge=challenge, code_challenge_method="S256"
    )
    back = parse_qs(urlsplit(sign_in(url)).query)
    assert back["state"] == [state]
    tokens = await client.get_access_token(back["code"][0], REDIRECT_URI, code_verifier=verifier)
    renewed = await client.refresh_token(tokens["refresh_token"])
    # end
    async with httpx.AsyncClient() as http:
        names = [
            (await http.get(f"{ISSUER}/api/public/me", headers={"Authorization": f"Bearer {token}"})).json()[
                "username"
            ]
            for token in (tokens["access_token"], renewed["access_token"])
        ]
    done(*names)


asyncio.run(main())
