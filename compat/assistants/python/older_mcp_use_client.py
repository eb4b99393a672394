import asyncio
import os
from urllib.parse import urlsplit

from harness import ADDRESS, CLIENT, REDIRECT_URI, SCOPE, WEEK, done

os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"  # read on import
from mcp_use import MCPClient


async def main():
    # Requests all scopes at once: this client never requests another scope.
    auth = {"client_metadata_url": CLIENT, "callback_port": urlsplit(REDIRECT_URI).port, "scope": SCOPE}
    client = MCPClient({"mcpServers": {"week": {"url": ADDRESS, "auth": auth}}})
    session = await client.create_session("week")
    tools = await session.list_tools()
    answer = await session.call_tool("list_events", WEEK)
    await done(tools, answer.content, session.call_tool)


asyncio.run(main())
