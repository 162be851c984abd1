"""A request that was let in, as the answers of all kinds get it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from chassis.http.replies import Reply
from chassis.http.requests import Request
from gateway.http.bearer import Caller
from gateway.http.routes import Operation


class ApiRequest(NamedTuple):
    """A caller's request for an operation, which the scope of its key opens."""

    operation: Operation
    caller: Caller
    ids: tuple[str, ...]
    """The ids in its path, as text."""
    query: str
    """Percent-encoded."""
    http: Request


Answer = Callable[[ApiRequest], Awaitable[Reply]]
