"""What is stored of a body: what the contract knows, without anything that may say who somebody is."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import pytest

from gateway.http import logged_bodies
from gateway.http.logged_bodies import BYTES_MAX, NO_JSON, READ_BYTES_MAX, TOO_LONG, LoggedBodies
from gateway.http.routes import OPERATIONS, operation_at

BODIES = LoggedBodies(
    (resources.files("gateway") / "pages" / "openapi.json").read_bytes(), lambda text: f"~{len(text)}"
)
MOVE_IN = operation_at("POST", "/units/{unit_id}/move-in")
CREATE = operation_at("POST", "/tickets")
REDACTED = "[redacted string]"
ANA = {"first_name": "Ana", "last_name": "Ortiz", "email": "ana@x.test", "phone": "555 0100", "role": "leaseholder"}
LEASE = {"move_in_date": "2026-10-01", "lease_start_date": "2026-10-01", "provider": "feed"}


def sent(body: Any, operation: Any = MOVE_IN) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return json.loads(BODIES.request(operation, raw) or "null")


def test_names_and_contacts_of_parties_are_redacted_and_the_rest_stands_as_it_was_sent() -> None:
    party = dict.fromkeys(("first_name", "last_name", "email", "phone"), REDACTED) | {"role": "leaseholder"}
    assert sent(LEASE | {"parties": [ANA, ANA]}) == LEASE | {"parties": [party, party]}
    ticket = {"unit_id": 17, "title": "Call Ana: 555 0100", "category": "Plumbing", "priority": "High"}
    assert sent(ticket, CREATE) == ticket | {"title": REDACTED}


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ({"ana@x.test": 1}, {"~10": "[redacted integer]"}),
        ({"provider": "ana@x.test" * 5}, {"provider": REDACTED}),
        ({"provider": ["ana@x.test"]}, {"provider": "[redacted array]"}),
        ({"provider": {"ana@x.test": 1}}, {"provider": "[redacted object]"}),
        ({"move_in_date": "ana@x.test"}, {"move_in_date": REDACTED}),
        ({"move_in_date": "2026-10-01 ana"}, {"move_in_date": REDACTED}),
        ({"parties": "ana@x.test"}, {"parties": REDACTED}),
        ({"parties": ["ana@x.test", 5550100]}, {"parties": [REDACTED, "[redacted integer]"]}),
        ({"parties": [{"role": "ana@x.test"}]}, {"parties": [{"role": REDACTED}]}),
        ({"parties": [{"phone": 5550100}]}, {"parties": [{"phone": "[redacted integer]"}]}),
        ({"parties": [{"phone": None}]}, {"parties": [{"phone": None}]}),
        ({"predecessor_transition_id": "5550100"}, {"predecessor_transition_id": REDACTED}),
        ({"external_id": "ana@x.test"}, {"external_id": REDACTED}),
        (["ana@x.test"], "[redacted array]"),
        ("ana@x.test", REDACTED),
    ],
)
def test_a_contact_where_the_contract_has_none_is_redacted(body: Any, stored: Any) -> None:
    assert sent(body) == stored


@pytest.mark.parametrize(
    "raw",
    [
        b"ana@x.test",
        b'{"provider": "\xff"}',
        b'{"provider": "ana',
        json.dumps(LEASE).encode("utf-16"),
        b"\0",
        b"[" * 90_000,
    ],
)
def test_of_what_is_no_json_nothing_is_stored(raw: bytes) -> None:
    assert BODIES.request(MOVE_IN, raw) in (NO_JSON, '"[redacted array]"')


def test_nul_is_stored_as_json_spells_it() -> None:
    assert BODIES.request(MOVE_IN, b'{"provider":"a\\u0000b"}') == '{"provider":"a\\u0000b"}'


def test_a_long_body_is_cut_and_a_longer_one_is_not_read() -> None:
    long = json.dumps({"subcategory": "é" * 100_000}, ensure_ascii=False).encode()
    stored = BODIES.answer(operation_at("GET", "/tickets/{ticket_id}"), 200, long)
    assert stored is not None and BYTES_MAX - 2 <= len(stored.encode()) <= BYTES_MAX
    page = json.dumps({"data": [{"entity_id": 1, "source": "api"}] * 5000, "next_cursor": None, "limit": 200}).encode()
    assert len(BODIES.answer(operation_at("GET", "/tickets"), 200, page) or "") <= BYTES_MAX
    assert BODIES.request(MOVE_IN, b" " * (READ_BYTES_MAX + 1)) == TOO_LONG
    assert BODIES.request(MOVE_IN, b"") is None


def test_the_answers_of_all_operations_in_the_document_keep_their_shape_and_lose_what_is_sensitive() -> None:
    """By the document's own examples."""
    document = json.loads((resources.files("gateway") / "pages" / "openapi.json").read_bytes())
    compared = 0
    for operation in OPERATIONS:
        responses = document["paths"][operation.route.path][operation.route.method.lower()]["responses"]
        for status, response in responses.items():
            examples = response.get("content", {}).get("application/json", {}).get("examples", {})
            for example in examples.values():
                value = example["value"]
                stored = BODIES.answer(operation, int(status), json.dumps(value).encode())
                assert stored is not None
                if operation.scope == "public" and status == "200":
                    continue
                kept = json.loads(stored)
                assert shape(kept) == shape(value), (operation.route, status)
                assert not re.search(r'"(first_name|last_name|description|secret)":"(?!\[redacted)', stored)
                compared += 1
    assert compared > 200
    secret = {"entity_type": "webhook_subscription", "secret": "whsec_abc"}
    stored = BODIES.answer(operation_at("POST", "/webhooks"), 201, json.dumps(secret).encode()) or ""
    assert json.loads(stored) == secret | {"secret": REDACTED}


def shape(value: Any) -> Any:
    """The keys, with the types of values that are no strings."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value)


def test_every_value_of_an_event_may_be_of_any_of_its_records() -> None:
    events = operation_at("GET", "/events")
    data = {"entity_type": "ticket", "entity_id": 1, "title": "Ana is ill", "status": "Open", "sub_category": "Ana"}
    page = {"data": [{"event": "ticket.created", "data": data}], "positions": [1]}
    stored = json.loads(BODIES.answer(events, 200, json.dumps(page).encode()) or "")
    kept = stored["data"][0]["data"]
    assert kept["title"] == REDACTED and kept["status"] == "Open" and "Ana" not in json.dumps(stored)


def test_a_format_that_the_document_has_is_checked_or_takes_any_text() -> None:
    document = (resources.files("gateway") / "pages" / "openapi.json").read_text()
    formats = {*logged_bodies._FORMATS, "email", "uri", "int64", "double"}
    assert {text.split('"')[1] for text in document.split('"format": ')[1:]} <= formats
