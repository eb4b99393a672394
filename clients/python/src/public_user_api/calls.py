"""Requests and responses, shared by the sync and the async client, which only send bytes and wait."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from .errors import ApiError, retry_after

_CACHED = 100
#: The server is temporarily overloaded.
_LATER = (429, 503)
#: A proxy responded because the server did not: the server may have executed the call.
_GATEWAY = (502, 504)


@dataclass(frozen=True)
class Wait:
    """Makes the client wait."""

    seconds: float


@dataclass(frozen=True)
class AskToken:
    """Makes the client get the current access token, or a new one if the API rejected ``refused``."""

    refused: str | None


#: Yields each step, receives its result (a response, a transport error, or a token), and returns the response.
Steps = Generator["httpx.Request | Wait | AskToken", "httpx.Response | httpx.TransportError | str | None", Any]


class Calls:
    def __init__(
        self,
        http: httpx.Client | httpx.AsyncClient,
        base_url: str,
        api_key: str | None,
        retries: int,
        longest_wait: float,
    ) -> None:
        self._http = http
        self._base = httpx.URL(base_url)
        self._api_key = api_key
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
        return _json_of(response), response.headers["etag"]

    def put(self, path: str, body: object, if_match: str | None) -> Steps:
        headers = {"If-Match": if_match} if if_match else {}
        response = yield from self._send("PUT", self._url(path, {}), headers, body)
        return _json_of(response)

    def _url(self, path: str, query: Mapping[str, object]) -> httpx.URL:
        values = {name: _text(value) for name, value in query.items() if value is not None}
        return self._base.copy_with(path=f"/api/public{path}", params=values or None)

    def _send(self, method: str, url: httpx.URL, headers: Mapping[str, str], body: object) -> Steps:
        token = None if self._api_key is not None else (yield AskToken(None))
        renewed = False
        attempt = 0
        while True:
            credential = {"Authorization": f"Bearer {token}"} if self._api_key is None else {"X-API-Key": self._api_key}
            # The client builds the request: otherwise some versions of httpx omit its timeout, headers and cookies.
            request = self._http.build_request(
                method, url, headers={"Accept": "application/json", **credential, **headers}, json=body
            )
            result = yield request
            if isinstance(result, httpx.TransportError):
                if attempt == self._retries:
                    raise result
                yield Wait(0.25 * 2**attempt)
                attempt += 1
                continue
            assert isinstance(result, httpx.Response)
            if result.is_success or result.status_code == 304:
                return result
            if result.status_code == 401 and isinstance(token, str) and not renewed:
                other = yield AskToken(token)
                if other == token:
                    raise ApiError(result)  # a rejected token is never sent again
                token, renewed = other, True
                continue
            seconds = retry_after(result)
            wait = 2.0**attempt if seconds is None else seconds
            again = result.status_code in _LATER or (method == "GET" and result.status_code in _GATEWAY)
            if not again or attempt == self._retries or wait > self._longest_wait:
                raise ApiError(result)
            # Random, so that clients rejected together do not retry together.
            yield Wait(wait * (1 + random.random() / 4))
            attempt += 1

    def _keep(self, url: str, response: httpx.Response) -> Any:
        value = _json_of(response)
        etag = response.headers.get("etag")
        if etag:
            self._known.pop(url, None)
            self._known[url] = (etag, value)
            if len(self._known) > _CACHED:
                del self._known[next(iter(self._known))]
        return value


def _json_of(response: httpx.Response) -> Any:
    """:raises ApiError: if the body is not JSON, such as a proxy's page"""
    try:
        return response.json()
    except ValueError:
        raise ApiError(response) from None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)
