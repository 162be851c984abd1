"""`makeready-client test-delivery`."""

from __future__ import annotations

import argparse

from makeready_client.client import Makeready
from makeready_client.commands.command import Command, say


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sub_id", metavar="SUB_ID", type=int, help="the subscription's entity_id")


def test_delivery(client: Makeready, arguments: argparse.Namespace) -> int:
    """Has a test event sent and prints what the receiver answered."""
    report = client.webhooks.test(arguments.sub_id)
    for attempt in report.attempts:
        say(f"{report.event_id}  {attempt.status or attempt.error}  {attempt.duration_milliseconds} ms")
        if attempt.response_excerpt:
            say(attempt.response_excerpt)
    say(report.state)
    return 0 if report.state == "succeeded" else 1


TEST_DELIVERY = Command("test-delivery", "send a test event to a subscription now", test_delivery, _arguments)
