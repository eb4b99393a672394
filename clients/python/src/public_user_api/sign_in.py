"""Signs members in with an authorization code and PKCE (RFC 7636, RFC 9700), for a client without keys."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

#: Seconds; the client refreshes a token this long before it expires.
_EARLY = 30


class Pending(TypedDict):
    """A started sign-in: keep it in the member's session until they return."""

    state: str
    verifier: str
    issuer: str


class Tokens(TypedDict):
    """The tokens that a member granted. Store them like passwords."""

    access_token: str
    refresh_token: NotRequired[str]
    #: The granted scopes, which may be fewer than requested.
    scope: str
    #: Seconds since 1970.
    expires_at: float
    #: Seconds since 1970; absent if the access has no end.
    access_ends_at: NotRequired[float]


class SignInError(Exception):
    """An authorization server's error (RFC 6749 sections 4.1.2.1 and 5.2), or a response that belongs to no sign-in of this client."""

    def __init__(self, code: str, description: str | None = None) -> None:
        super().__init__(description or code)
        #: A code of the RFC, such as access_denied; state_mismatch if the response belongs to no sign-in of this client; signed_out
        #: if the member must sign in again.
        self.code = code


@dataclass(frozen=True)
class _Sent:
    url: str
    #: None for a GET.
    form: Mapping[str, str] | None = None

    def built_by(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The client builds the request: otherwise some versions of httpx omit its timeout, headers and cookies."""
        return http.build_request("GET" if self.form is None else "POST", self.url, data=self.form)


#: Yields each request, receives its response, and returns the result.
_Steps = Generator[_Sent, httpx.Response, Any]


class _Flow:
    def __init__(self, issuer: str, client_id: str, redirect_uri: str, scope: str) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._redirect_uri = redirect_uri
        self._scope = scope
        self._metadata: dict[str, str] | None = None

    def begin(self, prompt: str | None) -> _Steps:
        server = yield from self._discover()
        verifier, state = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "client_id": self._client_id,
            "response_type": "code",
            "redirect_uri": self._redirect_uri,
            "scope": self._scope,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **({"prompt": prompt} if prompt else {}),
        }
        pending = Pending(state=state, verifier=verifier, issuer=server["issuer"])
        return f"{server['authorization_endpoint']}?{urlencode(query)}", pending

    def finish(self, url: str, pending: Pending | None) -> _Steps:
        answer = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        # RFC 9207: rejects another server's response.
        if not pending or answer.get("state") != pending["state"] or answer.get("iss") != pending["issuer"]:
            raise SignInError("state_mismatch", "This response does not belong to a sign-in that started here.")
        if "error" in answer:
            raise SignInError(answer["error"], answer.get("error_description"))
        return (
            yield from self._ask(
                {
                    "grant_type": "authorization_code",
                    "code": answer.get("code", ""),
                    "code_verifier": pending["verifier"],
                    "redirect_uri": self._redirect_uri,
                }
            )
        )

    def refresh(self, tokens: Tokens) -> _Steps:
        if "refresh_token" not in tokens:
            raise SignInError("signed_out", "The sign-in has expired.")
        refresh_token = tokens["refresh_token"]
        try:
            renewed = yield from self._ask({"grant_type": "refresh_token", "refresh_token": refresh_token})
        except SignInError as error:
            if error.code != "invalid_grant":
                raise
            raise SignInError("signed_out", str(error)) from error
        return {"refresh_token": refresh_token, **renewed}

    def revoke(self, tokens: Tokens) -> _Steps:
        server = yield from self._discover()
        token = tokens.get("refresh_token", tokens["access_token"])
        response = yield self._form(server["revocation_endpoint"], {"token": token})
        if not response.is_success:
            raise _refusal(response)

    def _ask(self, parameters: Mapping[str, str]) -> _Steps:
        server = yield from self._discover()
        response = yield self._form(server["token_endpoint"], parameters)
        body = _json_of(response)
        if not response.is_success or "access_token" not in body:
            raise _refusal(response)
        expires_at = time.time() + body["expires_in"]
        kept = {name: body[name] for name in ("access_token", "refresh_token", "scope") if name in body}
        lasts = body.get("refresh_token_expires_in")
        ends = {} if lasts is None else {"access_ends_at": time.time() + lasts}
        return {**kept, "expires_at": expires_at, **ends}

    def _discover(self) -> _Steps:
        """Reads the server's metadata (RFC 8414) once, and again after a failure."""
        if self._metadata is None:
            url = str(httpx.URL(self._issuer).join("/.well-known/oauth-authorization-server"))
            response = yield _Sent(url)
            found = _json_of(response)
            if not response.is_success or "token_endpoint" not in found:
                raise SignInError(f"http_{response.status_code}", f"There is no metadata at {url}: is issuer the URL of the API?")
            self._metadata = found
        return self._metadata

    def _form(self, url: str, parameters: Mapping[str, str]) -> _Sent:
        return _Sent(url, {"client_id": self._client_id, **parameters})


class SignIn:
    """
    For a backend that signs members in: :meth:`begin` returns the URL for the member, :meth:`finish` reads the response.

    :param issuer: URL of the server, without a path
    :param redirect_uri: must exactly match a registered redirect URI
    :param scope: the requested scopes, separated by spaces
    :param http_client: sends the requests; by default, each request has a new client
    """

    def __init__(
        self,
        issuer: str,
        *,
        client_id: str,
        redirect_uri: str,
        scope: str,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._flow = _Flow(issuer, client_id, redirect_uri, scope)
        self._http = http_client

    def begin(self, *, prompt: Literal["consent", "login", "none"] | None = None) -> tuple[str, Pending]:
        """:param prompt: ``consent``: ask the member again, also for denied scopes"""
        return self._run(self._flow.begin(prompt))

    def finish(self, url: str, pending: Pending | None) -> Tokens:
        """
        Exchanges the code. Finish a pending sign-in only once: first remove it from the session.

        :param url: the URL of the request to the redirect URI, with the query
        """
        return self._run(self._flow.finish(url, pending))

    def refresh(self, tokens: Tokens) -> Tokens:
        """Returns new tokens; the old ones no longer work. Raises ``signed_out``, with time and reason, if access has ended."""
        return self._run(self._flow.refresh(tokens))

    def revoke(self, tokens: Tokens) -> None:
        """Ends the access at the server (RFC 7009)."""
        self._run(self._flow.revoke(tokens))

    def token(self, tokens: Tokens, renewed: Callable[[Tokens], object]) -> Callable[[str | None], str]:
        """
        Returns the ``token`` of a client: a function that refreshes the token before it expires, once for all waiting threads.

        :param renewed: stores new tokens; called before the client uses them
        """
        lock = threading.Lock()

        def current(refused: str | None) -> str:
            nonlocal tokens
            with lock:
                if _is_over(tokens, refused):
                    tokens = self.refresh(tokens)
                    renewed(tokens)
                return tokens["access_token"]

        return current

    def _run(self, steps: _Steps) -> Any:
        if self._http is None:
            with httpx.Client(timeout=30) as http:
                return self._send(http, steps)
        return self._send(self._http, steps)

    @staticmethod
    def _send(http: httpx.Client, steps: _Steps) -> Any:
        try:
            step = next(steps)
            while True:
                step = steps.send(http.send(step.built_by(http), follow_redirects=False))
        except StopIteration as end:
            return end.value


class AsyncSignIn:
    """As :class:`SignIn`, with ``await``."""

    def __init__(
        self,
        issuer: str,
        *,
        client_id: str,
        redirect_uri: str,
        scope: str,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._flow = _Flow(issuer, client_id, redirect_uri, scope)
        self._http = http_client

    async def begin(self, *, prompt: Literal["consent", "login", "none"] | None = None) -> tuple[str, Pending]:
        return await self._run(self._flow.begin(prompt))

    async def finish(self, url: str, pending: Pending | None) -> Tokens:
        return await self._run(self._flow.finish(url, pending))

    async def refresh(self, tokens: Tokens) -> Tokens:
        return await self._run(self._flow.refresh(tokens))

    async def revoke(self, tokens: Tokens) -> None:
        await self._run(self._flow.revoke(tokens))

    def token(
        self, tokens: Tokens, renewed: Callable[[Tokens], Awaitable[object]]
    ) -> Callable[[str | None], Awaitable[str]]:
        """Returns the ``token`` of an async client: a function that refreshes the token before it expires, once for all waiting tasks."""
        lock = asyncio.Lock()

        async def current(refused: str | None) -> str:
            nonlocal tokens
            async with lock:
                if _is_over(tokens, refused):
                    tokens = await self.refresh(tokens)
                    await renewed(tokens)
                return tokens["access_token"]

        return current

    async def _run(self, steps: _Steps) -> Any:
        if self._http is None:
            async with httpx.AsyncClient(timeout=30) as http:
                return await self._send(http, steps)
        return await self._send(self._http, steps)

    @staticmethod
    async def _send(http: httpx.AsyncClient, steps: _Steps) -> Any:
        try:
            step = next(steps)
            while True:
                step = steps.send(await http.send(step.built_by(http), follow_redirects=False))
        except StopIteration as end:
            return end.value


def _is_over(tokens: Tokens, refused: str | None) -> bool:
    return tokens["access_token"] == refused or tokens["expires_at"] - _EARLY < time.time()


def _json_of(response: httpx.Response) -> dict[str, Any]:
    """Empty if the body is not a JSON object, such as a proxy's page."""
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _refusal(response: httpx.Response) -> SignInError:
    body = _json_of(response)
    code = body.get("error", f"http_{response.status_code}")
    return SignInError(code, body.get("error_description", f"{response.request.url} did not respond as an authorization server."))
