"""`makeready-client listen` and `resend`: events posted to a server on this machine, as signed deliveries."""

from __future__ import annotations

import argparse
import datetime
import re
import time
import uuid

import httpx

from makeready_client import models, webhooks
from makeready_client.client import Makeready
from makeready_client.commands import beginning
from makeready_client.commands.command import Command, UsageError, say

FORWARD_SECONDS = 10.0
# While an application restarts after an edit, its port is closed.
CLOSED_PORT_SECONDS = (0.2, 0.5, 1.0, 2.0)
# Deliveries are retried after as many hours.
RETRY_SECONDS = (1, 2, 4, 8, 24)


class Receiver:
    """The server on this machine."""

    def __init__(self, url: str, secret: str | None) -> None:
        """secret: a new one is made if it is None. Raises UsageError."""
        if not re.match("https?://[^/]", url):
            raise UsageError("--forward-to needs a URL as http://localhost:8000/webhooks")
        self._url = url
        self._secret = secret or webhooks.new_secret()
        # Without the environment's proxy: the receiver is near.
        self._http = httpx.Client(timeout=FORWARD_SECONDS, trust_env=False)

    def announce(self) -> None:
        """Says where events go, and how they are signed."""
        say(f"Forwarding to {self._url}; signing secret: {self._secret}")

    def post(self, event: models.Event, attempt: int = 1) -> bool:
        """Posts an event, prints what became of it, and returns whether it was taken."""
        headers = {"Content-Type": "application/json", "User-Agent": "Makeready-Webhooks/1"}
        headers["Service-Attempt"] = str(attempt)
        began = time.monotonic()
        is_taken = False
        for pause in (*CLOSED_PORT_SECONDS, None):
            try:
                headers |= webhooks.signed(event.raw, self._secret, event.event_id)
                answer = self._http.post(self._url, content=event.raw, headers=headers)
                outcome, is_taken = str(answer.status_code), answer.is_success
                break
            except httpx.ConnectError as error:
                outcome = f"not reached: {error}"
                if pause is not None:
                    time.sleep(pause)
            except httpx.HTTPError as error:
                outcome = f"failed: {error!r}"
                break
        name = f"{event.occurred_at:%Y-%m-%d %H:%M:%S}  {event.event}  {event.event_id}"
        say(f"{name}  {outcome}  {round((time.monotonic() - began) * 1000)} ms")
        return is_taken

    def post_with_retries(self, event: models.Event) -> None:
        """Posts an event until it is taken, or as often as a delivery is tried."""
        for attempt, pause in enumerate((*RETRY_SECONDS, None), 1):
            if self.post(event, attempt):
                return
            if pause is not None:
                say(f"Retry in {pause} s; a delivery's would be in {pause} h.")
                time.sleep(pause)
        say("Given up; a delivery would be parked now.")


def _listen(client: Makeready, arguments: argparse.Namespace) -> int:
    """Forwards events until Ctrl-C."""
    receiver = Receiver(arguments.forward_to, arguments.secret)
    followed = beginning.Followed(client, arguments)
    receiver.announce()

    def say_how_to_go_on() -> int:
        if line := followed.continuation():
            say(line)
        return 0

    arguments.interrupted = say_how_to_go_on
    try:
        for event in followed.events:
            if followed.names(event):
                (receiver.post_with_retries if arguments.retry else receiver.post)(event)
            followed.done()
        return 0  # events have no end
    except Exception:
        say_how_to_go_on()
        raise


def _resend(client: Makeready, arguments: argparse.Namespace) -> int:
    """Forwards one event."""
    receiver = Receiver(arguments.forward_to, arguments.secret)
    for event in client.events.list(since=_made_at(arguments.event_id)):
        if event.event_id == arguments.event_id:
            receiver.announce()
            return 0 if receiver.post(event) else 1
    raise UsageError(f"no event {arguments.event_id} among those of 30 days")


def _made_at(event_id: str) -> datetime.datetime:
    """A second before the event was made, which its id says: an event is stored later. Raises UsageError."""
    try:
        identifier = uuid.UUID(event_id)
    except ValueError:
        raise UsageError(f"not an event's id: {event_id}") from None
    return datetime.datetime.fromtimestamp((identifier.int >> 80) / 1000 - 1, datetime.UTC)


def _forward_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--forward-to", metavar="URL", required=True, help="as http://localhost:8000/webhooks")
    parser.add_argument("--secret", help="the signing secret; a new one is printed if left out")


def _arguments_of_listen(parser: argparse.ArgumentParser) -> None:
    _forward_to(parser)
    beginning.add_arguments(parser)
    times = ", ".join(map(str, RETRY_SECONDS))
    parser.add_argument(
        "--retry", action="store_true", help=f"post what fails again after {times} seconds, before the next event"
    )


def _arguments_of_resend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("event_id", metavar="EVENT_ID")
    _forward_to(parser)


LISTEN = Command(
    "listen",
    "send events to a server on this machine, as signed deliveries",
    _listen,
    _arguments_of_listen,
    "Follows the events of the company and posts each to URL as a signed delivery, in their order, "
    "without a tunnel or a subscription. Ends with Ctrl-C and prints the cursor that goes on.",
)
RESEND = Command("resend", "send one event of 30 days to a server on this machine", _resend, _arguments_of_resend)
