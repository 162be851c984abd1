"""Positions in a company's feed: 24 bytes, made of an epoch, an event's number and the end of its id.

The epoch is a hash over the database server, its timeline and the table of the feed. After a failover or a restore it
is another one, and the numbers that readers have may since belong to other events. The end of the id says so too where
the server is the same.
"""

from __future__ import annotations

import struct
import uuid
from typing import NamedTuple

from chassis.refusals import Refusal

_FORMAT = struct.Struct(">qQ8s")
_NONE = bytes(8)


class Position(NamedTuple):
    """A reader has all events up to this number. id_end: the last 8 bytes of that event's id; zeros for number 0."""

    epoch: int
    number: int
    id_end: bytes

    def packed(self) -> bytes:
        return _FORMAT.pack(*self)


def position(epoch: int, number: int, event_id: uuid.UUID | None) -> Position:
    """event_id: of the event with this number; None for number 0."""
    return Position(epoch, number, id_end(event_id))


def id_end(event_id: uuid.UUID | None) -> bytes:
    return _NONE if event_id is None else event_id.bytes[8:]


def unpacked(packed: bytes) -> Position:
    """Raises Refusal 410 for anything but a packed position."""
    if len(packed) != _FORMAT.size:
        raise expired()
    return Position(*_FORMAT.unpack(packed))


def expired() -> Refusal:
    return Refusal(
        410,
        "cursor_expired",
        "Events after this cursor are no longer there, or are numbered anew since a restore; begin again without it.",
        "cursor",
    )
