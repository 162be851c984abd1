"""Residencies over HTTP: a move-in, a notice, the next resident, and the events of each."""

from __future__ import annotations

import contextlib
import re
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from testkit.event_contract import check_same_as_get
from testkit.patience import pauses, took

from .receiver import Receiver
from .system import Answer, Company, System
from .test_first_light import ENVELOPE, subscribe
from .test_outages import hanging

MAIL, PHONE = "not.for.others@residents.example", "+1 512 555 0177"
ANA = {"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder", "email": MAIL, "phone": PHONE}
GUS = {"first_name": "Gus", "role": "guarantor", "external_id": "G-1", "email": MAIL}
LEASE = {"move_in_date": "2026-01-15", "lease_start_date": "2026-01-01", "lease_end_date": "2026-12-31"}
REPLAY = "X-Idempotent-Replay"


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Residencies")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    units = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in range(4)]
    company.import_rows("units", units)
    return company


@pytest.fixture(scope="module")
def units(company: Company) -> dict[str, int]:
    return {unit["external_id"]: unit["entity_id"] for unit in company.walk("/units")}


def move_in(company: Company, unit_id: int, key: str, **more: Any) -> Answer:
    body = {**LEASE, "provider": " AppFolio ", "parties": [GUS, ANA], **more}
    return company.system.post(f"/units/{unit_id}/move-in", company.keys["write"], body, key)


def notice(company: Company, unit_id: int, key: str, **more: Any) -> Answer:
    body = {"move_out_date": "2999-03-31", "provider": "appfolio", **more}
    return company.system.post(f"/units/{unit_id}/notice", company.keys["write"], body, key)


def shows(company: Company, unit_id: int, status: str) -> None:
    """Waits until GET /units/{id} has the status."""
    took(f"GET /units/ID shows {status}", company.shows(unit_id, status))


def turn(company: Company, turn_id: int) -> Answer:
    return company.system.get(f"/turns/{turn_id}", company.keys["read"])


def test_a_unit_is_handed_from_one_resident_to_the_next(
    system: System, company: Company, units: dict[str, int], receiver: Receiver
) -> None:
    unit_id = units["U0"]
    subscription = subscribe(company, "/residencies", ["turn.status_changed"])
    gets, answers = [], []

    came = move_in(company, unit_id, "came", external_id="R-1")
    assert came.status == 201 and REPLAY not in came.headers
    first = came.json["entity_id"]
    assert came.json["occupancy_source"] == "appfolio" and came.json["status"] == "active"
    assert [party["first_name"] for party in came.json["parties"]] == ["Ana", "Gus"]
    assert came.json["lease"]["lease_type"] == "fixed_term"
    (listed,) = company.walk("/turns", unit_id=unit_id)
    assert listed["entity_id"] == first and listed["status"] == "Active" and listed["external_id"] == "R-1"
    gets.append(turn(company, first))
    assert gets[0].json == listed
    shows(company, unit_id, "Occupied")

    early = move_in(company, unit_id, "early")
    assert (early.status, early.code) == (422, "invalid_request")

    leaves = notice(company, unit_id, "leaves", external_id="N-1", ntv_reason_code="JOB")
    assert leaves.status == 201 and leaves.json["external_id"] == "N-1"
    assert leaves.json["lease"] is None and leaves.json["parties"] == []
    assert (leaves.json["entity_id"], leaves.json["move_out_date"]) == (first, "2999-03-31")
    gets.append(turn(company, first))
    assert gets[1].json["move_out_date"] == "2999-03-31" and gets[1].json["external_id"] == "R-1"
    shows(company, unit_id, "Notice")

    later = notice(company, unit_id, "later", move_out_date="2999-04-30")
    assert later.json["entity_id"] == first and later.json["move_out_date"] == "2999-04-30"

    follows = move_in(company, unit_id, "follows", predecessor_transition_id=first, lease_end_date=None)
    assert follows.status == 201 and follows.json["lease"]["lease_type"] == "month_to_month"
    second = follows.json["entity_id"]
    gets.append(turn(company, second))
    assert [(turn["entity_id"], turn["status"]) for turn in company.walk("/turns", unit_id=unit_id)] == [
        (first, "Completed"),
        (second, "Active"),
    ]
    assert turn(company, first).json["move_out_date"] == "2999-04-30"
    shows(company, unit_id, "Occupied")

    answers = [came, leaves, follows]
    again = [
        move_in(company, unit_id, "came", external_id="R-1"),
        notice(company, unit_id, "leaves", external_id="N-1", ntv_reason_code="JOB"),
        move_in(company, unit_id, "follows", predecessor_transition_id=first, lease_end_date=None),
    ]
    for answer, repeated in zip(answers, again, strict=True):
        assert (repeated.status, repeated.body, repeated.headers[REPLAY]) == (201, answer.body, "1")

    swept = system.makeready("sweep", "webhooks")
    assert swept["failed"] == 0
    deliveries = sorted(receiver.at("/residencies"), key=lambda delivery: str(delivery.json["occurred_at"]))
    assert [delivery.json["change"] for delivery in deliveries] == [
        {"field": "unit_status", "from": None, "to": "Occupied"},
        {"field": "unit_status", "from": "Occupied", "to": "Notice"},
        {"field": "unit_status", "from": "Notice", "to": "Occupied"},
    ]
    for delivery, got, answer in zip(deliveries, gets, answers, strict=True):
        assert delivery.is_signed_with(subscription["secret"]) and list(delivery.json) == ENVELOPE
        assert delivery.json["event"] == "turn.status_changed"
        check_same_as_get(delivery.body, got.body)
        assert delivery.json["occurred_at"] == answer.json["occupancy_fed_at"] == got.json["updated_at"]
        assert delivery.headers["x-request-id"] == answer.headers["X-Request-Id"]
    seen = [answer.body for answer in (*answers, *again, *gets, early)] + [answer.body for answer in deliveries]
    logs = "".join(file.read_text() for file in (system.state / "logs").glob("*.log"))
    for private in (MAIL, PHONE):
        assert all(private.encode() not in body for body in seen) and private not in logs


def state(company: Company, unit_id: int) -> tuple[str | None, str | None]:
    unit = company.system.get(f"/units/{unit_id}", company.keys["read"]).json
    (listed,) = [unit for unit in company.walk("/units") if unit["entity_id"] == unit_id]
    assert listed == unit
    return unit["unit_status"], unit["projected_ready_on"]


def taken(system: System) -> float:
    """How many writes svc-catalog has heard of before they were answered."""
    with urllib.request.urlopen(f"http://{system.runtime['processes']['svc-occupancy']['metrics']}/metrics") as page:
        (line,) = re.findall(r'^makeready_handovers_total\{outcome="taken"\} (.*)$', page.read().decode(), re.MULTILINE)
    return float(line)


@pytest.mark.parametrize("is_away", [False, True], ids=["NATS is there", "NATS hangs"])
def test_a_units_get_follows_a_notice_and_a_move_in_at_once(system: System, company: Company, is_away: bool) -> None:
    """Without waiting: the write's answer is the sign that every read shows it. On a slow machine svc-catalog may not
    hear of a write in time; such a write shows nothing here."""
    name = f"At once {is_away}"
    company.import_rows("units", [{"external_id": name, "property": "P1", "name": name}])
    (unit_id,) = [unit["entity_id"] for unit in company.walk("/units") if unit["external_id"] == name]
    turn_id = move_in(company, unit_id, f"{name} first").json["entity_id"]
    shows(company, unit_id, "Occupied")
    followed = 0

    def follows(write: Callable[[], Answer], status: str) -> Answer:
        nonlocal followed
        before, answer = taken(system), write()
        assert answer.status == 201
        if taken(system) > before:
            assert state(company, unit_id) == (status, None)
            feed = system.get("/changes/units", company.keys["read"], cursor=cursor).json["data"]
            assert [change["record"]["unit_status"] for change in feed if change["entity_id"] == unit_id] == [status]
            followed += 1
        return answer

    with hanging(system, "nats") if is_away else contextlib.nullcontext():
        cursor = system.get("/snapshots/units", company.keys["read"]).headers["Service-Resume-Cursor"]
        for number, pause in enumerate(pauses()):
            follows(lambda: notice(company, unit_id, f"{name} {number}"), "Notice")  # noqa: B023 - called now
            past = {"predecessor_transition_id": turn_id}
            came = follows(lambda: move_in(company, unit_id, f"{name} next {number}", **past), "Occupied")  # noqa: B023
            turn_id = came.json["entity_id"]
            if followed >= 6:
                break
            time.sleep(pause)
    assert followed >= 6


def test_a_write_does_not_fail_without_the_service_that_shows_units(system: System, company: Company) -> None:
    company.import_rows("units", [{"external_id": "Alone", "property": "P1", "name": "Alone"}])
    (unit_id,) = [unit["entity_id"] for unit in company.walk("/units") if unit["external_id"] == "Alone"]
    assert move_in(company, unit_id, "alone").status == 201
    with hanging(system, "svc-catalog"):
        for number in range(5):
            started = time.monotonic()
            assert notice(company, unit_id, f"alone {number}", notes=str(number)).status == 201
            took("a notice while svc-catalog hangs", time.monotonic() - started)
    shows(company, unit_id, "Notice")


def test_a_new_unit_is_moved_into_while_nothing_replicates_and_heard_of_after(
    system: System, company: Company, receiver: Receiver
) -> None:
    subscribe(company, "/while-away", ["turn.status_changed"])
    with hanging(system, "nats"):
        company.import_rows("units", [{"external_id": "New", "property": "P1", "name": "New"}])
        (unit,) = [each for each in company.walk("/units") if each["external_id"] == "New"]
        started = time.monotonic()
        answer = move_in(company, unit["entity_id"], "new")
        took("a move-in while NATS hangs", time.monotonic() - started)
        assert answer.status == 201
        (listed,) = company.walk("/turns", unit_id=unit["entity_id"])
        assert listed["unit"]["name"] == "New"
    system.makeready("wait", "--timeout", "60")
    shows(company, unit["entity_id"], "Occupied")
    system.makeready("sweep", "webhooks")
    assert [delivery.json["data"]["entity_id"] for delivery in receiver.at("/while-away")] == [answer.json["entity_id"]]


def test_a_file_and_a_feed_describe_one_residency(company: Company, units: dict[str, int]) -> None:
    unit_id = units["U1"]
    company.import_rows("turns", [{"external_id": "F-1", "unit": "U1", "move_in_date": "2024-04-01"}])
    answer = notice(company, unit_id, "of a file", external_id="N-2", move_out_date="2020-01-31")
    (of_file,) = company.walk("/turns", unit_id=unit_id)
    assert answer.json["entity_id"] == of_file["entity_id"] and answer.json["move_in_date"] == "2024-04-01"
    assert (of_file["external_id"], of_file["source"]) == ("F-1", "import")
    # The move-out date has passed: no predecessor needs to be named.
    came = move_in(company, unit_id, "after a file", external_id="F-1")
    assert came.status == 201
    ended, opened = company.walk("/turns", unit_id=unit_id)
    assert (ended["status"], opened["status"], opened["source"]) == ("Completed", "Active", "api")
    row = {"external_id": "F-1", "unit": "U1", "move_in_date": "2024-04-01", "status": "Completed"}
    assert company.import_rows("turns", [row])["unchanged"] == 1


def test_a_file_fires_events_only_on_request(system: System, company: Company, receiver: Receiver) -> None:
    subscribe(company, "/of-files", ["turn.status_changed", "turn.schedule_changed"])
    row = {"external_id": "F-2", "unit": "U2", "move_in_date": "2024-04-01"}
    company.import_rows("turns", [row])
    leaves = {"move_out_date": "2999-01-31", "projected_ready_on": "2999-02-09"}
    company.import_rows("turns", [row | leaves], "--events")
    (turn,) = [each for each in company.walk("/turns") if each["external_id"] == "F-2"]
    system.makeready("sweep", "webhooks")
    # An event of the move-in before may be stored after the subscription was made, and is then delivered too.
    of_row = [delivery.json for delivery in receiver.at("/of-files") if delivery.json["data"]["external_id"] == "F-2"]
    by_event = {event["event"]: event for event in of_row}
    assert len(of_row) == len(by_event)
    assert {name: (event["change"]["from"], event["change"]["to"]) for name, event in by_event.items()} == {
        "turn.status_changed": ("Occupied", "Notice"),
        "turn.schedule_changed": (None, "2999-02-09"),
    }
    for event in by_event.values():
        assert event["data"] == turn
