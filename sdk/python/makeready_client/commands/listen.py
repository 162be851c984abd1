"""`makeready-client listen`."""

from __future__ import annotations

import argparse
import datetime
import email.utils
import re
import time

import httpx

from makeready_client import models, webhooks
from makeready_client.client import Makeready
from makeready_client.commands.command import Command, UsageError, say, warn_of_retry
from makeready_client.requests import Request

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
FORWARD_SECONDS = 10.0
# While an application restarts after an edit, its port is closed.
CLOSED_PORT_SECONDS = (0.2, 0.5, 1.0, 2.0)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--forward-to", metavar="URL", required=True, help="as http://localhost:8000/webhooks")
    parser.add_argument("--events", metavar="KEY,…", help="only these events, as ticket.created,vendor.hold")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--backfill", metavar="TIME", help="begin so long ago, as 90s, 30m, 2h or 7d; else now")
    begin.add_argument("--from", dest="place", metavar="CURSOR", help="begin where an earlier run has ended")
    parser.add_argument("--secret", help="the signing secret; a new one is printed if left out")


def listen(client: Makeready, arguments: argparse.Namespace) -> int:
    """Forwards events until Ctrl-C."""
    keys = set(arguments.events.split(",")) if arguments.events else set(models.EVENTS)
    if unknown := keys.difference(models.EVENTS):
        raise UsageError(f"no such events: {', '.join(sorted(unknown))}; there are {', '.join(models.EVENTS)}")
    if not re.match("https?://[^/]", arguments.forward_to):
        raise UsageError("--forward-to needs a URL as http://localhost:8000/webhooks")
    secret = arguments.secret or webhooks.new_secret()
    since, cursor = _beginning(client, arguments)
    events = client.events.follow(cursor, since=since, on_retry=warn_of_retry)

    def say_how_to_go_on() -> int:
        if cursor:  # a cursor is good for one `since` only
            say(f"To go on from here: --from {since:%Y-%m-%dT%H:%M:%SZ}/{cursor}")
        return 0

    arguments.interrupted = say_how_to_go_on
    say(f"Forwarding to {arguments.forward_to}; signing secret: {secret}")
    try:
        # Without the environment's proxy: the receiver is near.
        with httpx.Client(timeout=FORWARD_SECONDS, trust_env=False) as receiver:
            for event in events:
                line = ""
                if not arguments.events or event.event in keys:
                    line = _forward(receiver, arguments.forward_to, event, secret)
                cursor = events.cursor
                if line:
                    say(line)
        return 0  # events have no end
    except Exception:
        say_how_to_go_on()
        raise


def _beginning(client: Makeready, arguments: argparse.Namespace) -> tuple[datetime.datetime, str | None]:
    """The instant and the cursor behind which events are forwarded."""
    if arguments.place:
        instant, _, cursor = arguments.place.partition("/")
        try:
            return datetime.datetime.fromisoformat(instant), cursor
        except ValueError:
            raise UsageError("--from needs what an earlier run has printed") from None
    since = _now(client) - datetime.timedelta(seconds=_seconds(arguments.backfill))
    if arguments.backfill:
        return since, None
    (*_, last) = client.events.list(since=since).pages()  # what was there already in this second of the clock
    return since, last.resume_cursor


def _forward(receiver: httpx.Client, url: str, event: models.Event, secret: str) -> str:
    """Posts one event; returns a line about what became of it."""
    headers = {"Content-Type": "application/json", "User-Agent": "Makeready-Webhooks/1", "Service-Attempt": "1"}
    began = time.monotonic()
    for pause in (*CLOSED_PORT_SECONDS, None):
        try:
            headers |= webhooks.signed(event.raw, secret, event.event_id)
            answer = receiver.post(url, content=event.raw, headers=headers)
            outcome = str(answer.status_code)
            break
        except httpx.ConnectError as error:
            outcome = f"not reached: {error}"
            if pause is not None:
                time.sleep(pause)
        except httpx.HTTPError as error:
            outcome = f"failed: {error!r}"
            break
    return f"{event.occurred_at:%Y-%m-%d %H:%M:%S}  {event.event}  {event.event_id}  {outcome}  {_since(began)} ms"


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


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


LISTEN = Command(
    "listen",
    "send events to a server on this machine, as signed deliveries",
    listen,
    _arguments,
    "Follows the events of the company and posts each to URL as a signed delivery, in their order, "
    "without a tunnel or a subscription. Ends with Ctrl-C and prints the cursor that goes on.",
)
