"""Changes that break an integration are refused, additions to the contract are not."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from reference import document, gate

DOCUMENT = gate.bare(document.made())
Schema = dict[str, Any]
Change = Callable[[Schema], object]


def fields(document: Schema, name: str) -> Schema:
    properties: Schema = document["components"]["schemas"][name]["properties"]
    return properties


def operation(document: Schema, path: str, verb: str = "get") -> Schema:
    found_operation: Schema = document["paths"][path][verb]
    return found_operation


def parameter(document: Schema, path: str, name: str) -> Schema:
    listed: Schema
    (listed,) = [listed for listed in operation(document, path)["parameters"] if listed["name"] == name]
    return listed


BREAKING: dict[str, tuple[str, Change]] = {
    "a field removed": (r"GET /tickets 200\.data\[\]\.room: removed", lambda d: fields(d, "Ticket").pop("room")),
    "a field that may be absent": (
        "may be absent", lambda d: d["components"]["schemas"]["Ticket"]["required"].remove("room"),
    ),
    "a field retyped": (
        "retyped from integer or null to string",
        lambda d: fields(d, "Ticket").update(ticket_number={"type": "string"}),
    ),
    "a text that becomes an object": (
        "retyped", lambda d: fields(d, "Ticket").update(title={"$ref": "#/components/schemas/Reference"}),
    ),
    "a format changed": ("another format", lambda d: fields(d, "Ticket")["created_at"].update(format="date")),
    "a text newly nullable": (
        "title: newly nullable", lambda d: fields(d, "Ticket").update(title={"type": ["string", "null"]}),
    ),
    "an object newly nullable": (
        "property: newly nullable",
        lambda d: fields(d, "Ticket").update(property={"anyOf": [fields(d, "Ticket")["property"], {"type": "null"}]}),
    ),
    "an enum newly nullable": (
        "status: newly nullable", lambda d: fields(d, "Ticket")["status"]["anyOf"].append({"type": "null"}),
    ),
    "a nested field removed": ("external_id: removed", lambda d: fields(d, "Reference").pop("external_id")),
    "a type's name changed": ("another const", lambda d: fields(d, "Ticket")["entity_type"].update(const="job")),
    "items retyped": ("retyped", lambda d: fields(d, "TicketPage")["data"].update(items={"type": "string"})),
    "a schema renamed": (
        "Assignee: removed",
        lambda d: d.update(json.loads(json.dumps(d).replace("Assignee", "Person"))),
    ),
    "another media type": (
        "another media type",
        lambda d: operation(d, "/units")["responses"]["200"].update(
            content={"text/csv": operation(d, "/units")["responses"]["200"]["content"]["application/json"]}
        ),
    ),
    "a path removed": ("GET /units: removed", lambda d: d["paths"].pop("/units")),
    "a verb removed": ("POST /tickets: removed", lambda d: d["paths"]["/tickets"].pop("post")),
    "an operation renamed": ("operationId", lambda d: operation(d, "/units").update(operationId="units")),
    "another scope": ("another key", lambda d: operation(d, "/units").update(security=[{"bearer": ["write"]}])),
    "a filter removed": ("property_id removed", lambda d: operation(d, "/units")["parameters"].pop(0)),
    "a filter newly required": (
        "newly required", lambda d: parameter(d, "/units", "property_id").update(required=True),
    ),
    "a filter's value removed": (
        "values of its enum removed", lambda d: parameter(d, "/tickets", "status")["schema"]["enum"].remove("On Hold"),
    ),
    "a value of a body removed": (
        "values of its enum removed", lambda d: d["components"]["schemas"]["TicketCategory"]["enum"].remove("Pool"),
    ),
    "a lower cap": ("tighter maxLength", lambda d: fields(d, "TicketCreate")["title"].update(maxLength=100)),
    "a new bound": ("tighter maximum", lambda d: parameter(d, "/units", "limit")["schema"].update(maximum=200)),
    "a field newly required": (
        "priority: newly required", lambda d: d["components"]["schemas"]["TicketCreate"]["required"].append("priority"),
    ),
    "a field no longer taken": ("asset_id: removed", lambda d: fields(d, "TicketCreate").pop("asset_id")),
    "null no longer taken": ("retyped", lambda d: fields(d, "TicketCreate")["asset_id"].update(type="integer")),
    "a success removed": (
        "201 removed", lambda d: operation(d, "/tickets", "post")["responses"].pop("201"),
    ),
    "a header removed": (
        "X-Request-Id removed", lambda d: operation(d, "/units")["responses"]["200"]["headers"].pop("X-Request-Id"),
    ),
    "an event removed": ("event pm.stale: removed", lambda d: d["webhooks"].pop("pm.stale")),
    "an event's key removed": ("event.*occurred_at: removed", lambda d: fields(d, "PmStaleEvent").pop("occurred_at")),
}  # fmt: skip
ADDING: dict[str, Change] = {
    "nothing": lambda d: None,
    "a field": lambda d: fields(d, "Ticket").update(colour={"type": "string"}),
    "a field that is never null any more": lambda d: fields(d, "Ticket").update(description={"type": "string"}),
    "a value of a response's enum": lambda d: d["components"]["schemas"]["WebhookHealth"]["enum"].append("asleep"),
    "a value less in a response": lambda d: d["components"]["schemas"]["WebhookHealth"]["enum"].remove("paused"),
    "a value of a filter": lambda d: parameter(d, "/tickets", "status")["schema"]["enum"].append("Lost"),
    "a filter": lambda d: operation(d, "/units")["parameters"].append(
        {"name": "floor", "in": "query", "schema": {"type": "string"}}
    ),
    "a field that may be left out": lambda d: fields(d, "TicketCreate").update(room={"type": ["string", "null"]}),
    "a higher cap": lambda d: fields(d, "TicketCreate")["title"].update(maxLength=200),
    "a path": lambda d: d["paths"].update({"/leases": d["paths"]["/units"]}),
    "an event": lambda d: d["webhooks"].update({"unit.sold": d["webhooks"]["pm.stale"]}),
    "a code": lambda d: operation(d, "/units")["responses"].update({"410": {}}),
}


@pytest.mark.parametrize(("problem", "change"), BREAKING.values(), ids=BREAKING)
def test_it_refuses(problem: str, change: Change) -> None:
    changed = copy.deepcopy(DOCUMENT)
    change(changed)
    sentences = gate.problems(DOCUMENT, changed)
    assert any(re.search(problem, sentence) for sentence in sentences), sentences


@pytest.mark.parametrize("change", ADDING.values(), ids=ADDING)
def test_it_lets_pass(change: Change) -> None:
    changed = copy.deepcopy(DOCUMENT)
    change(changed)
    assert gate.problems(DOCUMENT, changed) == []


def test_what_a_release_keeps_has_no_words_and_every_field() -> None:
    whole, kept = document.made()["components"]["schemas"], DOCUMENT["components"]["schemas"]
    assert set(kept["Ticket"]["properties"]) == set(whole["Ticket"]["properties"])
    assert kept["Ticket"]["properties"]["description"] == {"type": ["string", "null"]}
    assert "description" not in kept["Ticket"]
