"""POST /sandbox/triggers: each of the ten events by its real cause, in a sandbox alone."""

from __future__ import annotations

import datetime
import uuid
import zoneinfo
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from testkit.patience import until

from .system import Answer, Company, System

NOTHING: Mapping[str, int] = {}
EVENTS = (
    "ticket.created",
    "ticket.status_changed",
    "turn.status_changed",
    "turn.schedule_changed",
    "vendor.hold",
    "ticket.stale",
    "inspection.stale",
    "property.notice.published",
    "turn.task.stale",
    "pm.stale",
)


@pytest.fixture(scope="module")
def sandbox(system: System) -> Company:
    # Its morning comes at 18:00 or 19:00 UTC: in most hours of the day, yesterday's work is not overdue there yet.
    return system.company("Trial", "--sandbox", "--timezone", "Pacific/Honolulu")


def trigger(
    company: Company, event: str, named: Mapping[str, int] = NOTHING, *, key: str = "", idempotency_key: str = ""
) -> Answer:
    body = {"event": event, **named}
    idempotency_key = idempotency_key or str(uuid.uuid4())
    return company.system.post("/sandbox/triggers", key or company.key_for(), body, idempotency_key)


def events_of(company: Company) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = company.system.get("/events", company.key_for(scope="read"), limit=200).json["data"]
    return events


def causes(company: Company, event: str, **named: int) -> dict[str, Any]:
    """The event of a trigger, which GET /events has at once."""
    answer = trigger(company, event, named)
    assert answer.status == 201, answer.json
    assert answer.json in events_of(company)
    caused: dict[str, Any] = answer.json
    assert caused["event"] == event
    return caused


@pytest.mark.parametrize("event", EVENTS)
def test_each_event_happens_without_a_record_named_and_again(sandbox: Company, event: str) -> None:
    first, second = causes(sandbox, event), causes(sandbox, event)
    assert first["event_id"] != second["event_id"]


def test_all_ten_may_come_at_once_to_a_new_sandbox(system: System) -> None:
    company = system.company("New", "--sandbox")
    key = company.key_for(len(EVENTS))
    with ThreadPoolExecutor(len(EVENTS)) as at_once:
        answers = list(at_once.map(lambda event: trigger(company, event, key=key), EVENTS))
    assert [(answer.status, answer.json.get("event")) for answer in answers] == [(201, event) for event in EVENTS]
    assert [len(list(company.walk(path))) for path in ("/properties", "/units", "/turns")] == [1, 1, 1]


def test_the_property_and_the_unit_of_triggers_are_made_once(sandbox: Company) -> None:
    causes(sandbox, "turn.task.stale")
    assert [place["name"] for place in sandbox.walk("/properties")] == ["Sandbox triggers"]
    assert [unit["name"] for unit in sandbox.walk("/units")] == ["Sandbox triggers 1"]


def test_records_that_are_named_have_the_events(sandbox: Company) -> None:
    ticket_id = causes(sandbox, "ticket.created")["data"]["entity_id"]
    changed = causes(sandbox, "ticket.status_changed", ticket_id=ticket_id)
    assert changed["data"]["entity_id"] == ticket_id
    assert changed["change"] == {"field": "status", "from": "Open", "to": "In Progress"}
    assert causes(sandbox, "ticket.status_changed", ticket_id=ticket_id)["change"]["to"] == "On Hold"
    assert causes(sandbox, "ticket.stale", ticket_id=ticket_id)["data"]["entity_id"] == ticket_id
    assert causes(sandbox, "ticket.stale", ticket_id=ticket_id)["data"]["entity_id"] == ticket_id
    turn_id = causes(sandbox, "turn.schedule_changed")["data"]["entity_id"]
    moved = causes(sandbox, "turn.schedule_changed", turn_id=turn_id)
    assert (moved["data"]["entity_id"], moved["change"]["to"]) == (turn_id, moved["data"]["projected_ready_on"])
    changed = causes(sandbox, "turn.status_changed", turn_id=turn_id)
    assert (changed["data"]["entity_id"], changed["change"]["field"]) == (turn_id, "unit_status")
    causes(sandbox, "turn.task.stale", turn_id=turn_id)
    sandbox.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    elm_id = next(place["entity_id"] for place in sandbox.walk("/properties") if place["name"] == "Elm Court")
    for event in ("property.notice.published", "pm.stale"):
        assert causes(sandbox, event, property_id=elm_id)["data"]["property"] == "Elm Court"
    assert causes(sandbox, "ticket.created", property_id=elm_id)["data"]["property"]["name"] == "Elm Court"
    ahead = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=20)
    rows = [{"external_id": "I1", "property": "P1", "title": "Roof", "scheduled_date": ahead.isoformat()}]
    sandbox.import_rows("inspections", rows)
    (roof,) = [inspection for inspection in sandbox.walk("/inspections") if inspection["title"] == "Roof"]
    stale = causes(sandbox, "inspection.stale", inspection_id=roof["entity_id"])
    assert stale["data"]["entity_id"] == roof["entity_id"]
    assert stale["data"]["scheduled_date"] < datetime.datetime.now(datetime.UTC).date().isoformat()
    sandbox.import_rows("vendors", [{"external_id": "V1", "name": "Pipes"}])
    pipes_id = next(vendor["entity_id"] for vendor in sandbox.walk("/vendors") if vendor["name"] == "Pipes")
    held = causes(sandbox, "vendor.hold", vendor_id=pipes_id)
    assert (held["data"]["entity_id"], held["change"]["to"]) == (pipes_id, True)


def test_a_record_to_which_the_event_cannot_happen_is_refused(sandbox: Company) -> None:
    held_id = causes(sandbox, "vendor.hold")["data"]["entity_id"]
    stale_id = causes(sandbox, "inspection.stale")["data"]["entity_id"]
    ticket_id = causes(sandbox, "ticket.created")["data"]["entity_id"]
    cancelled = {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket"}
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    assert sandbox.system.call("PATCH", f"/tickets/{ticket_id}", sandbox.key_for(), cancelled, headers).status == 200
    until(lambda: any((event["change"] or {}).get("to") == "Cancelled" for event in events_of(sandbox)), "no event yet")
    properties = {place["name"]: place["entity_id"] for place in sandbox.walk("/properties")}
    for event, named, status in (
        ("vendor.hold", {"vendor_id": held_id}, 422),
        ("inspection.stale", {"inspection_id": stale_id}, 422),
        ("ticket.stale", {"ticket_id": ticket_id}, 422),
        ("ticket.stale", {"ticket_id": 9_000_000}, 404),
        ("ticket.stale", {"ticket_id": 0}, 404),
        ("ticket.stale", {"ticket_id": -1}, 404),
        ("ticket.status_changed", {"ticket_id": 9_000_000}, 404),
        ("ticket.created", {"property_id": 9_000_000}, 404),
        ("turn.status_changed", {"turn_id": 9_000_000}, 404),
        ("turn.schedule_changed", {"turn_id": 9_000_000}, 404),
        ("turn.task.stale", {"turn_id": 9_000_000}, 404),
        ("vendor.hold", {"vendor_id": 9_000_000}, 404),
        ("inspection.stale", {"inspection_id": 9_000_000}, 404),
        ("property.notice.published", {"property_id": 9_000_000}, 404),
        ("pm.stale", {"property_id": 9_000_000}, 404),
        ("ticket.stale", {"vendor_id": held_id}, 400),
        ("ticket.stale", {"ticket_id": ticket_id, "property_id": min(properties.values())}, 400),
        ("ticket.closed", {}, 422),
    ):
        before = len(events_of(sandbox))
        answer = trigger(sandbox, event, named)
        code = "not_found" if status == 404 else "invalid_request"
        assert (answer.status, answer.code) == (status, code), (event, named, answer.json)
        assert len(events_of(sandbox)) == before
    bodies: tuple[dict[str, object], ...] = (
        {},
        {"event": 1},
        {"event": "ticket.stale", "ticket_id": "17"},
        {"event": "pm.stale", "more": 1},
    )
    for body in bodies:
        answer = sandbox.system.post("/sandbox/triggers", sandbox.key_for(), body, str(uuid.uuid4()))
        assert (answer.status, answer.code) == (400, "invalid_request"), body


def test_a_key_that_was_refused_may_be_used_again(sandbox: Company) -> None:
    key, idempotency_key = sandbox.key_for(4), str(uuid.uuid4())
    refused = trigger(sandbox, "ticket.stale", {"ticket_id": 9_000_000}, key=key, idempotency_key=idempotency_key)
    assert refused.status == 404
    assert trigger(sandbox, "ticket.stale", key=key, idempotency_key=idempotency_key).status == 201


def test_a_repeat_is_answered_as_the_first_was_and_causes_nothing(sandbox: Company) -> None:
    key, idempotency_key = sandbox.key_for(6), str(uuid.uuid4())
    first = trigger(sandbox, "ticket.status_changed", key=key, idempotency_key=idempotency_key)
    before = events_of(sandbox)
    again = trigger(sandbox, "ticket.status_changed", key=key, idempotency_key=idempotency_key)
    assert (again.status, again.body, again.headers["X-Idempotent-Replay"]) == (201, first.body, "1")
    assert events_of(sandbox) == before
    other = trigger(sandbox, "ticket.created", key=key, idempotency_key=idempotency_key)
    assert (other.status, other.code) == (409, "idempotency_mismatch")
    # Another write of the same API key finds it used, too.
    unit_id = next(sandbox.walk("/units"))["entity_id"]
    body = {"unit_id": unit_id, "title": "Leak", "category": "Plumbing"}
    other = sandbox.system.post("/tickets", key, body, idempotency_key)
    assert (other.status, other.code) == (409, "idempotency_mismatch")


def test_only_a_writing_key_of_a_sandbox_with_an_administrator_may_trigger(system: System, sandbox: Company) -> None:
    live = system.company("Live")
    answer = trigger(live, "ticket.created")
    assert (answer.status, answer.code) == (404, "not_found")
    assert trigger(live, "ticket.created", key=live.keys["read"]).status == 403
    assert trigger(sandbox, "ticket.created", key=sandbox.keys["read"]).status == 403
    of_nobody = system.mint(sandbox.company_id, "write")
    answer = trigger(sandbox, "ticket.created", key=of_nobody)
    assert (answer.status, answer.code) == (422, "created_by_missing")
    assert events_of(live) == [] and list(live.walk("/properties")) == []
    # Another sandbox's records are as good as none.
    other = system.company("Other", "--sandbox")
    ticket_id = causes(sandbox, "ticket.created")["data"]["entity_id"]
    assert trigger(other, "ticket.stale", {"ticket_id": ticket_id}).status == 404


@pytest.mark.parametrize("timezone", ["Pacific/Kiritimati", "Pacific/Honolulu", "America/St_Johns"])
def test_mornings_are_those_of_the_sandboxs_clock(system: System, timezone: str) -> None:
    company = system.company(f"In {timezone}", "--sandbox", "--timezone", timezone)
    key, zone = company.key_for(30), zoneinfo.ZoneInfo(timezone)
    today = datetime.datetime.now(zone).date() + datetime.timedelta(days=40)
    for hour, days_ago in ((5, 2), (7, 1)):
        at = datetime.datetime.combine(today, datetime.time(hour), zone)
        advanced = system.post("/sandbox/clock", key, {"advance_to": at.isoformat()}, f"{timezone} {hour}")
        assert advanced.status == 202, advanced
        until(lambda: system.get("/sandbox/clock", key).json["status"] == "ready")
        over = (today - datetime.timedelta(days=days_ago)).isoformat()
        assert trigger(company, "inspection.stale", key=key).json["data"]["scheduled_date"] == over
        assert trigger(company, "pm.stale", key=key).json["data"]["due_date"] == over
        for event in ("turn.task.stale", "ticket.stale", "vendor.hold"):
            caused = trigger(company, event, key=key)
            assert caused.status == 201
            assert at <= datetime.datetime.fromisoformat(caused.json["occurred_at"]) < at + datetime.timedelta(hours=1)
