"""The envelope and its signature, byte for byte."""

import base64
import datetime
import json
import secrets
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from chassis.runtime import traces
from svc_webhooks.dispatch.signature import service_signature, signature_headers, standard_signature, traceparent_of
from svc_webhooks.events.envelope import envelope
from svc_webhooks.vault.keyring import new_secret

BODY = b'{"schema_version":1}'


def test_the_signature_of_a_known_body() -> None:
    # From `openssl dgst -sha256 -hmac whsec_test`; test_vectors.py has the published digests.
    digest = "b5d9ecb4fa52db124298f9b7f5c891b5abd711ce329e7a46e1f9e8c3c1f7d75f"
    assert service_signature("whsec_test", 1767225600, BODY) == f"t=1767225600,v1={digest}"


def encoded(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


@given(st.binary(min_size=32, max_size=32), st.uuids(), st.integers(0, 2**32), st.text())
def test_the_standard_signature_is_that_of_the_library(key: bytes, event_id: object, at: int, text: str) -> None:
    secret, when = encoded(key), datetime.datetime.fromtimestamp(at, datetime.UTC)
    body = text.encode("utf-8", "ignore")
    assert standard_signature(secret, str(event_id), at, body) == Webhook(secret).sign(
        str(event_id), when, body.decode()
    )


def test_a_new_secret_serves_both_schemes() -> None:
    for _ in range(200):  # every second secret of 32 random bytes has a character that base64 for URLs writes otherwise
        headers = signature_headers(new_secret(), "0198-x", 1767225600, BODY)
        assert list(headers) == ["Service-Signature", "webhook-id", "webhook-timestamp", "webhook-signature"]


@pytest.mark.parametrize(
    "secret",
    [
        "whsec_" + secrets.token_urlsafe(32),  # as earlier releases made them
        "whsec_" + "A" * 43,  # of that form too, although it has no character of URLs alone
        "whsec_",
        encoded(b"k" * 31),
        encoded(b"k" * 33),
        encoded(b"k" * 32) + "\n",
        encoded(b"k" * 32)[:-2] + "F=",  # bits behind the last byte: some libraries refuse them
        encoded(b"k" * 32).removeprefix("whsec_"),
    ],
)
def test_a_secret_of_another_form_signs_with_our_scheme_alone(secret: str) -> None:
    signature = service_signature(secret, 1767225600, BODY)
    assert signature_headers(secret, "0198-x", 1767225600, BODY) == {"Service-Signature": signature}


def test_the_envelope_has_its_seven_keys_in_order_and_the_data_byte_for_byte() -> None:
    data = '{"b": 1,"a":"\\u00e9","c":1.50,  "d":"é"}'.encode()
    sent = envelope(
        event_id="0198-x",
        event="ticket.status_changed",
        occurred_at="2026-01-01T00:00:00.000001Z",
        company_id=7,
        data=data,
        change=b'{"field":"status","from":"Open","to":"Completed"}',
    )
    assert sent == (
        b'{"schema_version":1,"event_id":"0198-x","event":"ticket.status_changed",'
        b'"occurred_at":"2026-01-01T00:00:00.000001Z","company_id":7,"data":' + data + b","
        b'"change":{"field":"status","from":"Open","to":"Completed"}}'
    )
    assert list(json.loads(sent)) == [
        "schema_version",
        "event_id",
        "event",
        "occurred_at",
        "company_id",
        "data",
        "change",
    ]


@given(st.dictionaries(st.text(), st.text()))
def test_an_empty_change_is_null_and_the_envelope_is_always_json(record: dict[str, str]) -> None:
    data = json.dumps(record).encode()
    sent = envelope(event_id="e", event="vendor.hold", occurred_at="t", company_id=1, data=data, change=b"")
    document = json.loads(sent)
    assert document["data"] == record
    assert document["change"] is None


def test_an_attempt_is_in_its_events_trace_with_a_parent_id_that_can_be_made_again() -> None:
    event_id = uuid.UUID("019b76da-a801-7c3e-8f10-5d2b9e4a7c61")
    stored = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
    traceparents = [traceparent_of(stored, event_id, sub_id, number) for sub_id in (1, 2) for number in (1, 2)]
    assert traceparents == [traceparent_of(stored, event_id, sub_id, number) for sub_id in (1, 2) for number in (1, 2)]
    assert len({*traceparents, stored}) == 5 and all(
        traces.accepted(traceparent) == traceparent for traceparent in traceparents
    )
    assert {(traceparent[:36], traceparent[52:]) for traceparent in traceparents} == {(stored[:36], "-00")}


def test_an_event_of_a_release_without_traces_is_a_trace_of_its_own() -> None:
    event_id = uuid.UUID("019b76da-a801-7c3e-8f10-5d2b9e4a7c61")
    traceparents = [traceparent_of(None, event_id, 1, number) for number in (1, 2)]
    assert {traces.id_of(traceparent) for traceparent in traceparents} == {event_id.hex}
    assert len(set(traceparents)) == 2 and all(
        traces.accepted(traceparent) == traceparent for traceparent in traceparents
    )
