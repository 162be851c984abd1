"""Every write of the published document, full valid bodies of each, and a company to send bad ones to."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testkit.examples import examples
from testkit.patience import until

from .hostile_bodies import Body, Case, raw
from .system import Answer, Company, System

DOCUMENT = json.loads((Path(__file__).parents[2] / "gateway/gateway/pages/openapi.json").read_text())
"""The committed document; a test checks that the running system serves the same paths."""
WRITES = [
    f"{verb.upper()} {path}"
    for path, item in DOCUMENT["paths"].items()
    for verb, operation in item.items()
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", []))
]
SUCCESS = {
    write: next(int(status) for status in DOCUMENT["paths"][path][verb.lower()]["responses"] if status.startswith("2"))
    for write in WRITES
    for verb, path in [write.split()]
}
"""The status of each write's success."""
every_write = pytest.mark.parametrize("write", WRITES)
BATCH = 100
VACANT_UNITS = examples(1600)  # one for each batch of move-ins, and for each that succeeds: 330 in the profile `ci`
WORDS = "It was seen to at once"
DESTINATION = "https://receiver.test/hostile"

# Valid bodies of every write, with all fields that go together. A test fails if a write is missing here.
VALID: dict[str, Callable[[World], list[Body]]] = {
    "POST /tickets": lambda world: [
        {
            "unit_id": world.unit_id,
            "title": "A tap drips",
            "category": "Plumbing",
            "asset_id": world.asset_id,
            "description": "All night.",
            "priority": "High",
        }
    ],
    "PATCH /tickets/{ticket_id}": lambda _: [
        {"status": "Completed", "note": WORDS},
        {"status": "Cancelled", "cancellation_reason_code": "see_notes", "cancellation_notes": WORDS},
        {"status": "On Hold"},
    ],
    "POST /tickets/{ticket_id}/photos": lambda _: [{"photo_url": "https://photos.test/after.jpg"}],
    "PUT /tickets/{ticket_id}/assignment": lambda world: [
        {"assignee_id": world.staff_id, "vendor_id": world.vendor_id}
    ],
    "POST /tickets/{ticket_id}/comments": lambda _: [{"text": WORDS, "author": "vendor"}],
    "POST /meters/{meter_id}/readings": lambda _: [
        {
            "readings": [
                {
                    "period_start": "2026-01-01T00:00:00Z",
                    "period_end": "2026-02-01T00:00:00Z",
                    "consumption": 12.5,
                    "unit_of_measure": "m3",
                    "cost": 3,
                    "is_estimated": True,
                }
            ]
        }
    ],
    "POST /units/{unit_id}/notice": lambda _: [
        {
            # In the future: the hourly sweep vacates a unit whose date has passed, and the state would change.
            "move_out_date": "2986-09-30",
            "provider": "feed",
            "ntv_reason_code": "JOB",
            "departure_destination_code": "CITY",
            "notes": "Keys with the neighbour.",
            "external_id": "N-1",
        }
    ],
    "POST /units/{unit_id}/move-in": lambda _: [
        {
            "move_in_date": "2026-10-01",
            "lease_start_date": "2026-10-01",
            "lease_end_date": "2027-09-30",
            "provider": "feed",
            "external_id": "M-1",
            "parties": [
                {
                    "first_name": "Ana",
                    "last_name": "Ortiz",
                    "email": "ana@tenants.test",
                    "phone": "555 0100",
                    "role": "leaseholder",
                    "external_id": "T-1",
                },
                {"first_name": "Bo", "last_name": "Lind", "role": "guarantor"},
            ],
        }
    ],
    # Each to a subscription of its own: one gets 10 tests a minute, and one replay at a time.
    "POST /webhooks/{sub_id}/test": lambda _: [{}],
    "POST /webhooks/{sub_id}/replay": lambda _: [
        {"since": "2026-01-01T00:00:00Z", "until": "2986-01-01T00:00:00Z", "events": ["pm.stale"], "state": "parked"}
    ],
    "PUT /webhooks/{sub_id}/filter": lambda _: [
        {"property_ids": [1, 2], "categories": ["Leak", "HVAC"], "priorities": ["High"]}
    ],
    "POST /sandbox/triggers": lambda world: [{"event": "ticket.status_changed", "ticket_id": world.ticket_id}],
    "POST /sandbox/clock": lambda _: [{"advance_by": "PT0S"}, {"advance_to": None, "advance_by": "PT0S"}],
    "POST /webhooks": lambda _: [{"destination_url": DESTINATION, "events": ["pm.stale", "vendor.hold"]}],
}


@dataclass
class World:
    """A sandbox on a running system, with a record for every write."""

    system: System
    company: Company
    unit_id: int
    asset_id: int
    ticket_id: int
    occupied_unit_id: int
    staff_id: int
    vendor_id: int
    meter_id: int
    vacant: Iterator[int]
    once: Iterator[str] = field(default_factory=lambda: map("once {}".format, itertools.count(1)))
    """New Idempotency-Keys."""
    tried: Counter[str] = field(default_factory=Counter)
    """Bad requests by write, each refused and checked to have no effect."""
    answered: Counter[str] = field(default_factory=Counter)
    """Requests by write that may succeed or not, each checked to be no fault of the server."""

    @classmethod
    def of(cls, system: System) -> World:
        company = system.company("Hostile", "--sandbox")
        company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
        names = ["Open", "Occupied", *(f"Vacant {number}" for number in range(VACANT_UNITS))]
        company.import_rows("units", [{"external_id": name, "property": "P1", "name": name} for name in names])
        asset = {"external_id": "A1", "property": "P1", "name": "Boiler", "category": "HVAC", "make": "x", "model": "y"}
        company.import_rows("assets", [asset])
        ticket = {"external_id": "T1", "property": "P1", "unit": "Open", "title": "Cold", "category": "HVAC"}
        company.import_rows("tickets", [ticket])
        company.import_rows("turns", [{"external_id": "O1", "unit": "Occupied", "move_in_date": "2025-01-01"}])
        meter = {"external_id": "M1", "property": "P1", "name": "Main", "utility_type": "water"}
        company.import_rows("meters", [meter])
        company.import_rows("staff", [{"external_id": "S1", "name": "Ada Byrne"}])
        company.import_rows("vendors", [{"external_id": "V1", "name": "Ace", "legal_name": "Ace Inc."}])
        system.makeready("wait")
        units = {unit["external_id"]: unit["entity_id"] for unit in company.walk("/units")}
        (asset_record,) = company.walk("/assets")
        (ticket_record,) = company.walk("/tickets")
        (meter_record,) = company.walk("/meters")
        (member,), (vendor,) = company.walk("/staff"), company.walk("/vendors")
        vacant = iter([entity_id for name, entity_id in units.items() if name.startswith("Vacant")])
        return cls(
            system,
            company,
            units["Open"],
            asset_record["entity_id"],
            ticket_record["entity_id"],
            units["Occupied"],
            member["entity_id"],
            vendor["entity_id"],
            meter_record["entity_id"],
            vacant,
        )

    def end(self) -> None:
        """Deletes the subscriptions, so that sweeps of other tests deliver nothing to them."""
        for subscription in list(self.company.walk("/webhooks")):
            path = f"/webhooks/{subscription['entity_id']}"
            assert self.system.call("DELETE", path, self.key(1)).status == 204

    def key(self, requests: int) -> str:
        """A write key with rate limit left for this number of requests."""
        return self.company.key_for(requests)

    def path(self, write: str) -> str:
        """A path below the base URL where a valid body is accepted once."""
        path = write.partition(" ")[2]
        if path == "/sandbox/clock":  # one advance at a time is under way
            until(lambda: self.system.get(path, self.key(1)).json["status"] == "ready")
        unit_id = next(self.vacant) if path.endswith("/move-in") else self.occupied_unit_id
        if "{sub_id}" in path:
            path = path.replace("{sub_id}", str(self.subscribed()))
        path = path.replace("{meter_id}", str(self.meter_id))
        return path.replace("{ticket_id}", str(self.ticket_id)).replace("{unit_id}", str(unit_id))

    def subscribed(self) -> int:
        """A new subscription."""
        (body,) = self.bodies("POST /webhooks")
        answer = self.send("POST /webhooks", "/webhooks", self.key(1), raw(body), next(self.once))
        assert answer.status == 201, answer
        sub_id: int = answer.json["entity_id"]
        return sub_id

    def bodies(self, write: str) -> list[Body]:
        return copy.deepcopy(VALID[write](self))

    def send(self, write: str, path: str, key: str, body: bytes, idempotency_key: str, **headers: str) -> Answer:
        """Returns the answer, checked against the contract. Fails on a 5xx or 429."""
        sent = {"Idempotency-Key": idempotency_key} | {
            name.replace("_", "-"): header for name, header in headers.items()
        }
        answer = self.system.call(write.partition(" ")[0], path, key, body, sent)
        assert answer.status < 500 and answer.status != 429, (write, body[:200], answer)
        return answer

    def state(self, *paths: str) -> dict[str, Any]:
        """All records in the company's lists, without the fields of units that follow their turns with a delay. Feeds
        follow with a delay too, and hold nothing else. paths: of writes; with the deliveries of their subscriptions,
        among which are tests."""
        lists = [
            path
            for path, item in DOCUMENT["paths"].items()
            if "{" not in path
            and "cursor" in (names := {parameter["name"] for parameter in item.get("get", {}).get("parameters", [])})
            and "wait" not in names
        ]
        assert len(lists) > 8
        rows = {path: list(self.company.walk(path)) for path in lists}
        for unit in rows["/units"]:
            del unit["unit_status"], unit["projected_ready_on"]
        for path in {f"{path.rpartition('/')[0]}/deliveries" for path in paths if path.startswith("/webhooks/")}:
            rows[path] = self.system.get(path, self.key(1)).json["data"]
        return rows

    def refuses(self, write: str, body: Body, cases: Iterable[Case], expected: Callable[[str, Answer], bool]) -> None:
        """Sends each BATCH of the cases with one Idempotency-Key; each must be refused without effect. Then sends the
        valid `body` with the same keys; these must be first writes."""
        waiting = list(cases)
        if not waiting:
            return
        batches = [waiting[at : at + BATCH] for at in range(0, len(waiting), BATCH)]
        paths = [self.path(write) for _ in batches]  # some need a record of their own, which is no effect of a case
        before = self.state(*paths)
        wrong, firsts = [], []
        for batch, path in zip(batches, paths, strict=True):
            key, once = self.key(len(batch) + 1), next(self.once)
            firsts.append((path, key, once))
            for name, sent in batch:
                answer = self.send(write, path, key, sent, once)
                if answer.status < 400 or not expected(name, answer):
                    wrong.append((name, sent[:200], answer.status, answer.body[:200]))
            self.tried[write] += len(batch)
        assert not wrong, (len(wrong), wrong[:10])
        after = self.state(*paths)
        assert after == before, {path: [row for row in rows if row not in before[path]] for path, rows in after.items()}
        for path, key, once in firsts:
            self.path(write)  # waits until another may be sent
            accepted = self.send(write, path, key, raw(body), once)
            assert accepted.status == SUCCESS[write], accepted
            assert "X-Idempotent-Replay" not in accepted.headers


def is_400(name: str, answer: Answer) -> bool:
    """Whether the answer is a 400. An unknown key may also be a 422, as some writes answer it so; and a destination
    that holds NUL is one, as every other bad destination is."""
    if "NUL" in name and name.endswith("in a value") and answer.code == "invalid_destination_url":
        return answer.status == 422
    statuses = (400, 422) if "not known" in name else (400,)
    return answer.status in statuses and answer.code == "invalid_request"


def schema_of(write: str) -> Body:
    """The published schema of a write's body."""
    verb, path = write.split()
    schema: Body = DOCUMENT["paths"][path][verb.lower()]["requestBody"]["content"]["application/json"]["schema"]
    return resolved(schema)


def schema_at(write: str, path: Sequence[str | int]) -> Body:
    """The published schema of the value at this path of a body."""
    schema = schema_of(write)
    for step in path:
        schema = resolved(schema["items"] if isinstance(step, int) else schema["properties"][step])
    return schema


def resolved(schema: Body) -> Body:
    """The schema behind a reference or an anyOf with null. `null` in the result: whether null is allowed."""
    arms = [arm for arm in schema.get("anyOf", [schema]) if arm != {"type": "null"}]
    chosen: Body = arms[0]
    if "$ref" in chosen:
        chosen = resolved(DOCUMENT["components"]["schemas"][chosen["$ref"].rpartition("/")[2]])
    types = chosen.get("type", "string")
    types = [types] if isinstance(types, str) else types
    null = "null" in types or len(arms) < len(schema.get("anyOf", [schema]))
    (kind,) = [type_name for type_name in types if type_name != "null"]
    return chosen | {"type": kind, "null": null}
