"""Where the commands that follow something begin, and how a later run goes on."""

from __future__ import annotations

import argparse
import datetime
import email.utils
import re
from collections.abc import Callable
from typing import Any

from makeready_client import models
from makeready_client.client import Makeready
from makeready_client.commands.command import UsageError, warn_of_retry
from makeready_client.following import Events
from makeready_client.paging import FeedPage, Walk
from makeready_client.requests import Request

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds `--events`, `--backfill` and `--from`."""
    parser.add_argument("--events", metavar="KEY,…", help="only these events, as ticket.created,vendor.hold")
    add_place(parser, "else now")


def add_place(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """Adds `--backfill` and `--from`. otherwise: what holds without them."""
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--backfill", metavar="TIME", help=f"begin so long ago, as 90s, 30m, 2h or 7d; {otherwise}")
    begin.add_argument("--from", dest="place", metavar="CURSOR", help="begin where an earlier run has ended")


class Followed:
    """The events that the arguments name, as they come."""

    def __init__(self, client: Makeready, arguments: argparse.Namespace) -> None:
        """Raises UsageError for arguments that do not fit."""
        self._keys = set(arguments.events.split(",")) if arguments.events else None
        if unknown := (self._keys or set()).difference(models.EVENTS):
            raise UsageError(f"no such events: {', '.join(sorted(unknown))}; there are {', '.join(models.EVENTS)}")
        self._since, self._cursor = place_of(client, arguments, lambda since: client.events.list(since=since))
        self.events: Events = client.events.follow(self._cursor, since=self._since, on_retry=warn_of_retry)
        """All events; `names` says which are meant."""

    def names(self, event: models.Event) -> bool:
        """Whether the event is one of those that the arguments name."""
        return self._keys is None or event.event in self._keys

    def done(self) -> None:
        """Notes that what came up to now is done."""
        self._cursor = self.events.cursor

    def continuation(self) -> str | None:
        """The line that says how a later run goes on; None before anything came."""
        return continuation(self._since, self._cursor) if self._cursor else None


def continuation(since: datetime.datetime, cursor: str) -> str:
    """The line that says how a later run goes on."""
    # A cursor is good for one `since` only.
    return f"To go on from here: --from {since:%Y-%m-%dT%H:%M:%SZ}/{cursor}"


def place_of(
    client: Makeready, arguments: argparse.Namespace, followed: Callable[[datetime.datetime], Walk[Any, FeedPage[Any]]]
) -> tuple[datetime.datetime, str | None]:
    """The instant and the cursor behind which items of a feed are meant. followed: the feed from an instant on."""
    if arguments.place:
        instant, _, cursor = arguments.place.partition("/")
        try:
            return datetime.datetime.fromisoformat(instant), cursor
        except ValueError:
            raise UsageError("--from needs what an earlier run has printed") from None
    since = _now(client) - datetime.timedelta(seconds=_seconds(arguments.backfill))
    if arguments.backfill:
        return since, None
    (*_, last) = followed(since).pages()  # what was there already in this second of the clock
    return since, last.resume_cursor


def _now(client: Makeready) -> datetime.datetime:
    """The API's clock: this machine's may be wrong."""
    date = client.respond(Request("GET", "/whoami")).headers.get("Date")
    return email.utils.parsedate_to_datetime(date) if date else datetime.datetime.now(datetime.UTC)


def _seconds(text: str | None) -> int:
    if text is None:
        return 0
    match = re.fullmatch("([0-9]{1,6})([smhd])", text)
    if not match:
        raise UsageError(f"--backfill needs a time as 90s, 30m, 2h or 7d, not {text}")
    return int(match[1]) * UNITS[match[2]]
