"""Errors of calls."""

from __future__ import annotations

from typing import cast

import httpx

from .schema import Problem


class ApiError(Exception):
    """A call that the API rejected. ``code`` is the reason; the server's docs/developers/errors.md explains how to fix each code."""

    def __init__(self, response: httpx.Response) -> None:
        self.status: int = response.status_code
        self.problem: Problem | None = _problem_of(response)
        #: A code of the catalog at /api/public/problems; "unknown" if another server responded, such as a proxy.
        self.code: str = self.problem["code"] if self.problem else "unknown"
        #: The id of this call in the server's log.
        self.request_id: str | None = response.headers.get("x-request-id")
        #: Seconds after which the same call may succeed; None if the server sent none.
        self.retry_after: int | None = retry_after(response)
        problem = self.problem
        super().__init__(f"{problem['title']}: {problem['detail']}" if problem else _strange_answer(response))


def _strange_answer(response: httpx.Response) -> str:
    """The message for a response that is not from the API."""
    kind = response.headers.get("content-type", "nothing").split(";")[0]
    address = str(response.request.url).split("?")[0]
    return (
        f"HTTP {response.status_code} with {kind} instead of JSON, from {address}: "
        "a proxy responded, or base_url is not the API's URL."
    )


def retry_after(response: httpx.Response) -> int | None:
    """``Retry-After`` in seconds (RFC 9110 section 10.2.3)."""
    value = response.headers.get("retry-after", "")
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 6 else None


def _problem_of(response: httpx.Response) -> Problem | None:
    try:
        body = response.json()
    except ValueError:
        return None
    return cast(Problem, body) if isinstance(body, dict) and "code" in body else None
