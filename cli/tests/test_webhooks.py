"""The output of `makeready webhooks …` for the answers of svc-webhooks: a real gRPC server with its contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.clients import REFUSAL
from chassis.auth.identity import make_keys
from makeready.common.v1.documents_pb2 import Refusal
from makeready.identity.v1 import identity_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb

from .conftest import Run

HOSTILE = '\x1b]0;owned\x07\x1b[2J\r\n"\u202e\x9b\ufffd' + "x" * 4000
PAGE_MAX = 200


def event_id(number: int) -> str:
    return f"019ab0c0-0000-7000-8000-{number:012x}"


def delivery(number: int, *attempts: pb.Attempt, **fields: Any) -> pb.Delivery:
    shown: dict[str, Any] = {"event": "property.notice.published", "state": pb.DELIVERY_STATE_PARKED} | fields
    return pb.Delivery(event_id=event_id(number), sub_id=12345, attempts=attempts, **shown)


def failed(number: int, **fields: Any) -> pb.Attempt:
    made: dict[str, Any] = {
        "error": "destination_refused",
        "state": pb.DELIVERY_STATE_PARKED,
        "cause": pb.ATTEMPT_CAUSE_SWEEP,
    } | fields
    return pb.Attempt(number=number, duration_milliseconds=10_000, **made)


class Webhooks:
    """Returns the test's answers, and pages as the service does."""

    def __init__(self) -> None:
        self.deliveries: list[pb.Delivery] = []  # oldest first
        self.asked: list[Any] = []
        self.refusals: dict[str, str] = {}
        self.event = pb.GetEventResponse()

    def ListDeliveries(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        before = request.before_event_id or "z"
        newest = [one for one in reversed(self.deliveries) if one.event_id < before]
        return pb.ListDeliveriesResponse(deliveries=newest[: min(request.limit, PAGE_MAX)])

    def ListUndelivered(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        rest = [one for one in self.deliveries if one.event_id > request.after_event_id]
        size = min(request.limit, PAGE_MAX)
        return pb.ListUndeliveredResponse(deliveries=rest[:size], more=len(rest) > size)

    def RetryDelivery(self, request: Any, context: Any) -> Any:
        if sentence := self.refusals.get(request.event_id):
            refusal = Refusal(status=422, code="invalid_request", message=sentence).SerializeToString()
            context.set_trailing_metadata(((REFUSAL, refusal),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "invalid_request")
        (found,) = (one for one in self.deliveries if one.event_id == request.event_id)
        return pb.RetryDeliveryResponse(delivery=found)

    def GetEvent(self, request: Any, context: Any) -> Any:
        return self.event


class Companies:
    def ListCompanies(self, request: Any, context: Any) -> Any:
        return identity_pb2.ListCompaniesResponse(companies=[identity_pb2.Company(id=7)])


def serve(server: grpc.Server, service: ServiceDescriptor, answers: object) -> None:
    """Serves the service's methods that `answers` has."""
    handlers = {
        rpc.name: grpc.unary_unary_rpc_method_handler(
            getattr(answers, rpc.name),
            request_deserializer=GetMessageClass(rpc.input_type).FromString,
            response_serializer=GetMessageClass(rpc.output_type).SerializeToString,
        )
        for rpc in service.methods
        if hasattr(answers, rpc.name)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[Webhooks]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    found = Webhooks()
    serve(server, pb.DESCRIPTOR.services_by_name["DeliveriesService"], found)
    serve(server, pb.DESCRIPTOR.services_by_name["AdministrationService"], found)
    serve(server, identity_pb2.DESCRIPTOR.services_by_name["CompaniesService"], Companies())
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    state = tmp_path / "state"
    make_keys(state / "identity", ["operator"])
    runtime = {
        "base_url": "http://127.0.0.1:1/api/v1",
        "admin_url": "http://127.0.0.1:2",
        "pid": 1,
        "operator_key_file": str(state / "identity" / "operator.jwk"),
        "processes": {name: {"pid": 1, "grpc": address} for name in ("gateway", "svc-webhooks")},
    }
    (state / "runtime.json").write_text(json.dumps(runtime))
    yield found
    server.stop(None)


def answered(run: Run, *words: str, status: int = 0) -> Any:
    ended, out, err = run("--json", "webhooks", *words)
    assert ended == status, err
    return json.loads(out)


def test_deliveries_are_gathered_over_the_services_pages_up_to_the_limit(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(number) for number in range(450)]
    newest = [event_id(number) for number in reversed(range(450))]
    for limit, shown, more in (("200", 200, True), ("449", 449, True), ("450", 450, False), ("1000", 450, False)):
        found = answered(run, "deliveries", "12345", "--limit", limit)
        assert [one["event_id"] for one in found["deliveries"]] == newest[:shown]
        assert found["next_before"] == (newest[shown - 1] if more else None)
    answered(run, "deliveries", "12345", "--state", "succeeded", "--before", newest[3])
    assert (webhooks.asked[-1].state, webhooks.asked[-1].before_event_id) == (pb.DELIVERY_STATE_SUCCEEDED, newest[203])


def test_all_that_is_parked_is_gathered_unless_a_limit_is_given(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(number, failed(6)) for number in range(450)]
    found = answered(run, "parked", "7")
    assert [one["event_id"] for one in found["deliveries"]] == [event_id(number) for number in range(450)]
    assert list(found) == ["deliveries"]
    found = answered(run, "parked", "7", "--limit", "250")
    assert (len(found["deliveries"]), found["more"]) == (250, True)
    assert "a larger --limit" in run("webhooks", "parked", "7", "--limit", "1")[1]
    assert "more" not in answered(run, "parked", "7", "--limit", "450")


def test_several_retries_go_on_after_one_that_is_refused(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(number, failed(7, cause=pb.ATTEMPT_CAUSE_RETRY)) for number in range(3)]
    webhooks.refusals[event_id(1)] = "Only a parked delivery is retried."
    words = ("retry", *(f"{event_id(number)}:12345" for number in (0, 1, 1, 2)))
    found = answered(run, *words, status=1)
    assert [one["event_id"] for one in found["deliveries"]] == [event_id(0), event_id(2)]
    reason = "Only a parked delivery is retried."
    assert found["refused"] == [{"event_id": event_id(1), "sub_id": 12345, "reason": reason}]
    status, out, _ = run("webhooks", *words)
    assert (status, out.count("\n"), out.count(reason)) == (1, 3, 1)
    assert "attempt 7 ended with destination_refused" in out
    status, out, err = run("webhooks", "retry", f"{event_id(1)}:12345")
    assert (status, out, err) == (1, "", f"makeready: {reason}\n")


def test_a_retry_that_something_holds_back_says_so(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(0, failed(6), state=pb.DELIVERY_STATE_WAITING, held_by="paused")]
    status, out, _ = run("webhooks", "retry", f"{event_id(0)}:12345")
    assert (status, out) == (0, f"{event_id(0)}:12345  waits for a later sweep: paused\n")


def test_tables_fit_into_100_columns_with_long_ids_and_names(run: Run, webhooks: Webhooks) -> None:
    errors = ("destination_refused", "disconnected", "certificate")
    webhooks.deliveries = [
        delivery(number, failed(7, error=error), event="ticket.status_changed") for number, error in enumerate(errors)
    ]
    webhooks.deliveries += [delivery(9, state=pb.DELIVERY_STATE_WAITING, held_by="company_inactive", event="pm.stale")]
    for words in (("deliveries", "12345"), ("parked", "7"), ("expiring", "7")):
        status, out, _ = run("webhooks", *words)
        assert (status, len(out.splitlines())) == (0, 5)
        assert max(map(len, out.splitlines())) <= 100, out


def test_nothing_of_a_receivers_reaches_a_terminal_raw_and_lines_stay_short(run: Run, webhooks: Webhooks) -> None:
    made = [failed(1, response_excerpt=HOSTILE, error=HOSTILE, address="\x1b[31m"), failed(2, response_excerpt="no")]
    webhooks.event = pb.GetEventResponse(
        event_id=event_id(0),
        event="ticket.created",
        request_id="\x1b[31m",
        body=b'{"x":"\x1b[31m\xff"}',
        deliveries=[delivery(0, *made, destination_url="https://e.test/\x1b[31m")],
    )
    status, out, _ = run("webhooks", "event", event_id(0), "--body")
    assert status == 0
    assert all(line.isprintable() for line in out.splitlines())
    (line,) = (line for line in out.splitlines() if "1 answered" in line)
    assert len(line) <= 100 and line.endswith('…"')
    status, out, _ = run("--json", "webhooks", "event", event_id(0), "--body")
    assert out.isascii() and out.rstrip("\n").isprintable()
    assert json.loads(out)["deliveries"][0]["attempts"][0]["response_excerpt"] == HOSTILE
