"""Reads the envelopes of events."""

from __future__ import annotations

import msgspec

from makeready_client.models import EVENTS, Event, UnknownEvent


class _Key(msgspec.Struct):
    event: str


def decoded(raw: bytes) -> Event:
    """The event in an envelope; an UnknownEvent if a later version of the API has added its key.

    Raises msgspec.DecodeError if it is none.
    """
    kind = EVENTS.get(msgspec.json.decode(raw, type=_Key).event, UnknownEvent)
    event = msgspec.json.decode(raw, type=kind)
    event.__dict__["_raw"] = raw
    return event
