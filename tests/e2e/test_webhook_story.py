"""A delivery that always fails: the whole ladder in seconds, and the company's view of it over HTTP.

Its name puts this module last: its sweeps run days ahead.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from .receiver import Receiver
from .system import Company, System

LADDER_HOURS = (0, 1, 2, 4, 8, 24)  # after the first attempt
ENVELOPE = ["schema_version", "event_id", "event", "occurred_at", "company_id", "data", "change"]


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Webhook Story")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    return company


@pytest.fixture(scope="module")
def unit_id(company: Company) -> int:
    (unit,) = company.walk("/units")
    entity_id: int = unit["entity_id"]
    return entity_id


def subscribed(company: Company, path: str) -> dict[str, Any]:
    body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.status_changed", "ticket.created"]}
    answer = company.system.post("/webhooks", company.keys["webhook_only"], body, f"story {path}")
    assert answer.status == 201
    subscription: dict[str, Any] = answer.json
    return subscription


def health(company: Company, sub_id: int) -> str:
    """The subscription's health in GET /webhooks."""
    listed = company.system.get("/webhooks", company.keys["read"]).json["data"]
    (health,) = (subscription["health"] for subscription in listed if subscription["entity_id"] == sub_id)
    return str(health)


def sweep_at(system: System, instant: datetime) -> Any:
    return system.makeready("sweep", "webhooks", "--now", instant.isoformat())


def test_a_delivery_climbs_the_whole_ladder_and_parks_and_health_follows(
    system: System, company: Company, unit_id: int, receiver: Receiver
) -> None:
    subscription = subscribed(company, "/ladder")
    sub_id = subscription["entity_id"]
    receiver.answers["/ladder"] = [500, 302, 404, 410, 503, 500]
    assert health(company, sub_id) == "healthy"
    opened = company.create_ticket(unit_id, "Nobody listens", "ladder 1")
    begun = datetime.now(UTC) + timedelta(seconds=1)
    standing = []
    for attempts_made, hours in enumerate(LADDER_HOURS, start=1):
        sweep_at(system, begun + timedelta(hours=hours))
        standing.append(health(company, sub_id))
        assert len(receiver.at("/ladder")) == attempts_made
        if hours in (0, 8):  # between two rungs
            sweep_at(system, begun + timedelta(hours=hours, minutes=59))
            assert len(receiver.at("/ladder")) == attempts_made
    # The fifth sweep in a row that fails is that of the fourth retry; the last retry parks the delivery.
    assert standing == ["retrying"] * 4 + ["dead_lettered"] * 2
    sweep_at(system, begun + timedelta(days=3))
    attempts = receiver.at("/ladder")
    assert len(attempts) == 6, "a parked delivery is not retried by itself"

    assert list(attempts[0].json) == ENVELOPE and opened.body in attempts[0].body
    assert len({attempt.body for attempt in attempts}) == 1, (
        "every attempt sends the same bytes, the event_id among them"
    )
    assert all(attempt.is_signed_with(subscription["secret"]) for attempt in attempts)
    assert [attempt.headers["service-attempt"] for attempt in attempts] == ["1", "2", "3", "4", "5", "6"]
    assert {attempt.headers["x-request-id"] for attempt in attempts} == {opened.headers["X-Request-Id"]}
    assert {attempt.headers["content-type"] for attempt in attempts} == {"application/json"}
    (delivery,) = system.makeready("webhooks", "deliveries", str(sub_id))["deliveries"]
    assert delivery["event_id"] == attempts[0].json["event_id"]
    assert (delivery["state"], delivery["due_at"]) == ("parked", None)
    assert [attempt["status"] for attempt in delivery["attempts"]] == [500, 302, 404, 410, 503, 500]

    # The next event succeeds: the subscription is healthy again, and the parked delivery stays parked.
    assert company.create_ticket(unit_id, "Somebody listens", "ladder 2").status == 201
    sweep_at(system, begun + timedelta(days=3, hours=1))
    assert health(company, sub_id) == "healthy"
    assert len(receiver.at("/ladder")) == 7
    states = {
        delivery["event_id"]: delivery["state"]
        for delivery in system.makeready("webhooks", "deliveries", str(sub_id))["deliveries"]
    }
    assert states.pop(attempts[0].json["event_id"]) == "parked" and list(states.values()) == ["succeeded"]
