"""Protobuf messages of the back office, filled from rows by name."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TypeVar

from asyncpg import Record
from google.protobuf.message import Message

Filled = TypeVar("Filled", bound=Message)


def filled(message_type: type[Filled], values: Mapping[str, object] | Record) -> Filled:
    """The message, with fields filled by name: None leaves a field absent, a date becomes YYYY-MM-DD."""
    message = message_type()
    for name in message.DESCRIPTOR.fields_by_name:
        value = values[name]
        if isinstance(value, datetime.datetime):
            getattr(message, name).FromDatetime(value)
        elif value is not None:
            setattr(message, name, value.isoformat() if isinstance(value, datetime.date) else value)
    return message
