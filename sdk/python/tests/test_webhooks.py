"""Deliveries are judged as the published vectors say."""

from __future__ import annotations

import base64
import email.message
import hashlib
import hmac
import http.server
import json
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from makeready_client import errors, models, webhooks

FILE = json.loads((Path(__file__).parents[3] / "docs/webhooks/vectors.json").read_text())
VECTORS = [*FILE["vectors"], *FILE["standard"]["vectors"]]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_every_vector_is_judged_right(vector: dict[str, Any]) -> None:
    body = vector["body"].encode()
    headers = vector["headers"] if "headers" in vector else vector["header"]
    if vector["accept"]:
        event = webhooks.verify(body, headers, vector["secret"], now=vector["received_at"])
        assert event.raw == body and event.event == json.loads(body)["event"]
        assert not isinstance(event, models.UnknownEvent)
    else:
        with pytest.raises(errors.SignatureInvalid):
            webhooks.verify(body, headers, vector["secret"], now=vector["received_at"])


def test_headers_are_taken_as_frameworks_have_them_and_secrets_while_they_are_rotated() -> None:
    body = VECTORS[0]["body"].encode()
    secret, other = webhooks.new_secret(), webhooks.new_secret()
    signed = webhooks.signed(body, secret, "e")
    standard = {name.upper(): value for name, value in signed.items() if name != "Service-Signature"}
    message = email.message.Message()
    for name, value in signed.items():
        message[name] = value
    pairs = list(signed.items())
    asgi = [(name.lower().encode(), value.encode()) for name, value in pairs]
    for headers in (signed, standard, message, httpx.Headers(signed), pairs, asgi, iter(asgi)):
        assert webhooks.verify(body, headers, [other, secret]).raw == body
        with pytest.raises(errors.SignatureInvalid):
            webhooks.verify(body, headers, [other])
    for no_headers in (7, [("a",)], [7], {"service-signature": 7}, [(b"a", None)], object()):
        with pytest.raises(errors.SignatureInvalid, match="neither a mapping nor a list of pairs"):
            webhooks.verify(body, no_headers, secret)  # type: ignore[arg-type]
    # One that was made with the text of the header is no signature of Standard Webhooks, and no other way round.
    with pytest.raises(errors.SignatureInvalid):
        webhooks.verify(body, standard | {"Service-Signature": "t=1,v1=0"}, secret)
    for secrets in ("", [], ["", secret]):
        with pytest.raises(ValueError, match="no secret"):
            webhooks.verify(body, signed, secrets)


def test_a_missing_header_and_text_are_refused() -> None:
    with pytest.raises(errors.SignatureInvalid):
        webhooks.verify(b"{}", None, "whsec_")
    with pytest.raises(TypeError):
        webhooks.verify("{}", "t=1,v1=a", "whsec_")  # type: ignore[arg-type]


def test_an_event_with_an_unknown_key_passes() -> None:
    body = b'{"event_id":"e","event":"roof.gone","occurred_at":"2026-01-01T00:00:00Z","company_id":1,'
    body += b'"data":{"a":1},"change":null}'
    headers = webhooks.signed(body, secret := webhooks.new_secret(), "e")
    event = webhooks.verify(body, headers["Service-Signature"], secret)
    assert isinstance(event, models.UnknownEvent) and event.data == {"a": 1}


def test_what_is_signed_here_bears_both_schemes() -> None:
    secret = webhooks.new_secret()
    headers = webhooks.signed(b"body", secret, "id", now=7.9)
    assert headers["Service-Signature"].startswith("t=7,v1=")
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    digest = base64.b64encode(hmac.new(key, b"id.7.body", hashlib.sha256).digest()).decode()
    assert len(key) == 32
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("id", "7")


def test_the_receiver_of_the_front_page_takes_what_is_signed_and_nothing_else() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[3] / "README.md").read_text(), re.DOTALL)
    definitions = program.split('HTTPServer(("127.0.0.1", 8000)')[0]
    names: dict[str, Any] = {}
    exec(compile(definitions, "README.md", "exec"), names)
    with http.server.HTTPServer(("127.0.0.1", 0), names["Receiver"]) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            body = VECTORS[0]["body"].encode()
            url = f"http://127.0.0.1:{server.server_port}/"
            signed = httpx.post(url, content=body, headers=webhooks.signed(body, "whsec_try", "e"))
            forged = httpx.post(url, content=body, headers=webhooks.signed(body, "whsec_other", "e"))
        finally:
            server.shutdown()
            thread.join()
    assert (signed.status_code, forged.status_code) == (204, 401)
