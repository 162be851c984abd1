"""Provokes every row of the error table (spec 7) over HTTP. A documented code without a case here fails.

`System.call` checks each answer against the document.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from testkit.prepared import prepare_state

from .system import Answer, Company, System
from .test_outages import hanging


@dataclass
class House:
    """A company with a unit, and a system without a vault."""

    system: System
    company: Company
    units: dict[str, int]
    ticket_id: int
    without_vault: System

    @property
    def unit_id(self) -> int:
        return self.units["vacant"]

    def get(self, path: str, **query: object) -> Answer:
        return self.system.get(path, self.company.keys["read"], **query)

    def create(self, idempotency_key: str | None, key: str | None = None, **changed: object) -> Answer:
        body = {"unit_id": self.unit_id, "title": "A tap drips", "category": "Plumbing"} | changed
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self.system.call("POST", "/tickets", key or self.company.keys["write"], body, headers)

    def change(self, idempotency_key: str = "change", **body: object) -> Answer:
        """Changes a ticket that has no photo."""
        headers = {"Idempotency-Key": idempotency_key}
        return self.system.call("PATCH", f"/tickets/{self.ticket_id}", self.company.keys["write"], body, headers)

    def notice(self, unit: str = "occupied", idempotency_key: str = "notice", **changed: object) -> Answer:
        body = {"move_out_date": "2986-09-30", "provider": "feed"} | changed
        return self.system.post(f"/units/{self.units[unit]}/notice", self.company.keys["write"], body, idempotency_key)

    def move_in(self, unit: str = "vacant", **changed: object) -> Answer:
        dates = {"move_in_date": "2026-10-01", "lease_start_date": "2026-10-01", "lease_end_date": "2027-09-30"}
        body = dates | {"provider": "feed", "parties": [ANA]} | changed
        return self.system.post(f"/units/{self.units[unit]}/move-in", self.company.keys["write"], body, "move-in")

    def subscribe(self, **body: object) -> Answer:
        return self.system.post("/webhooks", self.company.keys["webhook_only"], body, f"row {sorted(body)}")


@pytest.fixture(scope="module")
def house(system: System, states: Path) -> Iterator[House]:
    company = system.company("Every error")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    units = [{"external_id": name, "property": "P1", "name": name} for name in ("vacant", "occupied", "leaving")]
    company.import_rows("units", units)
    turns = [{"external_id": unit, "unit": unit, "move_in_date": "2025-01-01"} for unit in ("occupied", "leaving")]
    company.import_rows("turns", turns)
    ticket = {"external_id": "T1", "property": "P1", "unit": "vacant", "title": "Cold", "category": "HVAC"}
    company.import_rows("tickets", [ticket])
    system.makeready("wait")
    (opened,) = company.walk("/tickets")
    prepare_state(states / "vaultless", demo=True)
    without_vault = System(states / "vaultless", WEBHOOKS_VAULT_KEYS="")
    without_vault.start()
    ids = {unit["external_id"]: unit["entity_id"] for unit in company.walk("/units")}
    yield House(system, company, ids, opened["entity_id"], without_vault)
    without_vault.stop()


def revoked(house: House) -> Answer:
    minted = house.system.makeready("key", "mint", str(house.company.company_id), "--scope", "read")
    house.system.makeready("key", "revoke", str(minted["key_id"]))
    return house.system.get("/tickets", minted["key"])


def inactive(house: House) -> Answer:
    company = house.system.company("Closed")
    house.system.makeready("company", "update", str(company.company_id), "--inactive")
    return house.system.get("/tickets", company.keys["read"])


def in_progress(house: House) -> Answer:
    """Sends the same notice eight times at once, until one finds another in progress. (Creates and changes of a ticket
    would not do: those at once share a statement, and all but one are replays.)"""
    for attempt in range(30):
        together = threading.Barrier(8)

        def one(key: str = f"at once {attempt}", together: threading.Barrier = together) -> Answer:
            together.wait(60)
            return house.notice("leaving", key)

        with ThreadPoolExecutor(8) as pool:
            answers = [future.result() for future in [pool.submit(one) for _ in range(8)]]
        assert {answer.status for answer in answers} <= {201, 409}
        assert len({answer.body for answer in answers if answer.status == 201}) == 1
        refused = [answer for answer in answers if answer.status == 409]
        if refused:
            return refused[0]
        house.company.keys["write"] = house.system.mint(house.company.company_id, "write", house.company.email)
    raise AssertionError("no two writes met")


def mismatch(house: House) -> Answer:
    assert house.create("once").status == 201
    return house.create("once", title="Another tap drips")


def too_many(house: House) -> Answer:
    key = house.system.mint(house.company.company_id, "read", house.company.email)
    for number in range(1000):  # on a slow machine more than 120, as places come back with time
        answer = house.system.get("/whoami", key)
        if answer.status != 200:
            assert number >= 120 and 0 < int(answer.headers["Retry-After"]) <= 60
            return answer
    raise AssertionError("1,000 requests of one key were answered")


def frozen(house: House) -> Answer:
    with hanging(house.system, "svc-tickets"):
        return house.get("/tickets")


def vaultless(house: House) -> Answer:
    key = house.without_vault.demo["keys"]["webhook_only"]
    # The vault is checked before the body.
    return house.without_vault.post("/webhooks", key, {"nonsense": 1}, "vault")


def restored(house: House) -> Answer:
    """Sends a cursor of one copy of the demo company to another copy, which has fewer events: as after a restore."""
    ahead = house.without_vault
    key = ahead.demo["keys"]["write"]
    unit = ahead.get("/units", key, limit=1).json["data"][0]
    body = {"unit_id": unit["entity_id"], "title": "A tap drips", "category": "Plumbing"}
    created = ahead.post("/tickets", key, body, "after the backup")
    assert created.status == 201
    ahead.makeready("wait")
    record = {"entity_type": "ticket", "entity_id": created.json["entity_id"]}
    page = ahead.get("/events", key, **record).json
    assert [event["event"] for event in page["data"]] == ["ticket.created"]
    assert ahead.get("/events", key, **record, cursor=page["resume_cursor"]).json["data"] == []
    return house.system.get("/events", house.system.demo["keys"]["write"], **record, cursor=page["resume_cursor"])


def busy(house: House) -> Answer:
    """Tests a receiver that never answers, so often at once that one test finds no place: a company holds 12 of a new
    receiver's 16 places, each for 10 s, and a test waits 15 s for one."""
    body = {"destination_url": "https://silent.test/", "events": ["pm.stale"]}
    key = house.company.key_for(40)
    subscriptions = [house.system.post("/webhooks", key, body, f"silent {number}") for number in range(3)]
    assert [answer.status for answer in subscriptions] == [201] * 3
    paths = [f"/webhooks/{answer.json['entity_id']}" for answer in subscriptions]

    def test(number: int) -> Answer:
        return house.system.post(f"{paths[number % 3]}/test", key, {}, f"test {number}")

    with ThreadPoolExecutor(26) as pool:
        answers = list(pool.map(test, range(26)))
    assert {house.system.call("DELETE", path, key).status for path in paths} == {204}
    assert {answer.json["state"] for answer in answers if answer.status == 200} == {"failed"}
    (*_, refused) = [answer for answer in answers if answer.status != 200]
    return refused


def advancing(house: House) -> Answer:
    """Advances a clock while an advance waits for a service that is away."""
    key = house.system.company("Advancing", "--sandbox").keys["write"]
    with hanging(house.system, "svc-occupancy"):
        begun = house.system.post("/sandbox/clock", key, {"advance_by": "P1D"}, "first")
        assert (begun.status, begun.json["status"]) == (202, "advancing")
        return house.system.post("/sandbox/clock", key, {"advance_by": "P1D"}, "second")


URL = "https://receiver.test/errors"
ROWS: dict[tuple[int, str], Callable[[House], Answer]] = {
    (400, "invalid_limit"): lambda house: house.get("/tickets", limit=0),
    (400, "invalid_cursor"): lambda house: house.get("/tickets", cursor="mine"),
    (400, "idempotency_key_required"): lambda house: house.create(None),
    (400, "invalid_request"): lambda house: house.get("/tickets", nonsense=1),
    (401, "unauthorized"): lambda house: house.system.get("/tickets"),
    (401, "key_revoked"): revoked,
    (403, "insufficient_scope"): lambda house: house.create("scope", house.company.keys["read"]),
    (403, "company_inactive"): inactive,
    (404, "not_found"): lambda house: house.get("/tickets/9223372036854775807"),
    (405, "method_not_allowed"): lambda house: house.system.call("PUT", "/tickets", house.company.keys["read"]),
    (409, "idempotency_in_progress"): in_progress,
    (409, "idempotency_mismatch"): mismatch,
    (409, "clock_advancing"): advancing,
    (410, "cursor_expired"): restored,
    (422, "invalid_request"): lambda house: house.get("/tickets", status="Lost"),
    (422, "created_by_missing"): lambda house: house.create(
        "nobody", house.system.mint(house.company.company_id, "write")
    ),
    (422, "invalid_destination_url"): lambda house: house.subscribe(
        destination_url="http://receiver.test/", events=["ticket.created"]
    ),
    (422, "events_empty"): lambda house: house.subscribe(destination_url=URL),
    (422, "events_unknown_key"): lambda house: house.subscribe(destination_url=URL, events=["ticket.exploded"]),
    (429, "rate_limited"): too_many,
    (500, "internal_error"): frozen,
    (503, "receiver_busy"): busy,
    (503, "vault_unavailable"): vaultless,
}


@pytest.mark.parametrize(("row", "provoke"), ROWS.items(), ids=[f"{status} {code}" for status, code in ROWS])
def test_a_row_of_the_error_table(house: House, row: tuple[int, str], provoke: Callable[[House], Answer]) -> None:
    answer = provoke(house)
    assert (answer.status, answer.code) == row
    assert list(answer.json) == ["error"] and list(answer.json["error"]) == ["code", "message"]
    message = answer.json["error"]["message"]
    assert message.endswith(".") and ". " not in message
    assert (answer.headers["WWW-Authenticate"] == "Bearer") == (answer.status == 401)
    assert ("Allow" in answer.headers) == (answer.status == 405)
    assert answer.headers["Link"] == f'</docs/api/errors#{answer.code}>; rel="help"'


def test_the_table_has_a_row_for_every_code_of_the_document(system: System) -> None:
    assert system.contract is not None
    assert set(ROWS) == set(system.contract.codes())


def without_photo(house: House) -> Answer:
    house.system.makeready("company", "update", str(house.company.company_id), "--photo-required")
    try:
        return house.change(status="Completed", note=FIVE_WORDS)
    finally:
        house.system.makeready("company", "update", str(house.company.company_id), "--no-photo-required")


ANA = {"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}
FIVE_WORDS, FOUR_WORDS = "The washer was replaced today", "The washer was replaced"
NOTES = {"status": "Cancelled", "cancellation_reason_code": "see_notes"}
# The other reasons for `invalid_request` in the table, as far as requests can cause them.
INVALID: dict[str, tuple[int, Callable[[House], Answer]]] = {
    "a key over 64 characters": (400, lambda house: house.create("k" * 65)),
    "an unknown key of a body": (400, lambda house: house.create("unknown", colour="red")),
    "a missing field": (400, lambda house: house.create("missing", title=None)),
    "a value of a wrong type": (400, lambda house: house.create("type", title=1)),
    "a text over its cap": (400, lambda house: house.create("cap", description="x" * 20_001)),
    "an unknown query key": (400, lambda house: house.get("/units", status="Occupied")),
    "a bad filter value": (400, lambda house: house.get("/tickets", property_id="P1")),
    "a timestamp without offset": (400, lambda house: house.get("/tickets", updated_since="2026-01-31T08:00:00")),
    "a ticket number without property": (400, lambda house: house.get("/tickets", ticket_number=1)),
    "a status outside its enum": (422, lambda house: house.get("/assets", status="Broken")),
    "a status in a ticket's body": (422, lambda house: house.create("status", status="Open")),
    "an unknown priority": (422, lambda house: house.create("priority", priority="Whenever")),
    "an unknown category": (422, lambda house: house.create("category", category="Gardening")),
    "a title over 150 characters": (422, lambda house: house.create("title", title="x" * 151)),
    "a change without a status": (400, lambda house: house.change(note=FIVE_WORDS)),
    "a change to no status": (422, lambda house: house.change(status="Lost")),
    "an extra key of a change": (422, lambda house: house.change(status="Open", colour="red")),
    "a note with another status": (422, lambda house: house.change(status="On Hold", note=FIVE_WORDS)),
    "a reason with another status": (
        422,
        lambda house: house.change(status="Open", cancellation_reason_code="duplicate_ticket"),
    ),
    "cancellation notes with another status": (
        422,
        lambda house: house.change(status="Open", cancellation_notes=FIVE_WORDS),
    ),
    "no closing note": (422, lambda house: house.change(status="Completed")),
    "a closing note of four words": (422, lambda house: house.change(status="Completed", note=FOUR_WORDS)),
    "no photo where one is required": (422, without_photo),
    "no cancellation reason": (422, lambda house: house.change(status="Cancelled")),
    "a reason outside its enum": (
        422,
        lambda house: house.change(status="Cancelled", cancellation_reason_code="bored"),
    ),
    "see_notes without notes": (422, lambda house: house.change(**NOTES)),
    "cancellation notes of four words": (422, lambda house: house.change(**NOTES, cancellation_notes=FOUR_WORDS)),
    "cancellation notes without see_notes": (
        400,
        lambda house: house.change(
            status="Cancelled", cancellation_reason_code="duplicate_ticket", cancellation_notes=FIVE_WORDS
        ),
    ),
    "a notice without provider": (400, lambda house: house.notice(provider=None)),
    "a notice's provider over 40 characters": (400, lambda house: house.notice(provider="x" * 41)),
    "a notice's external_id over 120 characters": (400, lambda house: house.notice(external_id="x" * 121)),
    "a notice's date that does not exist": (400, lambda house: house.notice(move_out_date="2026-02-30")),
    "a notice without a resident": (422, lambda house: house.notice("vacant")),
    "a move-in without provider": (400, lambda house: house.move_in(provider=" ")),
    "a move-in's external_id over 120 characters": (400, lambda house: house.move_in(external_id="x" * 121)),
    "a move-in without parties": (400, lambda house: house.move_in(parties=[])),
    "a move-in with 21 parties": (400, lambda house: house.move_in(parties=[ANA] * 21)),
    "a party's name over 80 characters": (
        400,
        lambda house: house.move_in(parties=[ANA, ANA | {"last_name": "x" * 81}]),
    ),
    "a party's e-mail address that is none": (400, lambda house: house.move_in(parties=[ANA | {"email": "ana"}])),
    "no named leaseholder": (422, lambda house: house.move_in(parties=[ANA | {"role": "guarantor"}])),
    "a party's role outside its enum": (422, lambda house: house.move_in(parties=[ANA, {"role": "cat"}])),
    "a lease that ends before it starts": (422, lambda house: house.move_in(lease_end_date="2026-09-30")),
    "a unit that is occupied": (422, lambda house: house.move_in("occupied")),
    "no such outgoing transition": (422, lambda house: house.move_in("occupied", predecessor_transition_id=1)),
}


@pytest.mark.parametrize(("status", "provoke"), INVALID.values(), ids=INVALID)
def test_a_reason_of_an_invalid_request(house: House, status: int, provoke: Callable[[House], Answer]) -> None:
    answer = provoke(house)
    assert (answer.status, answer.code) == (status, "invalid_request")


@pytest.mark.parametrize(
    ("refused", "param"),
    [
        (lambda house: house.create("param", title="x" * 151), "title"),
        (lambda house: house.create("param", title=None), "title"),
        (lambda house: house.create(None), None),
        (lambda house: house.create("param", **{"colour\r\nX-Mine: 1": 1}), None),
        (lambda house: house.move_in(parties=[ANA, ANA | {"email": "ana"}]), "parties[1].email"),
        (lambda house: house.change(status="On Hold", note=FIVE_WORDS), "note"),
        (lambda house: house.get("/tickets", property_id="P1"), "property_id"),
        (lambda house: house.get("/tickets", nonsense=1), None),
        (lambda house: house.subscribe(destination_url="http://a.test/", events=["pm.stale"]), "destination_url"),
    ],
)
def test_a_header_names_the_field_at_fault(house: House, refused: Callable[[House], Answer], param: str | None) -> None:
    answer = refused(house)
    assert answer.status in (400, 422)
    assert answer.headers["Service-Error-Param"] == param
