"""Sends every forbidden destination in a subscription, as an integration would (spec 4.11)."""

from __future__ import annotations

import json

import pytest

from testkit.hostile_destinations import ADDRESSES, URLS, url_of

from .hostile_writes import DESTINATION, World
from .system import Answer

pytestmark = pytest.mark.usefixtures("no_faults")

WRITE = "POST /webhooks"
KINDS = URLS | {
    f"addresses: {kind}": [url_of(address) for address in addresses] for kind, addresses in ADDRESSES.items()
}


def test_every_hostile_destination_is_refused_and_nothing_comes_of_it(world: World) -> None:
    """Nothing is created, and the Idempotency-Key of the refused requests is still free at the end."""
    cases = [(url, json.dumps(_body(url)).encode()) for urls in KINDS.values() for url in urls]
    assert len(cases) > 350
    world.refuses(WRITE, _body(DESTINATION), cases, _is_refused)


def _body(url: str) -> dict[str, object]:
    return {"destination_url": url, "events": ["ticket.created"]}


def _is_refused(url: str, answer: Answer) -> bool:
    """422; or 400 for characters that no text may contain."""
    if any("\ud800" <= character <= "\udfff" for character in url):
        return (answer.status, answer.code) == (400, "invalid_request")
    message: str = answer.json["error"]["message"]
    # The message neither repeats the URL nor reveals the address of an internal name.
    return (answer.status, answer.code) == (422, "invalid_destination_url") and (len(url) < 9 or url not in message)
