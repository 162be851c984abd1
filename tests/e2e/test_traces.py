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
    company = system.company("Traces")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    return company


def opened(company: Company, key: str, headers: dict[str, str]) -> Answer:
    """The reply to POST /tickets with these headers."""
    (unit,) = company.walk("/units")
    body = {"unit_id": unit["entity_id"], "title": f"Traced {key}", "category": "Plumbing"}
    return company.system.call("POST", "/tickets", company.key_for(), body, {"Idempotency-Key": key, **headers})


def subscribed(company: Company, path: str) -> dict[str, Any]:
    body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created"]}
    answer = company.system.post("/webhooks", company.keys["webhook_only"], body, f"traces {path}")
    assert answer.status == 201
    subscription: dict[str, Any] = answer.json
    return subscription


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
    matches = [VALID.fullmatch(attempt.headers["traceparent"]) for attempt in attempts]
    assert len(matches) == 2 and all(matches), [attempt.headers for attempt in attempts]
    assert {match[1] for match in matches if match} == {TRACE}
    assert len({PARENT, *(match[2] for match in matches if match)}) == 3, "each attempt has a parent id of its own"
    assert all(attempt.headers["traceparent"].endswith("-00") for attempt in attempts), "the caller does not sample it"
    assert reply.body in attempts[0].body and attempts[0].body == attempts[1].body
    assert all(attempt.is_signed_with(subscription["secret"]) for attempt in attempts)


def test_every_log_line_has_a_trace_id(system: System) -> None:
    """After all of the above: those of requests, of sweeps, of starts."""
    logs = sorted((system.state / "logs").glob("*.log"))
    lines = [line for log in logs for line in log.read_text().splitlines() if line.startswith('{"')]
    assert len(lines) > 6
    assert not [line for line in lines if not re.search(r'"trace_id": "[0-9a-f]{32}"', line)]


def test_a_request_without_a_valid_header_begins_a_trace(system: System, company: Company, receiver: Receiver) -> None:
    subscribed(company, "/untraced")
    for number, header in enumerate(["", f"00-{TRACE.upper()}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01"]):
        reply = opened(company, f"untraced {number}", {"traceparent": header} if header else {})
        assert reply.status == 201
    system.makeready("sweep", "webhooks")
    matches = [VALID.fullmatch(delivery.headers["traceparent"]) for delivery in receiver.at("/untraced")]
    assert len({match[1] for match in matches if match} - {TRACE, TRACE.upper()}) == 3, "each is a trace of its own"
