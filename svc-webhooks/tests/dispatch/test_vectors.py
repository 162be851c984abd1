"""The product's signer, an HMAC written from the RFC and openssl make the digests of the published test vectors; the
library of Standard Webhooks judges those of its scheme as they say."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError, webhooks

from svc_webhooks.dispatch.signature import service_signature, standard_signature
from testkit.requirements import lacks

DOCS = Path(__file__).resolve().parents[3] / "docs"
PUBLISHED: dict[str, Any] = json.loads((DOCS / "webhooks" / "vectors.json").read_text())
VECTORS: list[dict[str, Any]] = PUBLISHED["vectors"]
NAMES = [vector["name"] for vector in VECTORS]
STANDARD: list[dict[str, Any]] = PUBLISHED["standard"]["vectors"]


def by_definition(key: bytes, signed: bytes) -> str:
    """HMAC as RFC 2104 defines it."""
    assert len(key) <= 64
    inner, outer = (bytes(byte ^ mask for byte in key.ljust(64, b"\0")) for mask in (0x36, 0x5C))
    return hashlib.sha256(outer + hashlib.sha256(inner + signed).digest()).hexdigest()


@pytest.mark.parametrize("vector", VECTORS, ids=NAMES)
def test_a_vectors_digest_is_what_the_service_signs_with(vector: dict[str, Any]) -> None:
    body: bytes = vector["body"].encode()
    assert len(body) == vector["body_bytes"]
    signature = service_signature(vector["secret"], vector["timestamp"], body)
    assert signature == f"t={vector['timestamp']},v1={vector['digest']}"
    assert by_definition(vector["secret"].encode(), f"{vector['timestamp']}.".encode() + body) == vector["digest"]


@pytest.mark.parametrize("vector", VECTORS, ids=NAMES)
def test_openssl_makes_the_same_digest(vector: dict[str, Any]) -> None:
    if not shutil.which("openssl"):
        lacks("openssl", "there is no such command here")
    signed = f"{vector['timestamp']}.{vector['body']}".encode()
    command = ["openssl", "dgst", "-sha256", "-hmac", vector["secret"]]
    done = subprocess.run(command, input=signed, capture_output=True, check=True)
    assert done.stdout.decode().split()[-1] == vector["digest"]


def test_what_is_accepted_bears_the_right_digest_in_time_and_nothing_else_does() -> None:
    for vector in VECTORS:
        parts = [part.partition("=") for part in vector["header"].split(",")]
        times = [value for name, _, value in parts if name == "t"]
        digests = [value for name, _, value in parts if name == "v1"]
        in_time = abs(vector["received_at"] - vector["timestamp"]) <= PUBLISHED["tolerance_seconds"]
        right = times == [str(vector["timestamp"])] and vector["digest"] in digests and in_time
        assert vector["accept"] == right, vector["name"]


def test_the_vectors_hold_what_receivers_get_wrong() -> None:
    bodies = [vector["body"] for vector in VECTORS if vector["accept"]]
    assert any(body.isascii() for body in bodies) and any(not body.isascii() for body in bodies)
    assert any("\\u" in body for body in bodies) and any(len(body) > 20_000 for body in bodies)
    assert any('"change":null' in body for body in bodies) and any('"change":{' in body for body in bodies)
    assert any(json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False) != body for body in bodies)
    names = [vector["name"] for vector in (*VECTORS, *STANDARD)]
    assert len(set(names)) == len(names)
    assert all(vector["about"] for vector in (*VECTORS, *STANDARD))


def test_the_guides_worked_example_is_the_first_vector() -> None:
    guide = (DOCS / "webhooks.md").read_text()
    first = VECTORS[0]
    for text in (first["secret"], str(first["timestamp"]), first["body"], first["header"]):
        assert text in guide


def judged_by_the_library(vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> bool:
    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return datetime.datetime.fromtimestamp(vector["received_at"], tz)

    monkeypatch.setattr(webhooks, "datetime", Clock)
    try:
        Webhook(vector["secret"]).verify(vector["body"].encode(), vector["headers"], json_parse=False)
    except (WebhookVerificationError, ValueError):  # ValueError: no base64
        return False
    return True


@pytest.mark.parametrize("vector", STANDARD, ids=lambda vector: str(vector["name"]))
def test_the_library_judges_a_standard_vector_as_it_says(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(vector["body"].encode()) == vector["body_bytes"]
    assert judged_by_the_library(vector, monkeypatch) == vector["accept"]


def test_the_service_makes_the_signatures_of_the_standard_vectors() -> None:
    by_service = {
        vector["name"]: standard_signature(
            vector["secret"],
            vector["headers"]["webhook-id"],
            int(vector["headers"]["webhook-timestamp"]),
            vector["body"].encode(),
        )
        for vector in STANDARD
        if vector["headers"]["webhook-timestamp"].isdigit()
    }
    right = {vector["name"]: vector["headers"].get("webhook-signature", "") for vector in STANDARD if vector["accept"]}
    assert all(by_service[name] in signatures.split(" ") for name, signatures in right.items())
    assert by_service["standard_non_ascii"] == right["standard_non_ascii"]
