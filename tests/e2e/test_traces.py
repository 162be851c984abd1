"""One trace from a request over the services, the event and every attempt to deliver it (W3C Trace Context)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .receiver import Receiver
from .system import Answer, Company, System

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]")


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    made = system.company("Traces")
    made.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    made.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    return made


def opened(company: Company, key: str, headers: dict[str, str]) -> Answer:
    """The reply to POST /tickets with these headers."""
    (unit,) = company.walk("/units")
    body = {"unit_id": unit["entity_id"], "title": f"Traced {key}", "category": "Plumbing"}
    return company.system.call("POST", "/tickets", company.key_for(), body, {"Idempotency-Key": key, **headers})


def subscribed(company: Company, path: str) -> dict[str, Any]:
    body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created"]}
    answer = company.system.post("/webhooks", company.keys["webhook_only"], body, f"traces {path}")
    assert answer.status == 201
    made: dict[str, Any] = answer.json
    return made


def test_the_trace_of_a_request_is_that_of_every_attempt_to_deliver_its_event(
    system: System, company: Company, receiver: Receiver
) -> None:
    subscription = subscribed(company, "/traced")
    sub_id = subscription["entity_id"]
    receiver.answers["/traced"] = [503]
    company.keep_key(3)
    reply = opened(company, "traced", {"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert reply.status == 201 and "traceparent" not in reply.headers
    # The replay of a request makes no event, so the trace of the first one stays.
    again = opened(company, "traced", {"traceparent": f"00-{TRACE[::-1]}-{PARENT}-01"})
    assert again.headers["X-Idempotent-Replay"] == "1"

    system.makeready("sweep", "webhooks")  # refused with 503
    (delivery,) = system.makeready("webhooks", "deliveries", str(sub_id))["deliveries"]
    system.makeready("webhooks", "attempt-now", delivery["event_id"], str(sub_id))
    attempts = receiver.at("/traced")
    found = [VALID.fullmatch(one.headers["traceparent"]) for one in attempts]
    assert len(found) == 2 and all(found), [one.headers for one in attempts]
    assert {one[1] for one in found if one} == {TRACE}
    assert len({PARENT, *(one[2] for one in found if one)}) == 3, "each attempt has a parent id of its own"
    assert all(one.headers["traceparent"].endswith("-00") for one in attempts), "the caller does not sample it"
    assert reply.body in attempts[0].body and attempts[0].body == attempts[1].body
    assert all(one.is_signed_with(subscription["secret"]) for one in attempts)


def test_every_log_line_has_a_trace_id(system: System) -> None:
    """After all of the above: those of requests, of sweeps, of starts."""
    logs = sorted((system.state / "logs").glob("*.log"))
    lines = [line for log in logs for line in log.read_text().splitlines() if line.startswith('{"')]
    assert len(lines) > 6
    assert not [line for line in lines if not re.search(r'"trace_id": "[0-9a-f]{32}"', line)]


def test_a_request_without_a_valid_header_begins_a_trace(system: System, company: Company, receiver: Receiver) -> None:
    subscribed(company, "/untraced")
    for number, given in enumerate(["", f"00-{TRACE.upper()}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01"]):
        reply = opened(company, f"untraced {number}", {"traceparent": given} if given else {})
        assert reply.status == 201
    system.makeready("sweep", "webhooks")
    found = [VALID.fullmatch(one.headers["traceparent"]) for one in receiver.at("/untraced")]
    assert len({one[1] for one in found if one} - {TRACE, TRACE.upper()}) == 3, "each is a trace of its own"
