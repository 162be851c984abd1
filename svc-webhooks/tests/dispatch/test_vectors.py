"""The product's signer, an HMAC written from the RFC and openssl make the digests of the published test vectors."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from svc_webhooks.dispatch.signature import service_signature
from testkit.requirements import lacks

DOCS = Path(__file__).resolve().parents[3] / "docs"
PUBLISHED: dict[str, Any] = json.loads((DOCS / "webhooks" / "vectors.json").read_text())
VECTORS: list[dict[str, Any]] = PUBLISHED["vectors"]
NAMES = [vector["name"] for vector in VECTORS]


def by_definition(key: bytes, signed: bytes) -> str:
    """HMAC as RFC 2104 defines it."""
    assert len(key) <= 64
    inner, outer = (bytes(byte ^ mask for byte in key.ljust(64, b"\0")) for mask in (0x36, 0x5C))
    return hashlib.sha256(outer + hashlib.sha256(inner + signed).digest()).hexdigest()


@pytest.mark.parametrize("vector", VECTORS, ids=NAMES)
def test_a_vectors_digest_is_what_the_service_signs_with(vector: dict[str, Any]) -> None:
    body: bytes = vector["body"].encode()
    assert len(body) == vector["body_bytes"]
    made = service_signature(vector["secret"], vector["timestamp"], body)
    assert made == f"t={vector['timestamp']},v1={vector['digest']}"
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
    assert len(set(NAMES)) == len(NAMES)


def test_the_guides_table_is_the_vectors() -> None:
    rows = "".join(
        f"| `{vector['name']}` | {'yes' if vector['accept'] else '**no**'} | {vector['body_bytes']:,} | "
        f"`{vector['digest']}` | {vector['about']} |\n"
        for vector in VECTORS
    )
    table = f"| vector | accept | body's bytes | right digest | |\n|---|---|---|---|---|\n{rows}"
    assert table in (DOCS / "webhooks.md").read_text(), f"the table is to be:\n{table}"


def test_the_guides_worked_example_is_the_first_vector() -> None:
    guide = (DOCS / "webhooks.md").read_text()
    first = VECTORS[0]
    for shown in (first["secret"], str(first["timestamp"]), first["body"], first["header"]):
        assert shown in guide
