"""Shared input and reports, one line each: the sign-in URL, the member's week, the changed bio, the text at the write limit with the
week afterwards, and the error once its access has ended."""

import asyncio
import json
import os
from datetime import datetime, timedelta, timezone

ADDRESS = os.environ["ADDRESS"]
CLIENT = os.environ["CLIENT"]
REDIRECT_URI = os.environ["REDIRECT_URI"]

# The scope to request at the first sign-in; empty for the scopes of the challenge.
SCOPE = os.environ["SCOPE"] or None

_NOW = datetime.now(timezone.utc)
WEEK = {
    "sort": "starts_at",
    "starts_after": _NOW.isoformat(),
    "starts_before": (_NOW + timedelta(days=7)).isoformat(),
}


async def sign_in(url):
    """Prints the sign-in URL, and returns the URL with which the member returned."""
    print(url, flush=True)
    return await asyncio.to_thread(input)


async def done(tools, content, call):
    """Prints the results, writes until the limit, reads again, and makes one call after access has ended."""

    async def shown(name, arguments):
        try:
            return (await call(name, arguments)).content[0].text
        except BaseException as error:
            return str(error) or repr(error)

    def say(**found):
        print(json.dumps(found), flush=True)

    async def write():
        return await shown("update_profile", {"bio": "Here for the hikes"})

    say(tools=[tool.name for tool in tools], week=content[0].text)
    written = await write()
    say(written=written)
    while '"profile":' in written:
        written = await write()
    say(limited=written, week=await shown("list_events", WEEK))
    while await asyncio.to_thread(input) != "ended":
        pass
    say(refused=await shown("list_events", WEEK))
    os._exit(0)
