"""The output of `makeready webhooks …` for the answers of svc-webhooks: a real gRPC server with its contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from chassis.auth.clients import REFUSAL
from chassis.auth.identity import make_keys
from makeready.common.v1.documents_pb2 import Refusal
from makeready.identity.v1 import identity_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb
from testkit.grpc_servers import serve

from .conftest import Run

HOSTILE = '\x1b]0;owned\x07\x1b[2J\r\n"\u202e\x9b\ufffd' + "x" * 4000
PAGE_MAX = 200


def event_id(number: int) -> str:
    return f"019ab0c0-0000-7000-8000-{number:012x}"


def delivery(number: int, *attempts: pb.Attempt, **fields: Any) -> pb.Delivery:
    fields_shown: dict[str, Any] = {"event": "property.notice.published", "state": pb.DELIVERY_STATE_PARKED} | fields
    return pb.Delivery(event_id=event_id(number), sub_id=12345, attempts=attempts, **fields_shown)


def failed(number: int, **fields: Any) -> pb.Attempt:
    attempt: dict[str, Any] = {
        "error": "destination_refused",
        "state": pb.DELIVERY_STATE_PARKED,
        "cause": pb.ATTEMPT_CAUSE_SWEEP,
    } | fields
    return pb.Attempt(number=number, duration_milliseconds=10_000, **attempt)


class Webhooks:
    """Returns the test's answers, and pages as the service does."""

    def __init__(self) -> None:
        self.deliveries: list[pb.Delivery] = []  # oldest first
        self.asked: list[Any] = []
        self.refusals: dict[str, str] = {}
        self.event = pb.GetEventResponse()
        self.short_pages = False
        self.verdict = pb.SIGNATURE_VERDICT_STALE

    def ListDeliveries(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        before = request.before_event_id or "z"
        newest = [delivery for delivery in reversed(self.deliveries) if delivery.event_id < before]
        if self.short_pages:
            # One of them a page, and at the end an empty one.
            following = newest[0].event_id if newest else None
            return pb.ListDeliveriesResponse(deliveries=newest[:1], next_before_event_id=following)
        return pb.ListDeliveriesResponse(deliveries=newest[: min(request.limit, PAGE_MAX)])

    def ListUndelivered(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        later = [delivery for delivery in self.deliveries if delivery.event_id > request.after_event_id]
        size = min(request.limit, PAGE_MAX)
        return pb.ListUndeliveredResponse(deliveries=later[:size], more=len(later) > size)

    def RetryDelivery(self, request: Any, context: Any) -> Any:
        if sentence := self.refusals.get(request.event_id):
            refusal = Refusal(status=422, code="invalid_request", message=sentence).SerializeToString()
            context.set_trailing_metadata(((REFUSAL, refusal),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "invalid_request")
        (delivery,) = (each for each in self.deliveries if each.event_id == request.event_id)
        return pb.RetryDeliveryResponse(delivery=delivery)

    def RetryParked(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        return pb.RetryParkedResponse(deliveries=7)

    def CountDeliveries(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        counts = pb.CountDeliveriesResponse(deliveries=1400)
        for instant in (counts.first_made_at, counts.last_made_at, counts.first_expires_at):
            instant.FromSeconds(1792368000)
        return counts

    def GetRetryProgress(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        progress = pb.GetRetryProgressResponse(succeeded=10, failed=1, waiting=3)
        progress.next_sweep_at.FromSeconds(1792368000)
        return progress

    def AttemptNow(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        return pb.AttemptNowResponse(delivery=self.deliveries[0])

    def Resend(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        return pb.ResendResponse(delivery=self.deliveries[0])

    def CheckSignature(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        verdict = pb.CheckSignatureResponse(verdict=self.verdict, age_seconds=900, age_seconds_max=300)
        verdict.signed_at.FromSeconds(1)
        return verdict

    def GetEvent(self, request: Any, context: Any) -> Any:
        return self.event


class Companies:
    def ListCompanies(self, request: Any, context: Any) -> Any:
        return identity_pb2.ListCompaniesResponse(companies=[identity_pb2.Company(id=7)])


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[Webhooks]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    fake = Webhooks()
    serve(server, pb.DESCRIPTOR.services_by_name["DeliveriesService"], fake)
    serve(server, pb.DESCRIPTOR.services_by_name["AdministrationService"], fake)
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
    yield fake
    server.stop(None)


def answered(run: Run, *words: str, status: int = 0) -> Any:
    ended, out, err = run("--json", "webhooks", *words)
    assert ended == status, err
    return json.loads(out)


def test_deliveries_are_gathered_over_the_services_pages_up_to_the_limit(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(number) for number in range(450)]
    newest = [event_id(number) for number in reversed(range(450))]
    for limit, printed, more in (("200", 200, True), ("449", 449, True), ("450", 450, False), ("1000", 450, False)):
        answer = answered(run, "deliveries", "12345", "--limit", limit)
        assert [delivery["event_id"] for delivery in answer["deliveries"]] == newest[:printed]
        assert answer["next_before"] == (newest[printed - 1] if more else None)
    answered(run, "deliveries", "12345", "--state", "succeeded", "--before", newest[3])
    assert (webhooks.asked[-1].state, webhooks.asked[-1].before_event_id) == (pb.DELIVERY_STATE_SUCCEEDED, newest[203])


def test_all_that_is_parked_is_gathered_unless_a_limit_is_given(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(number, failed(6)) for number in range(450)]
    answer = answered(run, "parked", "7")
    assert [delivery["event_id"] for delivery in answer["deliveries"]] == [event_id(number) for number in range(450)]
    assert list(answer) == ["deliveries"]
    answer = answered(run, "parked", "7", "--limit", "250")
    assert (len(answer["deliveries"]), answer["more"]) == (250, True)
    assert "a larger --limit" in run("webhooks", "parked", "7", "--limit", "1")[1]
    assert "more" not in answered(run, "parked", "7", "--limit", "450")


def test_several_retries_go_on_after_one_that_is_refused(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(number, failed(7, cause=pb.ATTEMPT_CAUSE_RETRY)) for number in range(3)]
    webhooks.refusals[event_id(1)] = "Only a parked delivery is retried."
    words = ("retry", *(f"{event_id(number)}:12345" for number in (0, 1, 1, 2)))
    answer = answered(run, *words, status=1)
    assert [delivery["event_id"] for delivery in answer["deliveries"]] == [event_id(0), event_id(2)]
    reason = "Only a parked delivery is retried."
    assert answer["refused"] == [{"event_id": event_id(1), "sub_id": 12345, "reason": reason}]
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
    attempts = [
        failed(1, response_excerpt=HOSTILE, error=HOSTILE, address="\x1b[31m"),
        failed(2, response_excerpt="no"),
    ]
    webhooks.event = pb.GetEventResponse(
        event_id=event_id(0),
        event="ticket.created",
        request_id="\x1b[31m",
        body=b'{"x":"\x1b[31m\xff"}',
        deliveries=[delivery(0, *attempts, destination_url="https://e.test/\x1b[31m")],
    )
    status, out, _ = run("webhooks", "event", event_id(0), "--body")
    assert status == 0
    assert all(line.isprintable() for line in out.splitlines())
    (line,) = (line for line in out.splitlines() if "1 answered" in line)
    assert len(line) <= 100 and line.endswith('…"')
    status, out, _ = run("--json", "webhooks", "event", event_id(0), "--body")
    assert out.isascii() and out.rstrip("\n").isprintable()
    assert json.loads(out)["deliveries"][0]["attempts"][0]["response_excerpt"] == HOSTILE


def test_a_filtered_list_goes_on_after_a_short_page(run: Run, webhooks: Webhooks) -> None:
    webhooks.deliveries = [delivery(number) for number in range(3)]
    webhooks.short_pages = True
    answer = answered(run, "deliveries", "12345", "--event", "ticket.created", "--since", "2026-03-01T00:00:00Z")
    assert [delivery["event_id"] for delivery in answer["deliveries"]] == [event_id(number) for number in (2, 1, 0)]
    assert {request.event for request in webhooks.asked} == {"ticket.created"}
    assert {request.since.seconds for request in webhooks.asked} == {1772323200}
    assert [request.HasField("until") or request.HasField("entity_id") for request in webhooks.asked] == [False] * 4


def test_parked_deliveries_of_a_period_are_retried_once(run: Run, webhooks: Webhooks) -> None:
    words = ("retry", "--all-parked", "12345", "--event", "pm.stale", "--until", "2026-03-01T00:00:00Z")
    assert answered(run, *words) == {"sub_id": 12345, "due": 7}
    answered(run, "retry", "--all-parked", "12345")
    first, second = webhooks.asked
    assert (first.event, first.until.seconds, first.HasField("since")) == ("pm.stale", 1772323200, False)
    assert not second.HasField("event") and not second.HasField("until")
    assert first.idempotency_key and first.idempotency_key != second.idempotency_key
    status, _, err = run("webhooks", "retry", f"{event_id(0)}:12345", "--event", "pm.stale")
    assert status == 2 and "--all-parked" in err


def test_what_a_retry_concerns_is_counted_before_and_after(run: Run, webhooks: Webhooks) -> None:
    words = ("12345", "--state", "parked", "--event", "pm.stale", "--until", "2026-03-01T00:00:00Z")
    answer = answered(run, "count", *words)
    at = "2026-10-19T00:00:00.000000Z"
    instants = dict.fromkeys(("first_made_at", "last_made_at", "first_expires_at"), at)
    assert answer == {"sub_id": 12345, "deliveries": 1400} | instants
    (request,) = webhooks.asked
    assert (request.state, request.event, request.until.seconds) == (pb.DELIVERY_STATE_PARKED, "pm.stale", 1772323200)
    assert run("webhooks", "count", "12345")[1] == "1,400 deliveries. The first goes on 2026-10-19.\n"
    progress = ("retry-progress", "12345", "--since", "2026-03-01T00:00:00Z")
    assert answered(run, *progress) == {
        "sub_id": 12345, "succeeded": 10, "failed": 1, "waiting": 3, "next_sweep_at": at
    }  # fmt: skip
    assert webhooks.asked[-1].since.seconds == 1772323200
    assert f"3 wait for the next sweep at {at}" in run("webhooks", *progress)[1]


@pytest.mark.parametrize("verb", ["attempt-now", "resend"])
def test_an_act_says_how_its_attempt_ended(run: Run, webhooks: Webhooks, verb: str) -> None:
    webhooks.deliveries = [delivery(0, failed(2))]
    key = ("--idempotency-key", "again")
    answer = answered(run, verb, event_id(0), "12345", *key)
    assert answer["attempts"][-1]["number"] == 2
    assert webhooks.asked[-1].idempotency_key == "again"
    assert "attempt 2 ended with destination_refused" in run("webhooks", verb, event_id(0), "12345")[1]


def test_a_signature_is_checked_against_a_file(run: Run, webhooks: Webhooks, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_bytes(b'{"a":1}\n')
    words = ("check-signature", "12345", "--signature", "t=1,v1=0", "--body-file", str(body))
    answer = answered(run, *words, status=1)
    assert answer == {
        "verdict": "stale",
        "signed_at": "1970-01-01T00:00:01.000000Z",
        "age_seconds": 900,
        "event_id": None,
    }
    (request,) = webhooks.asked
    assert (request.sub_id, request.signature, request.body) == (12345, "t=1,v1=0", b'{"a":1}\n')
    assert "900 s ago; receivers refuse more than 300 s" in run("webhooks", *words)[1]
    webhooks.verdict = pb.SIGNATURE_VERDICT_GENUINE
    assert answered(run, *words)["verdict"] == "genuine"
    status, _, err = run("webhooks", *words[:-1], str(tmp_path / "none"))
    assert status == 1 and "No such file" in err
