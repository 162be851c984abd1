"""`makeready-client trigger`."""

from __future__ import annotations

import argparse
import typing

from makeready_client import models
from makeready_client.client import Makeready
from makeready_client.commands.command import Command, UsageError, printable, say

EVENTS: tuple[models.EventKey, ...] = typing.get_args(models.EventKey)
RECORDS = ("ticket", "turn", "vendor", "inspection", "property")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("event", metavar="EVENT", nargs="?", choices=EVENTS, help=f"one of {', '.join(EVENTS)}")
    parser.add_argument("--all", action="store_true", help="all of them, one after another")
    for record in RECORDS:
        parser.add_argument(f"--{record}", metavar="ID", type=int, help=f"the {record} that it is to happen to")


def _trigger(client: Makeready, arguments: argparse.Namespace) -> int:
    """Prints each event once it is there."""
    named = {f"{record}_id": value for record in RECORDS if (value := getattr(arguments, record)) is not None}
    if arguments.all == (arguments.event is not None):
        raise UsageError("name one event, or --all")
    if arguments.all and named:
        raise UsageError("a record goes with one event, not with --all")
    for key in EVENTS if arguments.all else [arguments.event]:
        event = client.sandbox.create_trigger(event=key, **named)
        url = getattr(event.data, "url", "")
        say(f"{event.occurred_at:%Y-%m-%d %H:%M:%S}  {event.event}  {event.event_id}  {printable(url)}")
    return 0


TRIGGER = Command(
    "trigger",
    "let an event happen in a sandbox",
    _trigger,
    _arguments,
    "Lets an event happen in a sandbox by its real cause, to a record that is named or to a new one, and prints it "
    "once it is there. The key's scope is write.",
)
