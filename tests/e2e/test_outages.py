"""A process hangs: routes that need it answer with the error envelope, all others work, and nothing is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testkit.patience import took, until

from .receiver import Receiver
from .system import Company, System

# A list of each context, by which the gateway shows that it has reached it again.
SERVED = {"svc-catalog": "/units", "svc-tickets": "/tickets", "svc-occupancy": "/turns", "svc-webhooks": "/webhooks"}


@contextmanager
def hanging(system: System, name: str) -> Iterator[None]:
    """Freezes the process within the context, then resumes it, and waits until the gateway reaches it."""
    pid = system.runtime["processes"][name]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
    if name in SERVED:
        key = system.mint(system.makeready("company", "list")["companies"][0]["company_id"], "read")
        until(lambda: system.get(SERVED[name], key, limit=1).status == 200)


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Outages")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    return company


@pytest.fixture(scope="module")
def unit_id(company: Company) -> int:
    (unit,) = company.walk("/units")
    entity_id: int = unit["entity_id"]
    return entity_id


def test_a_context_that_hangs_takes_no_other_route_away(system: System, company: Company, unit_id: int) -> None:
    with hanging(system, "svc-tickets"):
        answer = system.get("/tickets", company.keys["read"])  # the caller would wait for 30 s
        assert (answer.status, answer.code) == (500, "internal_error")
        assert answer.headers["X-Request-Id"] and answer.headers["Cache-Control"] == "no-store"
        assert system.get("/units", company.keys["read"]).status == 200
        assert system.call("GET", "/../../readyz").status in (200, 404)
    assert system.get("/tickets", company.keys["read"]).status == 200


def test_tickets_are_read_and_opened_while_their_neighbours_hang(
    system: System, company: Company, unit_id: int
) -> None:
    assert company.create_ticket(unit_id, "Known unit", "warm").status == 201
    with hanging(system, "svc-catalog"), hanging(system, "svc-webhooks"), hanging(system, "svc-occupancy"):
        assert system.get("/tickets", company.keys["read"]).status == 200
        assert company.create_ticket(unit_id, "Alone", "alone").status == 201


def test_with_nats_hanging_writes_go_on_and_their_events_arrive(
    system: System, company: Company, unit_id: int, receiver: Receiver
) -> None:
    body = {"destination_url": "https://receiver.test/outage", "events": ["ticket.created"]}
    assert system.post("/webhooks", company.keys["write"], body, "outage").status == 201
    with hanging(system, "nats"):
        answers = [company.create_ticket(unit_id, f"No NATS {n}", f"no nats {n}") for n in range(5)]
        assert [answer.status for answer in answers] == [201] * 5
        assert system.makeready("sweep", "webhooks")["failed"] == 0
    arrived = {delivery.json["data"]["entity_id"] for delivery in receiver.at("/outage")}
    assert {answer.json["entity_id"] for answer in answers} <= arrived
    assert system.makeready("wait", "--timeout", "60") is not None
    system.makeready("sweep", "webhooks")
    ids = [delivery.json["event_id"] for delivery in receiver.at("/outage")]
    assert len(ids) == len(set(ids))


def test_a_key_revoked_while_nats_hangs_is_refused(system: System, company: Company) -> None:
    key = system.mint(company.company_id, "read", company.email)
    assert system.get("/whoami", key).status == 200
    listed = system.makeready("key", "list", str(company.company_id))["keys"]
    key_id = max(key["key_id"] for key in listed)
    with hanging(system, "nats"):
        system.makeready("key", "revoke", str(key_id))
        took("a key revoked without NATS is refused", until(lambda: system.get("/whoami", key).status == 401))
        assert system.get("/whoami", key).code == "key_revoked"


def test_an_inactive_company_is_refused_and_let_in_again(system: System, company: Company) -> None:
    number = str(company.company_id)
    system.makeready("company", "update", number, "--inactive")
    read = company.key_for(100, "read")
    took("an inactive company is refused", until(lambda: system.get("/whoami", read).status == 403))
    assert system.get("/tickets", company.keys["webhook_only"]).code == "company_inactive"
    system.makeready("company", "update", number, "--active")
    took("an active company is let in", until(lambda: system.get("/whoami", read).status == 200))
