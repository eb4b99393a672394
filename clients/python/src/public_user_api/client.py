"""The API for the member that the key or token belongs to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, TypedDict, TypeVar, Unpack

import httpx

from .calls import AskToken, Calls, Steps, Wait
from .schema import (
    Achievement,
    AchievementDetail,
    AchievementStatistics,
    AllAchievementsQuery,
    ChangedProfile,
    Changes,
    Connection,
    ConnectionsQuery,
    Credential,
    EarnedAchievementsQuery,
    Event,
    EventDetail,
    EventsQuery,
    Me,
    Pagination,
    Profile,
    ProfileChanges,
    SyncQuery,
)

T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """A page of a list, as the API returns it."""

    data: list[T]
    pagination: Pagination


def _calls(
    http: httpx.Client | httpx.AsyncClient,
    base_url: str,
    api_key: str | None,
    token: object,
    retries: int,
    longest_wait: float,
) -> Calls:
    if (api_key is None) == (token is None):
        raise ValueError("Pass either api_key or token.")
    return Calls(http, base_url, api_key, retries, longest_wait)


class List(Generic[T]):
    """A list of the member's data. Iterating yields all items and loads pages as needed; :meth:`page` returns one page."""

    def __init__(self, client: "Client", path: str, query: Mapping[str, object]) -> None:
        self._client = client
        self._path = path
        self._query = query

    def page(self, cursor: str | None = None) -> Page[T]:
        """Returns the first page, or the page at a cursor (``next_cursor``, ``prev_cursor``)."""
        query = self._query if cursor is None else {**self._query, "cursor": cursor}
        page: Page[T] = self._client._run(self._client._calls.get(self._path, query))
        return page

    def pages(self) -> Iterator[Page[T]]:
        cursor: str | None = None
        while True:
            page = self.page(cursor)
            yield page
            cursor = page["pagination"]["next_cursor"]
            if cursor is None:
                return

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page["data"]


class AsyncList(Generic[T]):
    """As :class:`List`, for ``async for``."""

    def __init__(self, client: "AsyncClient", path: str, query: Mapping[str, object]) -> None:
        self._client = client
        self._path = path
        self._query = query

    async def page(self, cursor: str | None = None) -> Page[T]:
        query = self._query if cursor is None else {**self._query, "cursor": cursor}
        page: Page[T] = await self._client._run(self._client._calls.get(self._path, query))
        return page

    async def pages(self) -> AsyncIterator[Page[T]]:
        cursor: str | None = None
        while True:
            page = await self.page(cursor)
            yield page
            cursor = page["pagination"]["next_cursor"]
            if cursor is None:
                return

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page["data"]:
                yield item


class Client:
    """Every method raises :class:`ApiError` if the API rejects the request, and httpx's error if there is no response."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        token: str | Callable[[str | None], str] | None = None,
        retries: int = 2,
        longest_wait: float = 10.0,
        timeout: float = 30.0,
        http_client: httpx.Client | None = None,
    ) -> None:
        """
        :param base_url: URL of the server, without a path
        :param api_key: the key of a partner's backend; pass either ``api_key`` or ``token``
        :param token: an access token, or a function that returns the current token. The client calls the function with None before
            each request, and with the rejected token after a 401; the function then returns a new token, or the same token if there
            is no other
        :param retries: maximum number of retries: after 429 or 503, if a call did not arrive, and after 502 or 504 if it only reads
        :param longest_wait: seconds; if a longer wait between two attempts is necessary, the call fails with the response
        :param timeout: maximum seconds for connecting, for a write, and for a read
        :param http_client: sends the requests with its timeout, proxies and certificates, instead of a new client; you must close it
        """
        self._http = http_client or httpx.Client(timeout=timeout)
        self._owns_http = http_client is None
        self._token = token
        self._calls = _calls(self._http, base_url, api_key, token, retries, longest_wait)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._owns_http:
            self._http.close()

    def me(self) -> Me:
        """Needs the scope profile:read."""
        return self._run(self._calls.get("/me"))

    def profile(self) -> Profile:
        """The profile with its counts. Needs the scope profile:read."""
        return self._run(self._calls.get("/profile"))

    def profile_with_etag(self) -> tuple[Profile, str]:
        """The profile and its ETag: with the ETag, :meth:`update_profile` fails if the profile has changed in the meantime."""
        return self._run(self._calls.get_with_etag("/profile"))

    def update_profile(self, changes: ProfileChanges, *, if_match: str | None = None) -> ChangedProfile:
        """Changes the fields in ``changes``, all or none; None clears a field. Needs the scope profile:write."""
        return self._run(self._calls.put("/profile", changes, if_match))["profile"]

    def events(self, **query: Unpack[EventsQuery]) -> List[Event]:
        """Needs the scope events:read, as :meth:`event` does."""
        return List(self, "/events", dict(query))

    def event(self, id: int) -> EventDetail:
        return self._run(self._calls.get(f"/events/{id}"))

    def connections(self, **query: Unpack[ConnectionsQuery]) -> List[Connection]:
        """Needs the scope connections:read."""
        return List(self, "/connections", dict(query))

    def achievements(self, **query: Unpack[EarnedAchievementsQuery]) -> List[Achievement]:
        """The earned achievements. Needs the scope achievements:read, as do all calls for achievements."""
        return List(self, "/achievements", dict(query))

    def all_achievements(self, **query: Unpack[AllAchievementsQuery]) -> List[Achievement]:
        """All achievements, earned or not."""
        return List(self, "/achievements/all", dict(query))

    def pinned_achievements(self) -> list[Achievement]:
        """The pinned achievements, at most six, in the member's order."""
        return self._run(self._calls.get("/achievements/pinned"))["data"]

    def achievement(self, id: int) -> AchievementDetail:
        return self._run(self._calls.get(f"/achievements/{id}"))

    def achievement_statistics(self) -> AchievementStatistics:
        return self._run(self._calls.get("/achievements/stats"))

    def changes(self, **query: Unpack[SyncQuery]) -> Changes:
        """The records to read again or delete, to keep a copy of the member's data up to date; without a cursor, the first cursor."""
        return self._run(self._calls.get("/sync", dict(query)))

    def credential(self) -> Credential:
        """The kind of the key or token, and its permitted calls."""
        return self._run(self._calls.get("/credential"))

    def _run(self, steps: Steps) -> Any:
        result: httpx.Response | httpx.TransportError | str | None = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            result = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
                continue
            if isinstance(step, AskToken):
                result = self._token(step.refused) if callable(self._token) else self._token
                continue
            try:
                result = self._http.send(step, follow_redirects=False)  # a redirect would send the key elsewhere
            except httpx.TransportError as error:
                result = error


class AsyncClient:
    """As :class:`Client`, with ``await`` and ``async for``."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        token: str | Callable[[str | None], Awaitable[str]] | None = None,
        retries: int = 2,
        longest_wait: float = 10.0,
        timeout: float = 30.0,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._http = http_client or httpx.AsyncClient(timeout=timeout)
        self._owns_http = http_client is None
        self._token = token
        self._calls = _calls(self._http, base_url, api_key, token, retries, longest_wait)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._owns_http:
            await self._http.aclose()

    async def me(self) -> Me:
        return await self._run(self._calls.get("/me"))

    async def profile(self) -> Profile:
        return await self._run(self._calls.get("/profile"))

    async def profile_with_etag(self) -> tuple[Profile, str]:
        return await self._run(self._calls.get_with_etag("/profile"))

    async def update_profile(self, changes: ProfileChanges, *, if_match: str | None = None) -> ChangedProfile:
        return (await self._run(self._calls.put("/profile", changes, if_match)))["profile"]

    def events(self, **query: Unpack[EventsQuery]) -> AsyncList[Event]:
        return AsyncList(self, "/events", dict(query))

    async def event(self, id: int) -> EventDetail:
        return await self._run(self._calls.get(f"/events/{id}"))

    def connections(self, **query: Unpack[ConnectionsQuery]) -> AsyncList[Connection]:
        return AsyncList(self, "/connections", dict(query))

    def achievements(self, **query: Unpack[EarnedAchievementsQuery]) -> AsyncList[Achievement]:
        return AsyncList(self, "/achievements", dict(query))

    def all_achievements(self, **query: Unpack[AllAchievementsQuery]) -> AsyncList[Achievement]:
        return AsyncList(self, "/achievements/all", dict(query))

    async def pinned_achievements(self) -> list[Achievement]:
        page = await self._run(self._calls.get("/achievements/pinned"))
        return page["data"]

    async def achievement(self, id: int) -> AchievementDetail:
        return await self._run(self._calls.get(f"/achievements/{id}"))

    async def achievement_statistics(self) -> AchievementStatistics:
        return await self._run(self._calls.get("/achievements/stats"))

    async def changes(self, **query: Unpack[SyncQuery]) -> Changes:
        """The records to read again or delete, to keep a copy of the member's data up to date; without a cursor, the first cursor."""
        return await self._run(self._calls.get("/sync", dict(query)))

    async def credential(self) -> Credential:
        return await self._run(self._calls.get("/credential"))

    async def _run(self, steps: Steps) -> Any:
        result: httpx.Response | httpx.TransportError | str | None = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            result = None
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
                continue
            if isinstance(step, AskToken):
                result = await self._token(step.refused) if callable(self._token) else self._token
                continue
            try:
                result = await self._http.send(step, follow_redirects=False)
            except httpx.TransportError as error:
                result = error
