"""What is sent, and what comes back: the same for the sync and the async client, which only move bytes and wait."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from .errors import ApiError, retry_after

_CACHED = 100


@dataclass(frozen=True)
class Wait:
    """Asks whoever runs the call to wait."""

    seconds: float


#: Yields what is to be done, is sent what came of it (a response, or the error of the transport), returns the answer.
Steps = Generator["httpx.Request | Wait", "httpx.Response | httpx.TransportError | None", Any]


class Calls:
    def __init__(
        self,
        http: httpx.Client | httpx.AsyncClient,
        base_url: str,
        headers: Mapping[str, str],
        retries: int,
        longest_wait: float,
    ) -> None:
        self._http = http
        self._base = httpx.URL(base_url)
        self._headers = {"Accept": "application/json", **headers}
        self._retries = retries
        self._longest_wait = longest_wait
        self._known: dict[str, tuple[str, Any]] = {}

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Steps:
        url = self._url(path, query or {})
        etag, known = self._known.get(str(url), (None, None))
        response = yield from self._send("GET", url, {"If-None-Match": etag} if etag else {}, None)
        if response.status_code == 304:
            return known
        return self._keep(str(url), response)

    def get_with_etag(self, path: str) -> Steps:
        response = yield from self._send("GET", self._url(path, {}), {}, None)
        return response.json(), response.headers["etag"]

    def put(self, path: str, body: object, if_match: str | None) -> Steps:
        headers = {"If-Match": if_match} if if_match else {}
        response = yield from self._send("PUT", self._url(path, {}), headers, body)
        return response.json()

    def _url(self, path: str, query: Mapping[str, object]) -> httpx.URL:
        values = {name: _text(value) for name, value in query.items() if value is not None}
        return self._base.copy_with(path=f"/api/public{path}", params=values or None)

    def _send(self, method: str, url: httpx.URL, headers: Mapping[str, str], body: object) -> Steps:
        # Built by the client, or its timeout, headers and cookies do not reach the request with every httpx.
        request = self._http.build_request(method, url, headers={**self._headers, **headers}, json=body)
        for attempt in range(self._retries + 1):
            result = yield request
            last = attempt == self._retries
            if isinstance(result, httpx.TransportError):
                if last:
                    raise result
                yield Wait(0.25 * 2**attempt)
                continue
            assert result is not None
            if result.is_success or result.status_code == 304:
                return result
            seconds = retry_after(result)
            wait = 2.0**attempt if seconds is None else seconds
            if result.status_code not in (429, 503) or last or wait > self._longest_wait:
                raise ApiError(result)
            # Random, so that clients that were refused together do not return together.
            yield Wait(wait * (1 + random.random() / 4))
        raise AssertionError("unreachable")

    def _keep(self, url: str, response: httpx.Response) -> Any:
        value = response.json()
        etag = response.headers.get("etag")
        if etag:
            self._known.pop(url, None)
            self._known[url] = (etag, value)
            if len(self._known) > _CACHED:
                del self._known[next(iter(self._known))]
        return value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)
