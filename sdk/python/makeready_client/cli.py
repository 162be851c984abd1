"""`makeready-client`: an API key and HTTP are all it needs."""

from __future__ import annotations

import argparse
import datetime
import email.utils
import os
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from makeready_client import errors, models, webhooks
from makeready_client.client import Makeready
from makeready_client.exchange import __version__
from makeready_client.mirror import Mirror
from makeready_client.requests import Request
from makeready_client.sqlite import SqliteStore

EXIT_CODES = """\
exit status: 0 done; 1 the API refused, or the receiver failed; 2 wrong use; 3 the API was not reached; 130 interrupted
"""
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
FORWARD_SECONDS = 10.0
# While an application restarts after an edit, its port is closed.
CLOSED_PORT_SECONDS = (0.2, 0.5, 1.0, 2.0)
INTERRUPTED = 130  # the exit status


class UsageError(Exception):
    """Arguments that do not fit together; the text is the one line that the user reads."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status. A Ctrl-C ends the process.

    The command runs in a thread of its own, as Python gives a Ctrl-C to the main one. In the middle of a request it
    could come where httpcore has just taken a lock, which nobody would return: closing would wait for it for ever.
    """
    arguments = _parser().parse_args(words)
    arguments.interrupted = lambda: INTERRUPTED
    try:
        return ThreadPoolExecutor(1).submit(_run, arguments).result()
    except KeyboardInterrupt:
        status: int = arguments.interrupted()
        os._exit(status)


def _run(arguments: argparse.Namespace) -> int:
    try:
        with Makeready(arguments.api_key, base_url=arguments.base_url) as client:
            status: int = arguments.run(client, arguments)
            return status
    except (UsageError, ValueError, httpx.InvalidURL) as error:
        return _failed(2, str(error))
    except errors.ConnectionFailed as error:
        return _failed(3, f"not reached: {error}")
    except errors.ApiError as error:
        return _failed(1, str(error))
    except OSError as error:
        return _failed(1, f"{error.filename or 'the system'}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="makeready-client",
        description="The Maintenance and Occupancy Records API on the command line.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=__version__)
    _connecting(parser, default=None)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("whoami", help="the key's company and scope", epilog=EXIT_CODES)
    command.set_defaults(run=whoami)

    command = commands.add_parser(
        "listen",
        help="send events to a server on this machine, as signed deliveries",
        description="Follows the events of the company and posts each to URL as a signed delivery, in their order, "
        "without a tunnel or a subscription. Ends with Ctrl-C and prints the cursor that goes on.",
        epilog=EXIT_CODES,
    )
    command.add_argument("--forward-to", metavar="URL", required=True, help="as http://localhost:8000/webhooks")
    command.add_argument("--events", metavar="KEY,…", help="only these events, as ticket.created,vendor.hold")
    begin = command.add_mutually_exclusive_group()
    begin.add_argument("--backfill", metavar="TIME", help="begin so long ago, as 90s, 30m, 2h or 7d; else now")
    begin.add_argument("--from", dest="place", metavar="CURSOR", help="begin where an earlier run has ended")
    command.add_argument("--secret", help="the signing secret; a new one is printed if left out")
    command.set_defaults(run=listen)

    command = commands.add_parser(
        "sync",
        help="keep a copy of all records in a folder",
        description="Brings a copy of the records in step: the first time whole, then only what has changed.",
        epilog=EXIT_CODES,
    )
    command.add_argument("folder", metavar="DIR", type=Path)
    form = command.add_mutually_exclusive_group(required=True)
    form.add_argument("--sqlite", action="store_true", help="DIR/makeready.sqlite, a table for each kind")
    form.add_argument("--jsonl", action="store_true", help="beside that DIR/KIND.jsonl, a record on each line")
    command.add_argument("--kinds", metavar="KIND,…", help=f"only these of {', '.join(models.KINDS)}")
    command.add_argument("--follow", action="store_true", help="go on until Ctrl-C (with --sqlite)")
    command.set_defaults(run=sync)

    command = commands.add_parser("test-delivery", help="send a test event to a subscription now", epilog=EXIT_CODES)
    command.add_argument("sub_id", metavar="SUB_ID", type=int, help="the subscription's entity_id")
    command.set_defaults(run=test_delivery)
    for command in commands.choices.values():
        _connecting(command, default=argparse.SUPPRESS)  # one that is left out keeps what stands before the command
    return parser


def _connecting(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    text = "else MAKEREADY_API_KEY, which other users cannot see"
    parser.add_argument("--api-key", metavar="KEY", default=default, help=text)
    text = "as https://HOST/api/v1; else MAKEREADY_BASE_URL"
    parser.add_argument("--base-url", metavar="URL", default=default, help=text)


def whoami(client: Makeready, _: argparse.Namespace) -> int:
    """Prints the company and the key."""
    caller = client.whoami()
    company, key = caller.company, caller.key
    _say(f"company  {company.id}  {company.name}  {company.timezone}")
    _say(f"key      {key.id}  {key.name}  {key.prefix}…  scope {key.scope}")
    _say(f"address  {client.settings.base_url}")
    return 0


def listen(client: Makeready, arguments: argparse.Namespace) -> int:
    """Forwards events until Ctrl-C."""
    keys = set(arguments.events.split(",")) if arguments.events else set(models.EVENTS)
    if unknown := keys.difference(models.EVENTS):
        raise UsageError(f"no such events: {', '.join(sorted(unknown))}; there are {', '.join(models.EVENTS)}")
    if not re.match("https?://[^/]", arguments.forward_to):
        raise UsageError("--forward-to needs a URL as http://localhost:8000/webhooks")
    secret = arguments.secret or webhooks.new_secret()
    since, cursor = _beginning(client, arguments)
    events = client.events.follow(cursor, since=since, on_retry=_warn_of_retry)

    def say_how_to_go_on() -> int:
        if cursor:  # a cursor is good for one `since` only
            _say(f"To go on from here: --from {since:%Y-%m-%dT%H:%M:%SZ}/{cursor}")
        return 0

    arguments.interrupted = say_how_to_go_on
    _say(f"Forwarding to {arguments.forward_to}; signing secret: {secret}")
    try:
        # Without the environment's proxy: the receiver is near.
        with httpx.Client(timeout=FORWARD_SECONDS, trust_env=False) as receiver:
            for event in events:
                line = ""
                if not arguments.events or event.event in keys:
                    line = _forward(receiver, arguments.forward_to, event, secret)
                cursor = events.cursor
                if line:
                    _say(line)
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


def sync(client: Makeready, arguments: argparse.Namespace) -> int:
    """Brings the copy in step."""
    if arguments.follow and not arguments.sqlite:
        raise UsageError("--follow goes with --sqlite")
    kinds = arguments.kinds.split(",") if arguments.kinds else models.KINDS
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(folder / "makeready.sqlite")
    try:
        mirror = Mirror(client, store, kinds=kinds)
        company = client.whoami().company
        if not store.belongs_to(company.id):
            raise UsageError(f"{folder} has the records of another company; name another folder")
        came = mirror.run()
        for kind, count in came.items():
            _say(f"{kind:12} {count:8} came  {store.count(kind):8} in all")
            file = folder / f"{kind}.jsonl"
            if arguments.jsonl and (count or not file.exists()):
                store.write_lines(kind, file)
        if arguments.follow:
            mirror.follow(on_retry=_warn_of_retry)
    finally:
        store.close()
    return 0


def test_delivery(client: Makeready, arguments: argparse.Namespace) -> int:
    """Has a test event sent and prints what the receiver answered."""
    report = client.webhooks.test(arguments.sub_id)
    for attempt in report.attempts:
        _say(f"{report.event_id}  {attempt.status or attempt.error}  {attempt.duration_milliseconds} ms")
        if attempt.response_excerpt:
            _say(attempt.response_excerpt)
    _say(report.state)
    return 0 if report.state == "succeeded" else 1


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


def _failed(status: int, text: str) -> int:
    _warn(text)
    return status


def _warn(text: str) -> None:
    sys.stderr.write(f"makeready-client: {text}\n")


def _warn_of_retry(error: errors.MakereadyError, seconds: float) -> None:
    _warn(f"trying again in {seconds:.0f} s: {error}")


def _say(text: str) -> None:
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has enough
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
