"""An integrator advances the clock of a sandbox: the whole ladder of a delivery, and writes that come meanwhile."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.patience import until
from testkit.prepared import prepare_state

from .receiver import Receiver
from .system import Company, System

HOUR = datetime.timedelta(hours=1)
WRITERS = 3


@pytest.fixture(scope="module")
def hourly(receiver: Receiver, states: Path) -> Iterator[System]:
    """A separate system, whose deliveries have the slots of the contract: full hours."""
    prepare_state(states / "hourly")
    system = System(
        states / "hourly",
        MAKEREADY_DEMO="0",
        WEBHOOKS_SWEEP_SECONDS="3600",
        WEBHOOKS_EGRESS_HOSTS=f"receiver.test=127.0.0.1:{receiver.port}",
        WEBHOOKS_EGRESS_CA_FILE=str(receiver.authority_file),
    )
    try:
        system.start()
        yield system
    finally:
        system.stop()


@pytest.fixture
def sandbox(hourly: System) -> Company:
    sandbox = hourly.company("Advanced", "--sandbox")
    sandbox.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    sandbox.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    return sandbox


def clock(sandbox: Company) -> Any:
    return sandbox.system.get("/sandbox/clock", sandbox.key_for()).json


def advance(sandbox: Company, length: str) -> None:
    begun = sandbox.system.post("/sandbox/clock", sandbox.key_for(), {"advance_by": length}, f"by {time.time_ns()}")
    assert begun.status == 202, begun


def ready(sandbox: Company) -> Any:
    until(lambda: clock(sandbox)["status"] == "ready")
    return clock(sandbox)


def instant(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def test_a_failing_delivery_climbs_the_ladder_and_is_parked(sandbox: Company, receiver: Receiver) -> None:
    system = sandbox.system
    receiver.answers["/ladder"] = [500] * 6
    body = {"destination_url": "https://receiver.test/ladder", "events": ["ticket.stale"]}
    assert system.post("/webhooks", sandbox.key_for(), body, "for the ladder").status == 201
    ticket = {"external_id": "T1", "property": "P1", "title": "Cold", "category": "HVAC", "source": "resident_portal"}
    sandbox.import_rows("tickets", [ticket])
    advance(sandbox, "P5D")
    clock_after = ready(sandbox)
    assert clock_after["done"] == {"ticket.stale": 1, "delivery.failed": 5, "delivery.parked": 1}
    (sub_id,) = [subscription["entity_id"] for subscription in sandbox.walk("/webhooks")]
    (delivery,) = system.get(f"/webhooks/{sub_id}/deliveries", sandbox.key_for()).json["data"]
    attempts = system.get(f"/webhooks/{sub_id}/deliveries/{delivery['event_id']}", sandbox.key_for()).json["attempts"]
    started = [instant(attempt["started_at"]) for attempt in attempts]
    assert [round((at - started[0]) / HOUR) for at in started] == [0, 1, 2, 4, 8, 24]


def test_a_write_beside_an_advance_has_the_instant_that_the_clock_then_says(sandbox: Company) -> None:
    system = sandbox.system
    (unit,) = sandbox.walk("/units")
    rows = [
        {"external_id": f"T{n}", "property": "P1", "title": "Cold", "category": "HVAC", "source": "resident_portal"}
        for n in range(40)
    ]
    sandbox.import_rows("tickets", rows)
    written: list[tuple[float, float, str]] = []
    is_over = threading.Event()

    def write(writer: int, key: str) -> None:
        number = 0
        while not is_over.is_set() and number < 100:
            number += 1
            body = {"unit_id": unit["entity_id"], "title": f"Tap {number}", "category": "Leak"}
            begun = time.monotonic()
            answer = system.post("/tickets", key, body, f"writer {writer} {number}")
            assert answer.status == 201, answer
            written.append((begun, time.monotonic(), answer.json["created_at"]))

    keys = [system.mint(sandbox.company_id, "write", sandbox.email) for _ in range(WRITERS)]
    writers = [threading.Thread(target=write, args=pair) for pair in enumerate(keys)]
    advance(sandbox, "P30D")
    for writer in writers:
        writer.start()
    end = ready(sandbox)
    is_over.set()
    for writer in writers:
        writer.join()
    assert len(written) > WRITERS and end["done"]["ticket.stale"] >= 400
    for begun, _, created_at in written:
        earlier = [other for _, ended, other in written if ended < begun]
        assert not earlier or max(earlier) <= created_at
    # Events of a record, and of time, are in the order in which they were stored.
    page = system.get("/events", sandbox.key_for(), limit=200).json
    stale = [event["occurred_at"] for event in page["data"] if event["event"] == "ticket.stale"]
    assert stale == sorted(stale)
