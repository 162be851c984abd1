"""`makeready-client clock`."""

from __future__ import annotations

import argparse
import re
import time

from makeready_client import models
from makeready_client.client import Makeready
from makeready_client.commands.beginning import UNITS
from makeready_client.commands.command import Command, UsageError, printable, say

LOOK_SECONDS = 1.0  # well below the limit of requests
FORM = "%Y-%m-%d %H:%M:%S"


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("act", metavar="advance|next", nargs="?", choices=("advance", "next"), help="else it is shown")
    parser.add_argument("length", metavar="LENGTH", nargs="?", help="of an advance, as 90m, 25h, 7d or P1DT2H")


def _clock(client: Makeready, arguments: argparse.Namespace) -> int:
    """Prints the clock; after an advance, once that is done."""
    if (arguments.act == "advance") != (arguments.length is not None):
        raise UsageError("an advance, and it alone, has a length, as in `clock advance 25h`")
    if arguments.act == "advance":
        client.sandbox.advance_clock(advance_by=_duration(arguments.length))
    elif arguments.act == "next":
        clock = client.sandbox.get_clock()
        if clock.next_due is None:
            say(clock.waiting or "Time alone makes nothing due.")
            return 1
        if clock.next_due.at <= clock.now:
            client.sandbox.advance_clock(advance_by="PT0S")
        else:
            client.sandbox.advance_clock(advance_to=clock.next_due.at)
    clock = client.sandbox.get_clock()
    waiting = ""
    while arguments.act and clock.status != "ready":
        if clock.waiting and not waiting:
            waiting = printable(clock.waiting)
            say(waiting)
        time.sleep(LOOK_SECONDS)
        clock = client.sandbox.get_clock()
    _show(clock)
    return 0


def _show(clock: models.SandboxClock) -> None:
    say(f"now   {clock.now:{FORM}}  {clock.status}")
    if clock.next_due is not None:
        say(f"next  {clock.next_due.at:{FORM}}  {clock.next_due.event}")
    if clock.start is not None and clock.target is not None:
        say(f"last  {clock.start:{FORM}} to {clock.target:{FORM}}")
    for event, count in sorted(clock.done.items()):
        say(f"      {count:5}  {event}")
    if clock.waiting:
        say(printable(clock.waiting))


def _duration(text: str) -> str:
    """The length as ISO 8601 has it; what begins with P is sent as it is."""
    match = re.fullmatch("([0-9]{1,6})([smhd])", text)
    if match is None and not text.startswith("P"):
        raise UsageError(f"a length is 90m, 25h, 7d or P1DT2H, not {text}")
    return f"PT{int(match[1]) * UNITS[match[2]]}S" if match else text


CLOCK = Command(
    "clock",
    "show or advance the clock of a sandbox",
    _clock,
    _arguments,
    "Shows the clock of a sandbox, what falls due next and what the last advance has done. `advance 25h` moves it by a "
    "length, `next` to what falls due next; both wait until all is done. The key's scope is then write.",
)
