"""Verifies and reads the API's webhooks (Standard Webhooks)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict, cast


class WebhookData(TypedDict):
    """Empty in a ``webhook.test``."""

    member_id: NotRequired[int | None]
    resource: NotRequired[str]
    id: NotRequired[int]
    kind: NotRequired[Literal["updated", "removed"]]
    # For access.… and credential.…: scopes of the app or key, the end (UTC), and its reason.
    scopes: NotRequired[list[str]]
    access_ends_at: NotRequired[str | None]
    reason: NotRequired[Literal["member", "app", "platform", "expired", "unused"] | None]


class WebhookMessage(TypedDict):
    """Names a record to read again or delete, or a change of access."""

    type: str
    timestamp: str
    data: WebhookData


class WebhookError(Exception):
    """A forged or old message: respond with 401."""


def verify_webhook(
    secrets: str | Sequence[str], headers: Mapping[str, str], body: bytes | str, *, tolerance: float = 300
) -> WebhookMessage:
    """
    Reads a webhook after checking its signature and age.

    :param secrets: ``whsec_…``, as shown at the endpoint's registration; both during a rotation
    :param headers: of the request; names in any case
    :param body: the unchanged bytes of the request
    :param tolerance: maximum age of a message in seconds
    """
    values = {name.lower(): value for name, value in headers.items() if name.lower().startswith("webhook-")}
    try:
        message_id, timestamp, signatures = (values[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        age = abs(time.time() - int(timestamp))
    except (KeyError, ValueError):
        raise WebhookError("The headers of a webhook are missing.") from None
    if age > tolerance:
        raise WebhookError("The message is too old, or a clock is wrong.")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{message_id}.{timestamp}.".encode() + content
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = hmac.digest(_bytes_of(secret.removeprefix("whsec_")), signed, hashlib.sha256)
        for signature in signatures.split(" "):
            version, _, code = signature.partition(",")
            if version == "v1" and hmac.compare_digest(_bytes_of(code), expected):
                return cast(WebhookMessage, json.loads(content))
    raise WebhookError("No signature of the message is genuine.")


def _bytes_of(text: str) -> bytes:
    """Decodes base64. Returns no bytes for other text: then no signature matches."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
