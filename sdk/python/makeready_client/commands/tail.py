"""`makeready-client events tail`."""

from __future__ import annotations

import argparse

from makeready_client import models
from makeready_client.client import Makeready
from makeready_client.commands import beginning
from makeready_client.commands.command import Command, printable, say, warn


def _tail(client: Makeready, arguments: argparse.Namespace) -> int:
    """Prints events until Ctrl-C."""
    followed = beginning.Followed(client, arguments)

    def say_how_to_go_on() -> int:
        if line := followed.continuation():
            warn(line)
        return 0

    arguments.interrupted = say_how_to_go_on
    for event in followed.events:
        if followed.names(event):
            say(event.raw.decode() if arguments.json else _summary(event))
        followed.done()
    return 0  # events have no end


def _summary(event: models.Event) -> str:
    data = event.data if isinstance(event.data, dict) else event.data.to_dict()
    about = data.get("entity_id") or data.get("unit") or data.get("property") or ""
    return printable(f"{event.occurred_at:%Y-%m-%d %H:%M:%S}  {event.event}  {event.event_id}  {about}".rstrip())


def _arguments(parser: argparse.ArgumentParser) -> None:
    beginning.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the whole event on each line, as the API sends it")


EVENTS_TAIL = Command(
    "events tail",
    "print events as they happen",
    _tail,
    _arguments,
    "Prints each event of the company within about a second. Ends with Ctrl-C and prints the cursor that goes on.",
)
