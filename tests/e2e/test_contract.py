"""The document that the running system serves: the check of responses against it works, and other tools can read it."""

from __future__ import annotations

import copy
import json
from email.message import Message
from typing import Any

import pytest

from testkit.api_contract import Contract

from .system import System

TICKET_GET = ("GET", "/tickets/5021", 200)


@pytest.fixture(scope="module")
def contract(system: System) -> Contract:
    assert system.contract is not None
    return system.contract


@pytest.fixture
def ticket(contract: Contract) -> dict[str, Any]:
    (example,) = contract.document["components"]["schemas"]["Ticket"]["examples"]
    return copy.deepcopy(dict(example))


def headers(**more: str) -> Message:
    message = Message()
    fields = {
        "Content-Type": "application/json",
        "X-Request-Id": "1",
        "Cache-Control": "no-store",
        "RateLimit": '"key";r=119;t=60',
        "RateLimit-Policy": '"key";q=120;w=60',
    }
    for name, value in (fields | {name.replace("_", "-"): value for name, value in more.items()}).items():
        if value:
            message[name] = value
    return message


def raw(document: object) -> bytes:
    return json.dumps(document).encode()


def test_a_documented_response_passes(contract: Contract, ticket: dict[str, Any]) -> None:
    contract.check(*TICKET_GET, headers(), raw(ticket))


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "Lost"},
        {"status": None},
        {"ticket_number": "318"},
        {"created_at": "yesterday"},
        {"extra": 1},
        {"property": {"id": 1, "name": "x"}},
        {"property": {"name": "x", "id": 1, "external_id": None}},
        {"entity_type": "unit"},
        {"url": "tickets/1"},
    ],
    ids=str,
)
def test_a_body_that_is_not_as_published_fails(
    contract: Contract, ticket: dict[str, Any], changed: dict[str, Any]
) -> None:
    with pytest.raises(AssertionError):
        contract.check(*TICKET_GET, headers(), raw(ticket | changed))


def test_a_missing_or_misplaced_key_fails(contract: Contract, ticket: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        contract.check(*TICKET_GET, headers(), raw({name: ticket[name] for name in ticket if name != "room"}))
    with pytest.raises(AssertionError):
        contract.check(*TICKET_GET, headers(), raw(dict(reversed(ticket.items()))))


@pytest.mark.parametrize(
    "changed",
    [
        {"Cache_Control": ""},
        {"Cache_Control": "public"},
        {"X_Request_Id": ""},
        {"RateLimit": ""},
        {"Access_Control_Allow_Origin": "*"},
        {"Content_Type": "text/html"},
        {"Server": "x"},
    ],
    ids=str,
)
def test_headers_that_are_not_as_published_fail(
    contract: Contract, ticket: dict[str, Any], changed: dict[str, str]
) -> None:
    with pytest.raises(AssertionError):
        contract.check(*TICKET_GET, headers(**changed), raw(ticket))


def test_a_line_of_a_snapshot_that_is_not_as_published_fails(contract: Contract, ticket: dict[str, Any]) -> None:
    def check(*records: dict[str, Any], media_type: str = "application/x-ndjson", end: bytes = b"\n") -> None:
        body = b"\n".join(map(raw, records)) + end
        contract.check("GET", "/snapshots/tickets", 200, headers(Content_Type=media_type), body)

    check(ticket, ticket)
    for changed in ({"status": "Lost"}, {"extra": 1}, {"entity_type": "unit"}):
        with pytest.raises(AssertionError):
            check(ticket, ticket | changed)
    with pytest.raises(AssertionError):
        check(ticket, dict(reversed(ticket.items())))
    with pytest.raises(AssertionError):
        check(ticket, media_type="application/json")
    with pytest.raises(AssertionError):
        check(ticket, end=b"")


def test_each_event_of_a_page_is_checked_as_its_own_kind(contract: Contract) -> None:
    for item in contract.document["webhooks"].values():
        (example,) = item["post"]["requestBody"]["content"]["application/json"]["examples"].values()
        event = example["value"]
        page = {"data": [event], "positions": [1], "next_cursor": None, "resume_cursor": "x", "limit": 50}
        contract.check("GET", "/events", 200, headers(), raw(page))
        for wrong in (event | {"more": 1}, event | {"data": dict(reversed(event["data"].items()))}):
            with pytest.raises(AssertionError):
                contract.check("GET", "/events", 200, headers(), raw(page | {"data": [wrong]}))


def test_an_undocumented_status_or_code_fails(contract: Contract) -> None:
    def error(code: str) -> bytes:
        return raw({"error": {"code": code, "message": "Why."}})

    link = '</docs/api/errors#not_found>; rel="help"'
    contract.check("GET", "/tickets/1", 404, headers(Link=link), error("not_found"))
    with pytest.raises(AssertionError):
        contract.check("GET", "/tickets/1", 404, headers(Link=link), error("gone"))
    for status in (202, 409, 503):
        with pytest.raises(AssertionError):
            contract.check("GET", "/tickets/1", status, headers(Link=link), error("not_found"))
    with pytest.raises(AssertionError):
        contract.check("PUT", "/tickets", 404, headers(), error("not_found"))
    with pytest.raises(AssertionError):
        contract.check("GET", "/nothing", 200, headers(), b"{}")


def test_a_delivery_that_is_not_as_published_fails(contract: Contract) -> None:
    for item in contract.document["webhooks"].values():
        content = item["post"]["requestBody"]["content"]["application/json"]
        (example,) = content["examples"].values()
        contract.check_delivery(raw(example["value"]))
        changes: tuple[dict[str, Any], ...] = (
            {"schema_version": 2},
            {"change": {"field": "x", "from": 1, "to": 2}},
            {"data": {}},
            {"more": 1},
        )
        for changed in changes:
            with pytest.raises(AssertionError):
                contract.check_delivery(raw(example["value"] | changed))


def test_a_body_is_sound_of_its_own_operation_alone(contract: Contract, ticket: dict[str, Any]) -> None:
    """A body that was checked is not checked again: where another schema holds, it is."""
    contract.check(*TICKET_GET, headers(), raw(ticket))
    contract.check(*TICKET_GET, headers(), raw(ticket))
    with pytest.raises(AssertionError):
        contract.check("GET", "/units/17", 200, headers(), raw(ticket))
    with pytest.raises(AssertionError):
        contract.check(*TICKET_GET, headers(), raw(ticket | {"extra": 1}))
