"""Tokens between services."""

from __future__ import annotations

import json
import time
from pathlib import Path

import jwt
import pytest

from chassis.auth.identity import (
    ADMINISTRATOR,
    INTEGRATION,
    ISSUERS,
    KINDS,
    OPERATOR,
    SERVICE,
    STAFF,
    Identity,
    IdentityError,
    TokenSigner,
    TokenVerifier,
    make_keys,
)
from chassis.runtime.settings import SettingsError

NAMES = ["gateway", "svc-tickets", "operator"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder, NAMES)
    return folder


def ring(keys: Path, audience: str = "svc-tickets") -> TokenVerifier:
    return TokenVerifier(keys / "ring.jwks", audience)


def test_a_token_names_the_caller_and_the_company(keys: Path) -> None:
    who = Identity(INTEGRATION, "gateway", 7, 3, "write", 5)
    token = TokenSigner(keys / "gateway.jwk").token("svc-tickets", who)
    assert ring(keys).verify(token) == who


def test_a_token_is_made_once_and_used_again(keys: Path) -> None:
    issuer = TokenSigner(keys / "gateway.jwk")
    who = Identity(INTEGRATION, "gateway", 7, 3, "write", 5)
    assert issuer.token("svc-tickets", who) is issuer.token("svc-tickets", who)
    assert issuer.token("svc-catalog", who) != issuer.token("svc-tickets", who)


@pytest.mark.parametrize(
    ("issuer", "kind", "may"),
    [
        ("gateway", INTEGRATION, True),
        ("gateway", STAFF, True),
        ("gateway", ADMINISTRATOR, True),
        ("gateway", SERVICE, True),
        ("gateway", OPERATOR, False),
        ("svc-tickets", SERVICE, True),
        ("svc-tickets", INTEGRATION, False),
        ("svc-tickets", STAFF, False),
        ("svc-tickets", ADMINISTRATOR, False),
        ("svc-tickets", OPERATOR, False),
        ("operator", OPERATOR, True),
        ("operator", INTEGRATION, False),
        ("operator", STAFF, False),
        ("operator", ADMINISTRATOR, False),
        ("operator", SERVICE, False),
        ("operator", "root", False),
    ],
)
def test_an_issuer_vouches_for_its_own_kinds_alone(keys: Path, issuer: str, kind: str, may: bool) -> None:
    token = TokenSigner(keys / f"{issuer}.jwk").token("svc-tickets", Identity(kind, issuer, 7))
    if may:
        assert ring(keys).verify(token).kind == kind
    else:
        with pytest.raises(IdentityError):
            ring(keys).verify(token)


def test_the_contract_names_an_issuer_for_every_kind_but_services() -> None:
    people = dict.fromkeys((INTEGRATION, STAFF, ADMINISTRATOR), "gateway")
    assert {**people, OPERATOR: "operator", SERVICE: ""} == ISSUERS
    assert set(KINDS) == set(ISSUERS)


def forged(keys: Path, **changes: object) -> str:
    """A token signed with the gateway's key, with claims or header changed."""
    jwk = json.loads((keys / "gateway.jwk").read_text())
    claims = {"iss": "gateway", "aud": "svc-tickets", "exp": time.time() + 60, "kind": "caller", "company_id": 7}
    claims |= {name: value for name, value in changes.items() if name != "kid"}
    claims = {name: value for name, value in claims.items() if value is not None}
    key = jwt.PyJWK(jwk).key
    return jwt.encode(claims, key, algorithm="EdDSA", headers={"kid": changes.get("kid", jwk["kid"])})


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"aud": "svc-webhooks"},
        {"aud": None},
        {"iss": "operator"},
        {"iss": None},
        {"kid": "nobody"},
        {"kind": None},
        {"kind": 5},
    ],
)
def test_a_token_that_is_off_in_one_claim_proves_nothing(keys: Path, changes: dict[str, object]) -> None:
    assert ring(keys).verify(forged(keys)).company_id == 7
    with pytest.raises(IdentityError):
        ring(keys).verify(forged(keys, **changes))


@pytest.mark.parametrize(
    ("issued", "ends"),
    [
        (0, 61),  # lives too long
        (-10, 51),
        (-61, -1),
        (-61, 30),  # issued too long ago
        (-3600, 1),
        (40, 80),  # issued in the future
        (30, 90),
        (None, 110),  # of release 0.2.0, and it ends too late
        (None, 3600),
        ("soon", 60),
        (float("nan"), 60),
        (0, float("inf")),
        ([], 60),
    ],
)
def test_a_token_lives_for_a_minute_at_most_whatever_it_claims(keys: Path, issued: object, ends: float) -> None:
    now = time.time()
    if isinstance(issued, int | float):
        issued = now + issued
    with pytest.raises(IdentityError):
        ring(keys).verify(forged(keys, iat=issued, exp=now + ends))


@pytest.mark.parametrize(("issued", "ends"), [(0, 60), (-40, 20), (-30, 30), (10, 60), (None, 60), (None, 20)])
def test_a_token_of_this_minute_is_good(keys: Path, issued: int | None, ends: int) -> None:
    now = time.time()
    token = forged(keys, iat=None if issued is None else now + issued, exp=now + ends)
    assert ring(keys).verify(token).company_id == 7


def test_tokens_say_when_they_were_issued_and_live_for_a_minute(keys: Path) -> None:
    token = TokenSigner(keys / "gateway.jwk").token("svc-tickets", Identity(INTEGRATION, "gateway", 7))
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 60 and time.time() - 40 <= claims["iat"] <= time.time()


def test_no_other_algorithm_is_believed(keys: Path) -> None:
    public = json.loads((keys / "ring.jwks").read_text())["keys"][0]
    claims = {"iss": public["iss"], "aud": "svc-tickets", "exp": time.time() + 60, "kind": "service"}
    for token in (
        jwt.encode(claims, public["x"].ljust(32, "x"), algorithm="HS256", headers={"kid": public["kid"]}),
        jwt.encode(claims, "", algorithm="none", headers={"kid": public["kid"]}),
        "",
        "a.b.c",
        "ü",
    ):
        with pytest.raises(IdentityError):
            ring(keys).verify(token)


def test_private_keys_are_readable_by_their_owner_alone_and_kept(keys: Path) -> None:
    before = {name: (keys / f"{name}.jwk").read_bytes() for name in NAMES}
    assert all((keys / f"{name}.jwk").stat().st_mode & 0o777 == 0o600 for name in NAMES)
    make_keys(keys, [*NAMES, "svc-more"])
    assert {name: (keys / f"{name}.jwk").read_bytes() for name in NAMES} == before
    assert "d" not in json.loads((keys / "ring.jwks").read_text())["keys"][0]


def test_a_key_file_that_is_none_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("{}")
    with pytest.raises(SettingsError, match="IDENTITY_KEY_FILE"):
        TokenSigner(tmp_path / "bad")
    with pytest.raises(SettingsError, match="IDENTITY_RING_FILE"):
        TokenVerifier(tmp_path / "bad", "svc-tickets")
