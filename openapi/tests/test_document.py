"""The generated document: complete, valid, and with correct examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway.http.filters import Filter
from gateway.http.routes import OPERATIONS
from reference import document
from reference.errors import ERRORS
from reference.operations import _filter
from reference.words import FILTER_422, FILTER_EXAMPLES, FILTERS

DOCUMENT = document.made()
SCHEMAS = DOCUMENT["components"]["schemas"]


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        for verb, operation in item.items():
            yield f"{verb.upper()} {path}", operation


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The target of a reference."""
    while "$ref" in schema and set(schema) == {"$ref"}:
        here: Any = DOCUMENT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            here = here[part]
        schema = here
    return schema


@pytest.mark.parametrize(
    ("kind", "schema", "example"),
    [
        ({"labels": ("Open", "Done")}, {"type": "string", "enum": ["Open", "Done"]}, "Open"),
        ({"is_instant": True}, {"type": "string", "format": "date-time"}, "an example"),
        ({"is_boolean": True}, {"type": "boolean"}, "an example"),
        ({}, {"type": "integer"}, "an example"),
    ],
)
def test_a_filter_has_the_schema_of_its_kind(
    monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any], schema: dict[str, Any], example: str
) -> None:
    monkeypatch.setitem(FILTERS, "colour", "Only records of this colour.")
    monkeypatch.setitem(FILTER_EXAMPLES, "colour", "an example")
    filter_field = Filter("colour", str, "", **{"labels": (), **kind})
    assert _filter(filter_field) == {
        "name": "colour",
        "in": "query",
        "description": "Only records of this colour.",
        "schema": schema,
        "example": example,
    }


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body of the document: its place, its schema and examples."""
    for name, operation in [*operations(), *((key, item["post"]) for key, item in DOCUMENT["webhooks"].items())]:
        bodies = {"request": operation["requestBody"]} if "requestBody" in operation else {}
        for place, body in {**bodies, **operation["responses"]}.items():
            content = resolved(body).get("content", {})
            for media in content.values():
                yield f"{name} {place}", media


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(
        {"components": DOCUMENT["components"], **schema}, format_checker=Draft202012Validator.FORMAT_CHECKER
    )


# Spec 2.1, and what was added since.
ENTITY_TYPES = """ticket property unit asset vendor inspection turn utility_meter utility_reading occupancy staff
ticket_comment webhook_subscription webhook_filter webhook_delivery webhook_replay request""".split()


def test_the_introduction_lists_every_entity_type() -> None:
    listed = re.search(r"The types are ((?:`\w+`(?:, )?)+)\.", DOCUMENT["info"]["description"])
    assert listed is not None
    assert listed[1].replace("`", "").split(", ") == sorted(ENTITY_TYPES)


# Spec 5.4: a key of this scope opens these "only". The document's own `security` lets in any key.
WEBHOOK_ONLY = {"GET /whoami", "GET /webhooks", "POST /webhooks", "DELETE /webhooks/{sub_id}"}


def test_the_document_says_what_a_webhook_only_key_opens() -> None:
    opened = {
        name
        for name, operation in operations()
        for way in (operation if "security" in operation else DOCUMENT)["security"]
        if not way["bearer"] or "webhook_only" in way["bearer"]
    }
    assert opened == WEBHOOK_ONLY


def test_every_route_is_an_operation_and_no_other() -> None:
    assert [name for name, _ in operations()] == [
        f"{operation.route.method} {operation.route.path}" for operation in OPERATIONS
    ]
    ids = [operation["operationId"] for _, operation in operations()]
    assert len(set(ids)) == len(ids)


def test_all_schemas_are_json_schemas() -> None:
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def test_every_reference_leads_somewhere() -> None:
    def references(document: Any) -> Iterator[str]:
        if isinstance(document, dict):
            if "$ref" in document:
                yield document["$ref"]
            for member in document.values():
                yield from references(member)
        elif isinstance(document, list):
            for member in document:
                yield from references(member)

    for reference in set(references(DOCUMENT)):
        assert resolved({"$ref": reference}), reference


@pytest.mark.parametrize(("place", "content"), [*contents()], ids=[place for place, _ in contents()])
def test_every_body_has_examples_that_are_valid(place: str, content: dict[str, Any]) -> None:
    if place == "GET /openapi.json 200":
        return  # the document itself
    assert content["examples"]
    for example in content["examples"].values():
        validator(content["schema"]).validate(example["value"])


def test_a_snapshot_is_lines_of_the_records_that_its_list_has() -> None:
    """Its body is a text: a client that is generated from the schema of one record would read the whole as that."""
    snapshots = {name: operation for name, operation in operations() if name.startswith("GET /snapshots/")}
    assert len(snapshots) == 9
    for name, operation in snapshots.items():
        ((media_type, content),) = operation["responses"]["200"]["content"].items()
        schema = content["schema"]
        assert media_type == schema["contentMediaType"] == "application/x-ndjson" and schema["type"] == "string"
        (example,) = content["examples"].values()
        line, following = example["value"].split("\n")
        assert following == "", name
        record = json.loads(line)
        validator(schema["contentSchema"]).validate([record])
        reference = schema["contentSchema"]["items"]["$ref"]
        assert resolved({"$ref": reference})["properties"]["entity_type"]["const"] == record["entity_type"], name


@pytest.mark.parametrize(
    ("write", "noun"),
    [
        ("POST /tickets", "unit"),
        ("PATCH /tickets/{ticket_id}", "ticket"),
        ("POST /tickets/{ticket_id}/photos", "ticket"),
        ("POST /units/{unit_id}/notice", "unit"),
        ("POST /units/{unit_id}/move-in", "unit"),
    ],
)
def test_a_write_shows_the_answer_to_the_body_that_it_shows(write: str, noun: str) -> None:
    operation = dict(operations())[write]
    body = operation["requestBody"]["content"]["application/json"]["examples"]["body"]["value"]
    (answer,) = (
        response["content"]["application/json"]["examples"]["answer"]["value"]
        for status, response in operation["responses"].items()
        if status.startswith("2")
    )
    for name in answer.keys() & body.keys() - {"parties"}:
        assert answer[name] == body[name], name
    if write.endswith("notice"):
        assert (answer["lease"], answer["parties"]) == (None, [])
    elif "parties" in body:
        sent = [party.get("first_name") for party in body["parties"]]
        assert [party["first_name"] for party in answer["parties"]] == sent and answer["move_out_date"] is None
    refused = resolved(operation["responses"]["404"])["content"]["application/json"]["examples"]["not_found"]["value"]
    assert refused["error"]["message"].startswith(f"No {noun} with that id")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "string", "description": "The room where the work is, for example Dining room."}, "Dining room"),
        ({"type": ["integer", "null"], "description": "Rooms, for example 3; null if unknown."}, 3),
        ({"type": "number", "description": "Its size, for example 4.5, in metres."}, 4.5),
        ({"type": "boolean", "description": "Whether it is large, for example true."}, True),
    ],
)
def test_a_field_that_the_example_lacks_has_the_value_of_its_description(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: dict[str, Any], value: Any
) -> None:
    monkeypatch.setattr(document, "ROOT", tmp_path)
    monkeypatch.setattr(document, "EXAMPLES", tmp_path)
    (tmp_path / "Home.json").write_text('{"id": 7, "name": "Elm Court"}')
    properties = {"id": {}, "size": field, "name": {}}
    schemas = {"Home": {"properties": properties, "required": [*properties]}}
    example = document._example(schemas, "Home")
    assert list(example.items()) == [("id", 7), ("size", value), ("name", "Elm Court")]
    field["description"] = "Its size."
    with pytest.raises(ValueError, match=r"Home\.json lacks size"):
        document._example(schemas, "Home")


def test_records_hold_their_keys_in_order_and_examples_too() -> None:
    records = {name: schema for name, schema in SCHEMAS.items() if "entity_type" in schema.get("properties", {})}
    assert len(records) >= 6
    for name, schema in records.items():
        keys = list(schema["properties"])
        assert keys[:3] == ["schema_version", "entity_type", "entity_id"], name
        (example,) = schema["examples"]
        assert list(example) == keys, name
        validator({"$ref": f"#/components/schemas/{name}"}).validate(example)


def test_what_a_request_may_hold_is_closed_and_what_a_response_holds_is_open() -> None:
    bodies = set()
    for _, operation in operations():
        if "requestBody" in operation:
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            bodies.add(reference.rpartition("/")[2])
    assert bodies
    for name in list(bodies):
        for field in SCHEMAS[name]["properties"].values():
            held = field.get("items", field).get("$ref", "").rpartition("/")[2]
            if SCHEMAS.get(held, {}).get("type") == "object":
                bodies.add(held)
    assert "PartyCreate" in bodies
    for name, schema in SCHEMAS.items():
        assert ("additionalProperties" in schema) == (name in bodies), name
        if name in bodies:
            assert schema["additionalProperties"] is False
    ticket = SCHEMAS["Ticket"]["properties"]["status"]
    assert ticket["anyOf"] == [{"$ref": "#/components/schemas/TicketStatus"}, {"type": "string"}]
    create = SCHEMAS["TicketCreate"]["properties"]["category"]
    assert create["$ref"] == "#/components/schemas/TicketCategory"


def test_422_is_documented_on_the_lists_that_the_contract_names() -> None:
    lists = {
        f"GET {operation.route.path}": DOCUMENT["paths"][operation.route.path]["get"]
        for operation in OPERATIONS
        if operation.kind == "list"
    }
    assert {name for name, operation in lists.items() if "422" in operation["responses"]} == {
        f"GET {path}" for path in FILTER_422 if f"GET {path}" in lists
    }


def test_every_response_has_the_headers_that_the_edge_sends() -> None:
    for name, operation in operations():
        for status, response in operation["responses"].items():
            headers = resolved(response)["headers"]
            assert {"X-Request-Id", "Cache-Control"} <= set(headers), (name, status)
            assert ("WWW-Authenticate" in headers) == (status == "401")
            assert ("Allow" in headers) == (status == "405")
            assert ("Link" in headers) == (not status.startswith("2"))
            assert ("Retry-After" in headers) == (status == "429")
            assert ("RateLimit" in headers) == (status not in ("401", "405") and name != "GET /openapi.json")
            assert ("X-Idempotent-Replay" in headers) == (status.startswith("2") and "requestBody" in operation)


def test_every_code_of_the_error_table_stands_somewhere() -> None:
    statuses_by_code: dict[str, set[int]] = {}
    for _, operation in operations():
        for status, response in operation["responses"].items():
            for code in re.findall(r"`([a-z_]+)`", resolved(response)["description"].partition(". ")[0]):
                statuses_by_code.setdefault(code, set()).add(int(status))
    assert {code: tuple(sorted(statuses)) for code, statuses in statuses_by_code.items()} == {
        code: error.statuses for code, error in ERRORS.items()
    }


def test_everything_is_described() -> None:
    for name, schema in SCHEMAS.items():
        assert schema.get("description") or "enum" in schema, name
        for field, about in schema.get("properties", {}).items():
            assert about.get("description") or "$ref" in about, f"{name}.{field}"
    for name, operation in operations():
        assert operation["summary"] and operation["description"], name
        for parameter in operation.get("parameters", []):
            assert parameter["description"].endswith("."), (name, parameter["name"])
