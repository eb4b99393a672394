import asyncio
from urllib.parse import parse_qsl, urlsplit

from harness import ADDRESS, CLIENT, REDIRECT_URI, WEEK, done, sign_in

# docs: mcp · Checks `state` · storing tokens
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


class Kept:  # store these tokens where no other user can read them
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class SignIn:
    async def begin(self, url):
        self.back = await sign_in(url)

    async def end(self):
        return AuthorizationCodeResult(**dict(parse_qsl(urlsplit(self.back).query)))


async def main():
    member = SignIn()
    auth = OAuthClientProvider(
        server_url=ADDRESS,
        client_metadata=OAuthClientMetadata(redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"),
        storage=Kept(),
        redirect_handler=member.begin,
        callback_handler=member.end,
        client_metadata_url=CLIENT,  # the URL of your metadata document
    )
    async with httpx2.AsyncClient(auth=auth) as http:
        async with Client(streamable_http_client(ADDRESS, http_client=http)) as client:
            tools = (await client.list_tools()).tools
            answer = await client.call_tool("list_events", WEEK)
            # end
            await done(tools, answer.content, client.call_tool)


asyncio.run(main())
