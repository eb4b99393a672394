import asyncio
from urllib.parse import urlsplit

from harness import ADDRESS, CLIENT, REDIRECT_URI, WEEK, done

# docs: fastmcp · Opens the browser · setting `token_storage`
from fastmcp import Client
from fastmcp.client.auth import OAuth


async def main():
    redirect = urlsplit(REDIRECT_URI)  # its path is /callback
    auth = OAuth(
        client_metadata_url=CLIENT,  # the URL of your metadata document
        callback_host=redirect.hostname,
        callback_port=redirect.port,
    )
    async with Client(ADDRESS, auth=auth) as client:
        tools = await client.list_tools()
        answer = await client.call_tool("list_events", WEEK)
        # end
        await done(tools, answer.content, client.call_tool)


asyncio.run(main())
