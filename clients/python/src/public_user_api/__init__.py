"""Client of the Public User API: typed calls, sign-in with PKCE, webhooks."""

from .client import AsyncClient, AsyncList, Client, List, Page
from .errors import ApiError
from .sign_in import AsyncSignIn, Pending, SignIn, SignInError, Tokens
from .webhooks import WebhookError, WebhookMessage, verify_webhook

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncList",
    "AsyncSignIn",
    "Client",
    "List",
    "Page",
    "Pending",
    "SignIn",
    "SignInError",
    "Tokens",
    "WebhookError",
    "WebhookMessage",
    "verify_webhook",
]
