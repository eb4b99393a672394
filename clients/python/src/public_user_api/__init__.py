"""Client of the Public User API for partners' backends."""

from .client import AsyncClient, AsyncList, Client, List, Page
from .errors import ApiError

__all__ = ["ApiError", "AsyncClient", "AsyncList", "Client", "List", "Page"]
