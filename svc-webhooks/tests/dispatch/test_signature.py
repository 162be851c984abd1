"""The envelope and its signature, byte for byte."""

import json

from hypothesis import given
from hypothesis import strategies as st

from svc_webhooks.dispatch.signature import service_signature
from svc_webhooks.events.envelope import envelope

BODY = b'{"schema_version":1}'


def test_the_signature_of_a_known_body() -> None:
    # From `openssl dgst -sha256 -hmac whsec_test`; test_vectors.py has the published digests.
    digest = "b5d9ecb4fa52db124298f9b7f5c891b5abd711ce329e7a46e1f9e8c3c1f7d75f"
    assert service_signature("whsec_test", 1767225600, BODY) == f"t=1767225600,v1={digest}"


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
    found = json.loads(sent)
    assert found["data"] == record
    assert found["change"] is None
