"""Types of arguments. Each refusal says in one phrase what the type accepts."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
from collections.abc import Callable
from typing import Any

from google.protobuf import json_format

from chassis.records.bodies import ID_MAX, date_time


def record_id(text: str) -> int:
    """A positive 64-bit integer."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= ID_MAX):
        raise argparse.ArgumentTypeError("must be a positive whole number")
    return int(text)


def reference(text: str) -> str:
    """A record's id, or its external_id."""
    return text_argument(text)


def instant(text: str) -> datetime.datetime:
    """An ISO 8601 date-time with a UTC offset, as UTC."""
    moment = date_time(text)
    if moment is None:
        raise argparse.ArgumentTypeError("must be a date-time with a UTC offset, such as 2026-01-31T12:00:00Z")
    return moment


def json_of(kind: type[Any]) -> Callable[[str], Any]:
    """A message of this kind as a JSON object, with the fields' own names."""

    def read(text: str) -> Any:
        try:
            value = json.loads(text)
            if isinstance(value, dict):
                return json_format.ParseDict(value, kind())
        except (ValueError, json_format.ParseError):
            pass
        names = ", ".join(kind.DESCRIPTOR.fields_by_name)
        raise argparse.ArgumentTypeError(f"must be a JSON object with texts, and these keys only: {names}")

    return read


def seconds(text: str) -> float:
    """A span of time, up to a day."""
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount <= 86_400:
        raise argparse.ArgumentTypeError("must be a number of seconds from 0 to 86400")
    return amount


def hours(text: str) -> int:
    """A whole number of hours, up to a year."""
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= 8760):
        raise argparse.ArgumentTypeError("must be a whole number of hours from 1 to 8760")
    return int(text)


def days(text: str) -> int:
    """A whole number of days, up to a year."""
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= 366):
        raise argparse.ArgumentTypeError("must be a whole number of days from 1 to 366")
    return int(text)


def rows(text: str) -> int:
    """The maximum number of rows to list."""
    if not (text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 1000000")
    return int(text)


def whole_number(text: str) -> int:
    """A whole number that 32 bits hold; the service knows its bounds."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 11 and abs(int(text)) < 2**31):
        raise argparse.ArgumentTypeError("must be a whole number")
    return int(text)


def number(text: str) -> float:
    """A finite decimal number."""
    with contextlib.suppress(ValueError):
        if math.isfinite(amount := float(text)):
            return amount
    raise argparse.ArgumentTypeError("must be a number")


def actor(text: str) -> tuple[str, int]:
    """The actor: an administrator's email, or staff:ID for a member of staff. The other of the two is empty."""
    kind, _, number = text.partition(":")
    if kind == "staff":
        return "", record_id(number)
    if "@" in text:
        return text_argument(text), 0
    raise argparse.ArgumentTypeError("must be an administrator's email or staff:ID")


def delivery_key(text: str) -> tuple[str, int]:
    """One event for one subscription: EVENT_ID:SUB_ID."""
    event_id, _, sub_id = text.rpartition(":")
    with contextlib.suppress(argparse.ArgumentTypeError):
        if event_id:
            return event_id, record_id(sub_id)
    raise argparse.ArgumentTypeError("must be EVENT_ID:SUB_ID, as `webhooks parked` lists them")


def any_text(text: str) -> str:
    """Any text that can be sent: valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("is not UTF-8 text") from None
    return text


def text_argument(text: str) -> str:
    """Any text that can be stored: not blank, and valid Unicode."""
    any_text(text)
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be blank")
    return text
