"""How commands and their arguments are declared: each type says in one phrase what it wants."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import math
from typing import Any, Protocol

from chassis.records.bodies import ID_MAX, date_time


class Parser(argparse.ArgumentParser):
    """A command. Options are never abbreviated, so that a new one breaks no script; `--json` may stand anywhere."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")


class Commands(Protocol):
    """Where a group adds its commands."""

    def add_parser(self, name: str, *, help: str, description: str) -> Parser: ...  # noqa: A002


def command(commands: Commands, name: str, brief: str, description: str = "") -> Parser:
    """A command under its name. brief: a phrase for the list of commands."""
    return commands.add_parser(name, help=brief, description=description or f"{brief[0].upper()}{brief[1:]}.")


def group(commands: Commands, name: str, brief: str) -> Commands:
    """A noun whose verbs are the commands."""
    found: Commands = command(commands, name, brief).add_subparsers(dest="verb", required=True, metavar="COMMAND")
    return found


def record_id(text: str) -> int:
    """A positive 64-bit integer."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= ID_MAX):
        raise argparse.ArgumentTypeError("must be a positive whole number")
    return int(text)


def instant(text: str) -> datetime.datetime:
    """An ISO 8601 date-time with a UTC offset, as UTC."""
    found = date_time(text)
    if found is None:
        raise argparse.ArgumentTypeError("must be a date-time with a UTC offset, such as 2026-01-31T12:00:00Z")
    return found


def seconds(text: str) -> float:
    """A span of time, up to a day."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 86_400:
        raise argparse.ArgumentTypeError("must be a number of seconds from 0 to 86400")
    return found


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
    """How many rows to show at most."""
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
        if math.isfinite(found := float(text)):
            return found
    raise argparse.ArgumentTypeError("must be a number")


def actor(text: str) -> tuple[str, int]:
    """Who acts: an administrator's email, or the id of a member of staff as staff:ID. The other of the two is empty."""
    kind, _, number = text.partition(":")
    if kind == "staff":
        return "", record_id(number)
    if "@" in text:
        return text_argument(text), 0
    raise argparse.ArgumentTypeError("must be an administrator's email or staff:ID")


def delivery_key(text: str) -> tuple[str, int]:
    """What one event is to one subscription: EVENT_ID:SUB_ID."""
    event_id, _, sub_id = text.rpartition(":")
    with contextlib.suppress(argparse.ArgumentTypeError):
        if event_id:
            return event_id, record_id(sub_id)
    raise argparse.ArgumentTypeError("must be EVENT_ID:SUB_ID, as `webhooks parked` lists them")


def any_text(text: str) -> str:
    """A text that can be sent: Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("is not UTF-8 text") from None
    return text


def text_argument(text: str) -> str:
    """A text that can be stored: not blank, and Unicode."""
    any_text(text)
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be blank")
    return text
