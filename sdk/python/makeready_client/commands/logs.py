"""`makeready-client logs`: the requests with the company's keys."""

from __future__ import annotations

import argparse
import datetime
import time

import msgspec

from makeready_client import models
from makeready_client.client import Makeready
from makeready_client.commands import beginning
from makeready_client.commands.command import Command, UsageError, printable, say, warn, warn_of_retry
from makeready_client.errors import MakereadyError
from makeready_client.following import WAIT_SECONDS
from makeready_client.paging import Feed
from makeready_client.pauses import Pauses

LAST = "1h"


def _logs(client: Makeready, arguments: argparse.Namespace) -> int:
    if arguments.request_id:
        if arguments.tail:
            raise UsageError("--request-id names one request, and tail is for those to come")
        body = msgspec.json.encode(client.requests.fetch(arguments.request_id).to_dict())
        say((body if arguments.json else msgspec.json.format(body, indent=2)).decode())
        return 0
    if arguments.tail:
        return _tail(client, arguments)
    arguments.backfill = arguments.backfill or LAST
    since, cursor = beginning.place_of(client, arguments, lambda since: _requests(client, arguments, since))
    page = _requests(client, arguments, since).page(cursor)
    while True:
        _print(arguments, page.data)
        if page.next_cursor is None:
            return 0
        page = _requests(client, arguments, since).page(page.next_cursor)


def _tail(client: Makeready, arguments: argparse.Namespace) -> int:
    """Prints requests until Ctrl-C."""
    since, cursor = beginning.place_of(client, arguments, lambda since: _requests(client, arguments, since))

    def say_how_to_go_on() -> int:
        if cursor:
            warn(beginning.continuation(since, cursor))
        return 0

    arguments.interrupted = say_how_to_go_on
    requests, pauses = _requests(client, arguments, since, WAIT_SECONDS), Pauses(WAIT_SECONDS, warn_of_retry)
    while True:
        pauses.ask()
        try:
            page = requests.page(cursor)
        except MakereadyError as error:
            pause = pauses.after_failure(error)
        else:
            pause = pauses.after_page(page)
            _print(arguments, page.data)
            cursor = page.resume_cursor
        time.sleep(pause)


def _requests(
    client: Makeready, arguments: argparse.Namespace, since: datetime.datetime, wait: int | None = None
) -> Feed[models.LoggedRequest]:
    return client.requests.follow(
        key_id=arguments.key,
        status=arguments.status,
        code=arguments.code,
        route=arguments.route,
        since=since,
        wait=wait,
    )


def _print(arguments: argparse.Namespace, requests: list[models.LoggedRequest]) -> None:
    for request in requests:
        say(msgspec.json.encode(request.to_dict()).decode() if arguments.json else _summary(request))


def _summary(request: models.LoggedRequest) -> str:
    query = f"?{request.query}" if request.query else ""
    line = f"{request.requested_at:%Y-%m-%d %H:%M:%S}  {request.status}  {request.method} {request.path}{query}"
    answer = f"  {request.code}: {request.message}" if request.code else ""
    return printable(f"{line}  {request.milliseconds:.1f} ms  key {request.key_id}  {request.request_id}{answer}")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tail", nargs="?", choices=["tail"], metavar="tail", help="go on with those to come")
    parser.add_argument("--status", metavar="STATUS", help="only this one or this class, as 404 or 4xx")
    parser.add_argument("--code", metavar="CODE", help="only refusals with this code, as invalid_request")
    parser.add_argument("--route", metavar="ROUTE", help="only this route, as /tickets/{ticket_id}")
    parser.add_argument("--key", metavar="ID", type=int, help="only with the key with this id, as whoami says it")
    parser.add_argument("--request-id", metavar="ID", help="one request, in a sandbox with its bodies")
    beginning.add_place(parser, f"else {LAST}, and with tail now")
    parser.add_argument("--json", action="store_true", help="each request whole, on a line")


LOGS = Command(
    "logs",
    "print the requests with the company's keys",
    _logs,
    _arguments,
    "Prints the requests of the last hour and the answers to them, or with tail each within a second or two of its "
    "answer. A key with the scope read sees its own. Ctrl-C ends tail and prints the cursor that goes on.",
)
