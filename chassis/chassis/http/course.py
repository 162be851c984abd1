"""How far a connection is, as its parts share it."""

from __future__ import annotations

import asyncio
import enum
from typing import Protocol


class State(enum.Enum):
    """What happens to the next bytes that arrive."""

    NEW = enum.auto()
    """None come yet: the transport has not connected it."""
    IDLE = enum.auto()
    """They begin a request; nothing is under way, held or broken."""
    HEAD = enum.auto()
    """They belong to a head that has not arrived whole."""
    ANSWERING = enum.auto()
    """They belong to the body of the request under way, or wait: from the end of its head until its answer is sent."""
    SKIPPING = enum.auto()
    """They are the rest of a body that was answered before it had arrived, or follow it."""
    LINGERING = enum.auto()
    """They are dropped: the last answer is sent."""
    CLOSED = enum.auto()


class Goes(enum.IntEnum):
    """How long the connection goes on."""

    ON = 0
    UNTIL_ANSWERED = 1
    """The answer under way is the last one."""
    EVICTED = 2
    """It ends now, because all connections together held too much."""


class Wire(Protocol):
    """The connection itself: aiohttp's protocol between the transport and the parser."""

    transport: asyncio.Transport | None

    @property
    def writing_paused(self) -> bool:
        """Whether the transport's buffer is full."""

    def feed(self, data: bytes) -> None:
        """Hands bytes to the parser."""

    async def sent(self, *, keep: bool) -> None:
        """Called after an answer was sent. Another request may follow if `keep`."""

    def force_close(self) -> None:
        """Closes when the client has read what was sent."""


class Course:
    """The states of one connection."""

    __slots__ = ("goes", "has_half_closed", "has_tls", "state", "wire")

    def __init__(self) -> None:
        self.state, self.goes = State.NEW, Goes.ON
        self.has_half_closed = False
        """The client sends no more; it may still read."""
        self.has_tls = False
        self.wire: Wire | None = None
        """From `begin` to `end`: longer, it would keep itself in memory until a collection of cycles."""

    def begin(self, wire: Wire, *, has_tls: bool) -> None:
        self.state, self.wire, self.has_tls = State.IDLE, wire, has_tls

    def end(self) -> None:
        """The connection is lost."""
        self.wire = None

    @property
    def transport(self) -> asyncio.Transport | None:
        """None before the connection is made, and once it is closed."""
        return None if self.wire is None else self.wire.transport

    @property
    def has_ended(self) -> bool:
        """Whether nobody waits for the answer any more, or the process stops."""
        return self.has_half_closed or self.goes > Goes.ON or self.transport is None

    @property
    def was_evicted(self) -> bool:
        return self.goes is Goes.EVICTED

    def end_after_answer(self) -> None:
        """No other request follows the one under way."""
        self.goes = max(self.goes, Goes.UNTIL_ANSWERED)
