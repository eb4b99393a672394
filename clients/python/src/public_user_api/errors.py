"""What a call may end in."""

from __future__ import annotations

from typing import cast

import httpx

from .schema import Problem


class ApiError(Exception):
    """A call that the API refused; ``code`` says why, and docs/developers/errors.md of the server what to do about each."""

    def __init__(self, response: httpx.Response) -> None:
        self.status: int = response.status_code
        self.problem: Problem | None = _problem_of(response)
        #: As in the catalogue at /api/public/problems; "unknown" where something between here and the API answered.
        self.code: str = self.problem["code"] if self.problem else "unknown"
        #: By which the people who run the server find this call in their log.
        self.request_id: str | None = response.headers.get("x-request-id")
        #: Seconds after which the same call may succeed, where the server said so.
        self.retry_after: int | None = retry_after(response)
        problem = self.problem
        super().__init__(f"{problem['title']}: {problem['detail']}" if problem else _strange_answer(response))


def _strange_answer(response: httpx.Response) -> str:
    """What is said of an answer that is none of the API's."""
    kind = response.headers.get("content-type", "nothing").split(";")[0]
    address = str(response.request.url).split("?")[0]
    return (
        f"HTTP {response.status_code} with {kind} in place of JSON, from {address}: "
        "a proxy answered, or base_url is not the API's."
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
