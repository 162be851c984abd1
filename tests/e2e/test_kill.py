"""Kills a process of `make run` with -9 during a run of creates, and restarts the whole system: nothing acknowledged is
lost, nothing happens twice. tests/chaos kills each process alone, in every write.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.event_contract import check_envelope
from testkit.prepared import prepare_state

from .receiver import Receiver
from .system import Company, System

pytestmark = pytest.mark.chaos

PROCESSES = ["svc-tickets", "postgres", "nats"]
CREATES_MAX = 100  # the rate limit of one key


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """A separate receiver: this module's system has the same company ids as the session's system, whose deliveries are
    compared with its records."""
    with Receiver(tmp_path_factory.mktemp("receiver of the killed")) as running:
        yield running
    for delivery in running.deliveries:
        check_envelope(delivery.body)


@pytest.fixture(scope="module")
def house(receiver: Receiver, states: Path) -> System:
    """A separate system, as this module kills it."""
    prepare_state(states / "killed")
    return System(
        states / "killed",
        MAKEREADY_DEMO="0",
        WEBHOOKS_EGRESS_HOSTS=f"receiver.test=127.0.0.1:{receiver.port}",
        WEBHOOKS_EGRESS_CA_FILE=str(receiver.authority_file),
    )


@pytest.mark.slow
def test_a_system_whose_process_is_killed_during_creates_loses_nothing(house: System, receiver: Receiver) -> None:
    house.start()
    try:
        company = house.company("Killed")
        company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
        company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
        (unit,) = company.walk("/units")
        body = {"destination_url": "https://receiver.test/killed", "events": ["ticket.created"]}
        assert house.post("/webhooks", company.keys["write"], body, "sub").status == 201
        acknowledged: dict[str, int] = {}
        for name in PROCESSES:
            acknowledged |= create_while_killing(house, company, unit["entity_id"], name)
        swept = house.makeready("sweep", "webhooks")
        assert swept["failed"] == 0
        served = {ticket["title"]: ticket["entity_id"] for ticket in company.walk("/tickets")}
        assert acknowledged.items() <= served.items()
        assert len(list(company.walk("/tickets"))) == len(served), "a create happened twice"
        delivered = [delivery.json["data"]["entity_id"] for delivery in receiver.at("/killed")]
        assert set(delivered) == set(served.values())
        assert len({delivery.json["event_id"] for delivery in receiver.at("/killed")}) == len(served)
    finally:
        house.stop()


def create_while_killing(house: System, company: Company, unit_id: int, name: str) -> dict[str, int]:
    """Creates one ticket after another, kills the process meanwhile, restarts the system, and retries unacknowledged
    creates with their own keys. Returns the id of each title."""
    company.keys["write"] = house.mint(company.company_id, "write", company.email)
    acknowledged: dict[str, int] = {}
    unanswered: list[str] = []
    over = threading.Event()

    def create() -> None:
        for number in range(CREATES_MAX):
            if over.is_set():
                return
            title = f"{name} {number}"
            try:
                answer = company.create_ticket(unit_id, title, title)
            except OSError:
                unanswered.append(title)
                time.sleep(0.02)
                continue
            if answer.status == 201:
                acknowledged[title] = answer.json["entity_id"]
            else:
                assert answer.status == 500 and answer.code == "internal_error", answer
                unanswered.append(title)

    writer = threading.Thread(target=create)
    writer.start()
    while len(acknowledged) < 10 and writer.is_alive():
        time.sleep(0.01)
    os.kill(house.runtime["processes"][name]["pid"], signal.SIGKILL)
    assert house.process is not None
    status = house.process.wait(60)  # the runner stops the others and says so
    over.set()
    writer.join(60)
    assert status == 1 and len(acknowledged) >= 10
    last = house.log.read_text().strip().splitlines()[-1]
    assert name in last and "Traceback" not in house.log.read_text()
    house.start()
    key = company.keys["write"]
    for title in unanswered[-15:]:
        answer = company.create_ticket(unit_id, title, title)
        assert answer.status == 201, (title, answer)
        acknowledged[title] = answer.json["entity_id"]
    assert company.keys["write"] == key
    return acknowledged
