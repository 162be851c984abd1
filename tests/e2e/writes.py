"""The writes of the API, each with bodies that it accepts and refuses. Several test modules share them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from testkit.patience import until

from .system import Answer, Company, System

UNITS = 120
NOBODYS = 9_000_000_000_000
Body = dict[str, Any]

_numbers = itertools.count(1)


@dataclass
class House:
    """A sandbox with units, half of them occupied; each unit is used by one write at most."""

    system: System
    company: Company
    vacant: list[int] = field(default_factory=list)
    occupied: list[int] = field(default_factory=list)
    staff_id: int = 0
    meter_id: int = 0

    def fill(self) -> None:
        """Imports its records."""
        names = [f"U{n}" for n in range(UNITS)]
        self.company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
        units = [{"external_id": name, "property": "P1", "name": f"Unit {name}"} for name in names]
        self.company.import_rows("units", units)
        turns = [
            {"external_id": f"T{name}", "unit": name, "move_in_date": "2025-02-01"} for name in names[: UNITS // 2]
        ]
        self.company.import_rows("turns", turns)
        meter = {"external_id": "M1", "property": "P1", "name": "Main", "utility_type": "water"}
        self.company.import_rows("meters", [meter])
        self.company.import_rows("staff", [{"external_id": "S1", "name": "Ada Byrne"}])
        self.system.makeready("wait")
        (member,) = self.company.walk("/staff")
        (meter_record,) = self.company.walk("/meters")
        self.staff_id, self.meter_id = member["entity_id"], meter_record["entity_id"]
        ids = {unit["external_id"]: unit["entity_id"] for unit in self.company.walk("/units")}
        self.occupied = [ids[name] for name in names[: UNITS // 2]]
        self.vacant = [ids[name] for name in names[UNITS // 2 :]]

    def key(self, scope: str = "write") -> str:
        """A key of the scope; a new one before the rate limit is reached."""
        return self.company.key_for(scope=scope)

    def another_key(self, scope: str = "write") -> str:
        return self.system.mint(self.company.company_id, scope, self.company.email)

    def subscribed(self) -> int:
        """The id of a new subscription. Its key is not one of the tests' own."""
        body = {"destination_url": f"https://receiver.test/retries/{next(_numbers)}", "events": ["pm.stale"]}
        answer = self.system.post("/webhooks", self.key("webhook_only"), body, f"for a delivery {next(_numbers)}")
        assert answer.status == 201, answer
        sub_id: int = answer.json["entity_id"]
        return sub_id

    def open_ticket(self) -> int:
        body = {"unit_id": self.vacant[0], "title": "A tap drips", "category": "Plumbing"}
        answer = self.system.post("/tickets", self.key(), body, f"for a change {next(_numbers)}")
        assert answer.status == 201, answer
        ticket_id: int = answer.json["entity_id"]
        return ticket_id


@dataclass(frozen=True)
class Target:
    """Path and body of one write, to a record that no write has used before."""

    path: str
    body: Body


@dataclass(frozen=True)
class Write:
    """One operation. name: as in the document, "POST /tickets". context: its service. status: of its success.

    others: changes to other valid bodies. malformed: a change that makes the body fail with 400. refused: a change that
    makes it fail with this status. unfit: a change that fails only because of the records.
    """

    name: str
    context: str
    status: int
    target: Callable[[House], Target]
    others: tuple[Body, ...]
    malformed: Body
    refused: tuple[int, Body]
    unfit: tuple[int, Body] | None = None

    @property
    def method(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def of_a_record(self) -> bool:
        """Whether the path contains an id."""
        return "{" in self.name

    @property
    def needs_administrator(self) -> bool:
        """Whether its API key must have one (spec 4.13): every write of records must, and no other."""
        return self.context not in ("gateway", "svc-webhooks") or self.name == "POST /sandbox/triggers"

    def send(
        self, house: House, target: Target, idempotency_key: str | None, key: str | None = None, body: object = None
    ) -> Answer:
        """body: replaces the target's body; bytes are sent raw."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        sent = target.body if body is None else body
        return house.system.call(self.method, target.path, key or house.key(), sent, headers)

    def path_of(self, entity_id: object) -> str:
        """The path with this id."""
        path = self.name.partition(" ")[2]
        before, _, after = path.partition("{")
        return f"{before}{entity_id}{after.partition('}')[2]}"


def new_key() -> str:
    """An unused Idempotency-Key."""
    return f"retry {next(_numbers)}"


def _ticket(house: House) -> Target:
    return Target(
        "/tickets", {"unit_id": house.vacant[0], "title": f"Fuite n° {next(_numbers)} 🚿", "category": "Leak"}
    )


def _status_change(house: House) -> Target:
    note = "Washer replaced / no more drips 🚿 today"
    return Target(f"/tickets/{house.open_ticket()}", {"status": "Completed", "note": note})


def _photo(house: House) -> Target:
    address = f"https://photos.test/{next(_numbers)}.jpg?of=a%20tap"
    return Target(f"/tickets/{house.open_ticket()}/photos", {"photo_url": address})


def _assignment(house: House) -> Target:
    return Target(f"/tickets/{house.open_ticket()}/assignment", {"assignee_id": house.staff_id})


def _comment(house: House) -> Target:
    text = f"Pièce commandée n° {next(_numbers)} 🚿"
    return Target(f"/tickets/{house.open_ticket()}/comments", {"text": text, "author": "resident"})


def _readings(house: House) -> Target:
    end = f"2026-01-01T00:00:{next(_numbers) % 60:02}Z"
    reading = {"period_start": "2025-12-01T00:00:00Z", "period_end": end, "consumption": 12.5, "unit_of_measure": "m³"}
    return Target(f"/meters/{house.meter_id}/readings", {"readings": [reading]})


def _notice(house: House) -> Target:
    body = {"move_out_date": "2981-05-31", "provider": "Yardi", "notes": "Départ / 引っ越し", "external_id": "N1"}
    return Target(f"/units/{house.occupied.pop()}/notice", body)


def _move_in(house: House) -> Target:
    parties = [
        {"first_name": "Gus", "last_name": "Adé", "role": "guarantor"},
        {"first_name": "Zoë", "last_name": "Byrne", "role": "leaseholder", "email": "zoe@example.com", "phone": "1"},
    ]
    dates = {"move_in_date": "2026-02-01", "lease_start_date": "2026-02-01", "lease_end_date": "2027-01-31"}
    return Target(f"/units/{house.vacant.pop()}/move-in", {**dates, "provider": "Yardi", "parties": parties})


def _subscription(_house: House) -> Target:
    url = f"https://receiver.test/retries/{next(_numbers)}"
    return Target("/webhooks", {"destination_url": url, "events": ["vendor.hold", "pm.stale"]})


# Each to a subscription of its own: one gets 10 tests a minute, and one replay at a time.
def _test(house: House) -> Target:
    return Target(f"/webhooks/{house.subscribed()}/test", {})


def _replay(house: House) -> Target:
    body = {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z", "events": ["pm.stale"], "state": "all"}
    return Target(f"/webhooks/{house.subscribed()}/replay", body)


def _filter(house: House) -> Target:
    body = {"property_ids": [1, 2], "categories": ["Leak"], "priorities": ["High", "Emergency"]}
    return Target(f"/webhooks/{house.subscribed()}/filter", body)


def _trigger(house: House) -> Target:
    return Target("/sandbox/triggers", {"event": "ticket.status_changed", "ticket_id": house.open_ticket()})


def _advance(house: House) -> Target:
    """One advance at a time is under way."""
    until(lambda: house.system.get("/sandbox/clock", house.key()).json["status"] == "ready")
    return Target("/sandbox/clock", {"advance_by": f"PT0.{next(_numbers):06}S"})


TICKET = Write(
    "POST /tickets",
    "svc-tickets",
    201,
    _ticket,
    ({"title": "Another"}, {"priority": "High"}, {"priority": None}, {"unit_id": NOBODYS}),
    {"title": 5},
    (422, {"status": "Open"}),
)
STATUS_CHANGE = Write(
    "PATCH /tickets/{ticket_id}",
    "svc-tickets",
    200,
    _status_change,
    ({"note": "Washer replaced, nothing drips any more."}, {"status": "On Hold", "note": None}),
    {"status": 5},
    (422, {"status": "Lost"}),
)
PHOTO = Write(
    "POST /tickets/{ticket_id}/photos",
    "svc-tickets",
    201,
    _photo,
    ({"photo_url": "https://photos.test/another.jpg"}, {"photo_url": "http://photos.test/%F0%9F%9A%BF.jpg"}),
    {"photo_url": 5},
    (400, {"photo_url": "ftp://photos.test/1.jpg"}),
)
ASSIGNMENT = Write(
    "PUT /tickets/{ticket_id}/assignment",
    "svc-tickets",
    200,
    _assignment,
    ({"assignee_id": None}, {"assignee_id": NOBODYS}, {"vendor_id": NOBODYS}),
    {"assignee_id": "5"},
    (400, {"vendor_id": [5]}),
)
COMMENT = Write(
    "POST /tickets/{ticket_id}/comments",
    "svc-tickets",
    201,
    _comment,
    ({"text": "Another"}, {"author": "vendor"}, {"author": None}),
    {"text": 5},
    (422, {"author": "owner"}),
)
_LATER = {"period_start": "2026-02-01T00:00:00Z", "period_end": "2026-03-01T00:00:00Z", "consumption": 1}
READINGS = Write(
    "POST /meters/{meter_id}/readings",
    "svc-catalog",
    200,
    _readings,
    ({"readings": [_LATER]}, {"readings": [_LATER | {"cost": 3}]}),
    {"readings": []},
    (400, {"readings": [_LATER, _LATER]}),
)
NOTICE = Write(
    "POST /units/{unit_id}/notice",
    "svc-occupancy",
    201,
    _notice,
    ({"move_out_date": "2981-06-30"}, {"provider": "yardi"}, {"notes": None}),
    {"provider": "y" * 41},
    (400, {"move_out_date": "2981-02-30"}),
)
MOVE_IN = Write(
    "POST /units/{unit_id}/move-in",
    "svc-occupancy",
    201,
    _move_in,
    ({"move_in_date": "2026-02-02"}, {"external_id": "L1"}, {"predecessor_transition_id": NOBODYS}),
    {"parties": []},
    (422, {"lease_end_date": "2020-01-31"}),
    (422, {"predecessor_transition_id": NOBODYS}),
)
SUBSCRIPTION = Write(
    "POST /webhooks",
    "svc-webhooks",
    201,
    _subscription,
    ({"events": ["pm.stale"]}, {"destination_url": "https://receiver.test/elsewhere"}),
    {"destination_url": 5},
    (422, {"events": []}),
    (422, {"destination_url": "https://localhost/"}),
)
TEST = Write(
    "POST /webhooks/{sub_id}/test",
    "svc-webhooks",
    200,
    _test,
    (),
    {"event": 5},
    (400, {"event": "webhook.test"}),
)
REPLAY = Write(
    "POST /webhooks/{sub_id}/replay",
    "svc-webhooks",
    202,
    _replay,
    ({"since": "2026-01-02T00:00:00Z"}, {"until": None}, {"events": None}, {"state": "parked"}),
    {"since": 5},
    (422, {"state": "lost"}),
    (422, {"events": ["vendor.hold"]}),
)
FILTER = Write(
    "PUT /webhooks/{sub_id}/filter",
    "svc-webhooks",
    200,
    _filter,
    ({"property_ids": [2]}, {"categories": None}, {"priorities": ["Low"]}),
    {"property_ids": 5},
    (422, {"priorities": ["Urgent"]}),
    (422, {"categories": []}),
)
TRIGGER = Write(
    "POST /sandbox/triggers",
    "gateway",
    201,
    _trigger,
    ({"event": "ticket.stale"}, {"ticket_id": None}, {"ticket_id": NOBODYS}),
    {"event": 5},
    (422, {"event": "ticket.closed"}),
    (422, {"event": "ticket.stale"}),  # no resident filed it
)
ADVANCE = Write(
    "POST /sandbox/clock",
    "gateway",
    202,
    _advance,
    ({"advance_by": "PT0M"}, {"advance_by": None, "advance_to": "2986-01-01T00:00:00Z"}),
    {"advance_by": 5},
    (400, {"advance_by": "P1M"}),
    (422, {"advance_by": "P401D"}),
)
ALL = (
    TICKET,
    STATUS_CHANGE,
    PHOTO,
    ASSIGNMENT,
    COMMENT,
    READINGS,
    NOTICE,
    MOVE_IN,
    SUBSCRIPTION,
    TEST,
    REPLAY,
    FILTER,
    TRIGGER,
    ADVANCE,
)
WRITES = {write.name: write for write in ALL}


def respelled(body: Body) -> list[bytes]:
    """The same JSON in other bytes."""
    backwards = _backwards(body)
    plain = json.dumps(body, ensure_ascii=False).encode()
    return [
        json.dumps(body, indent=3).encode(),
        json.dumps(backwards, separators=(",", ":"), ensure_ascii=False).encode(),
        b" \t\r\n" + plain + b"\n ",
        plain.replace(b"/", b"\\/"),
        _escaped(body).encode(),
    ]


def _backwards(document: Any) -> Any:
    """The same JSON with the keys of every object reversed."""
    if isinstance(document, dict):
        return {name: _backwards(document[name]) for name in reversed(document)}
    return [_backwards(member) for member in document] if isinstance(document, list) else document


def _escaped(document: Any) -> str:
    """JSON with every character of every text escaped."""
    if isinstance(document, str):
        units = document.encode("utf-16-be").hex()
        return '"' + "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) + '"'
    if isinstance(document, dict):
        return "{" + ",".join(f"{_escaped(name)}:{_escaped(member)}" for name, member in document.items()) + "}"
    if isinstance(document, list):
        return "[" + ",".join(_escaped(member) for member in document) + "]"
    return json.dumps(document)
