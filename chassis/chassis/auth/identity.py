"""Identity of callers: short-lived tokens that services present to one another.

Each issuer signs with its own Ed25519 key. All services hold the ring of public keys, a JWKS in which every key
names its issuer. A token is reused until near its end and verified once: signing costs 44 µs, verifying 163 µs, the
cache 0.15 µs.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from chassis.runtime.settings import SettingsError
from makeready.common.v1 import options_pb2

TOKEN_SECONDS = 60
REUSE_SECONDS = 40  # leaves 20 s for the call and for clocks that disagree
CLOCK_SECONDS = TOKEN_SECONDS - REUSE_SECONDS
"""How far the issuer's clock may be ahead of this process's."""
CACHED_MAX = 4096

# Stored actors spell an integration "caller", for example `caller:3`.
INTEGRATION, SERVICE, OPERATOR, STAFF, ADMINISTRATOR = "caller", "service", "operator", "staff", "administrator"
KINDS = {
    INTEGRATION: options_pb2.KIND_INTEGRATION,
    SERVICE: options_pb2.KIND_SERVICE,
    OPERATOR: options_pb2.KIND_OPERATOR,
    STAFF: options_pb2.KIND_STAFF,
    ADMINISTRATOR: options_pb2.KIND_ADMINISTRATOR,
}


class IdentityError(Exception):
    """A token that does not permit the call: absent, forged, expired, for another service or of another kind."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller. company_id is 0 for a call that is not about one company."""

    kind: str
    issuer: str
    company_id: int = 0
    api_key_id: int = 0
    scope: str = ""
    administrator_id: int | None = None
    staff_id: int | None = None
    stepped_up_at: int = 0
    """When a person last confirmed who they are, in seconds since 1970; 0: not known. See the option `step_up`."""
    session_id: int | None = None
    """The session in which a person calls."""
    is_sandbox: bool = False
    """Whether the company of an integration or a person is a sandbox. The gateway says so; for others it is False."""
    only_service: str = ""
    """The only RPC service that the token opens, by its full name, until the person has a second factor; "": all."""

    @property
    def actor(self) -> str:
        """The caller's name in the audit log and in the back office's claims: "administrator:7"."""
        of_company = {INTEGRATION: self.api_key_id, ADMINISTRATOR: self.administrator_id, STAFF: self.staff_id}
        return f"{self.kind}:{of_company[self.kind]}" if self.kind in of_company else self.issuer


@dataclass(frozen=True, slots=True)
class Call:
    """The context of an RPC, passed to its method with the request."""

    identity: Identity
    request_id: str


def caller(call: Call) -> Identity:
    """The caller of an RPC that only integrations may call."""
    assert call.identity.kind == INTEGRATION and call.identity.company_id > 0
    return call.identity


def company_id(call: Call) -> int:
    """The company that the token names. Raises IdentityError if it names none."""
    if call.identity.company_id <= 0:
        raise IdentityError("the token names no company")
    return call.identity.company_id


def may_administer(call: Call, company_id: int) -> bool:
    """Whether the caller administers this company: an administrator one company, the operator all."""
    return call.identity.kind != ADMINISTRATOR or call.identity.company_id == company_id


_VALUES = options_pb2.Kind.DESCRIPTOR.values_by_number
# The only issuer that may sign tokens of a kind, from the proto; "" if every service may.
ISSUERS: dict[str, str] = {
    kind: _VALUES[number].GetOptions().Extensions[options_pb2.issuer] for kind, number in KINDS.items()
}


def _may_issue(issuer: str, kind: str) -> bool:
    """Whether the issuer may sign tokens of this kind.

    If the proto names an issuer for the kind, only that issuer may. So a service's stolen key cannot forge tokens of
    people or integrations. Services sign for themselves; the operator's issuer is not a service.
    """
    only = ISSUERS[kind]
    return issuer == only if only else issuer != ISSUERS[OPERATOR]


class TokenSigner:
    """Signs tokens with this process's own key."""

    def __init__(self, key_file: Path) -> None:
        try:
            jwk = json.loads(key_file.read_text())
            self._key = OKPAlgorithm.from_jwk(jwk)
            self.name: str = jwk["iss"]
            self._kid: str = jwk["kid"]
        except (OSError, ValueError, KeyError, jwt.InvalidKeyError) as error:
            raise SettingsError("MAKEREADY_IDENTITY_KEY_FILE holds no private key with iss and kid.") from error
        self._tokens = functools.lru_cache(CACHED_MAX)(self._signed)

    def secret(self, purpose: str) -> bytes:
        """32 bytes that only holders of this key can make, for example to bind cookies."""
        key: bytes = self._key.private_bytes_raw()  # type: ignore[union-attr]
        return hmac.digest(key, f"makeready\0{purpose}".encode(), hashlib.sha256)

    def token(self, audience: str, identity: Identity) -> str:
        """A token for one service, valid for at least 20 s more."""
        return self._tokens(audience, identity, int(time.time()) // REUSE_SECONDS)

    def _signed(self, audience: str, identity: Identity, slot: int) -> str:
        payload: dict[str, Any] = {
            "iss": self.name,
            "aud": audience,
            "iat": slot * REUSE_SECONDS,
            "exp": slot * REUSE_SECONDS + TOKEN_SECONDS,
            "kind": identity.kind,
            "company_id": identity.company_id,
            "api_key_id": identity.api_key_id,
            "scope": identity.scope,
            "administrator_id": identity.administrator_id,
            "staff_id": identity.staff_id,
        }
        of_session = ("stepped_up_at", "session_id", "only_service")
        payload |= {"sandbox": True} if identity.is_sandbox else {}
        payload |= {name: value for name in of_session if (value := getattr(identity, name))}
        return jwt.encode(payload, self._key, algorithm="EdDSA", headers={"kid": self._kid})  # type: ignore[arg-type]

    def as_service(self, about_company: int = 0) -> Identity:
        return Identity(SERVICE, self.name, company_id=about_company)


class TokenVerifier:
    """Verifies tokens meant for this service against the public keys of all issuers."""

    def __init__(self, ring_file: Path, audience: str) -> None:
        self._audience = audience
        try:
            keys = json.loads(ring_file.read_text())["keys"]
            self._keys = {key["kid"]: (key["iss"], OKPAlgorithm.from_jwk(key)) for key in keys}
        except (OSError, ValueError, KeyError, jwt.InvalidKeyError) as error:
            raise SettingsError("MAKEREADY_IDENTITY_RING_FILE holds no JWKS whose keys name kid and iss.") from error
        self._tokens = functools.lru_cache(CACHED_MAX)(self._verified)

    def verify(self, token: str) -> Identity:
        """The identity behind a token. Raises IdentityError."""
        expires, identity = self._tokens(token)
        if expires <= time.time():
            raise IdentityError("Signature has expired")
        return identity

    def _verified(self, token: str) -> tuple[float, Identity]:
        try:
            issuer, key = self._keys[jwt.get_unverified_header(token).get("kid", "")]
            payload = jwt.decode(
                token,
                key,  # type: ignore[arg-type]
                algorithms=["EdDSA"],
                audience=self._audience,
                issuer=issuer,
                # `_expires` checks iat: the library refuses an issuer whose clock is a millisecond ahead.
                options={"require": ["iss", "aud", "exp"], "verify_iat": False},
            )
            expires = _expires(payload)
            numbers = ("company_id", "api_key_id", "stepped_up_at", "session_id")
            company_id, api_key_id, stepped_up_at, session_id = (int(payload.get(name) or 0) for name in numbers)
        except KeyError:
            raise IdentityError("signed with a key that is not in the ring") from None
        except (jwt.PyJWTError, TypeError, ValueError, OverflowError) as error:
            raise IdentityError(str(error)) from None
        kind = payload.get("kind")
        if kind not in KINDS or not _may_issue(issuer, kind):
            raise IdentityError(f"{issuer} may not vouch for this kind")
        identity = Identity(
            kind,
            issuer,
            company_id=company_id,
            api_key_id=api_key_id,
            scope=str(payload.get("scope") or ""),
            administrator_id=payload.get("administrator_id"),
            staff_id=payload.get("staff_id"),
            stepped_up_at=stepped_up_at,
            session_id=session_id or None,
            is_sandbox=payload.get("sandbox") is True,
            only_service=str(payload.get("only_service") or ""),
        )
        return expires, identity


def _expires(payload: dict[str, Any]) -> float:
    """When the token ends: TOKEN_SECONDS after it was issued at the latest, whatever it says. Raises IdentityError.

    A token of release 0.2.0 says nothing about its issue. It counts as issued TOKEN_SECONDS before its end, so that
    calls go on while an installation is upgraded.
    """
    expires = float(payload["exp"])
    issued = float(payload.get("iat", expires - TOKEN_SECONDS))
    now = time.time()
    if not expires - issued <= TOKEN_SECONDS:
        raise IdentityError(f"a token lives for {TOKEN_SECONDS} s at most")
    if not now - TOKEN_SECONDS < issued <= now + CLOCK_SECONDS:
        raise IdentityError("issued too long ago, or in the future")
    return expires


def make_keys(folder: Path, names: list[str]) -> None:
    """Makes NAME.jwk (mode 0600) for each name without one, and ring.jwks with the public keys of all."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        if not (path := folder / f"{name}.jwk").exists():
            make_key(path, name)
    public = []
    for path in sorted(folder.glob("*.jwk")):
        jwk = json.loads(path.read_text())
        public.append({field: jwk[field] for field in ("kty", "crv", "x", "iss", "kid")})
    part = folder / "ring.part"
    part.write_text(json.dumps({"keys": public}, indent=2))
    part.rename(folder / "ring.jwks")


def make_key(path: Path, issuer: str) -> None:
    """Makes the file of a private key (mode 0600). Its kid is another one at each call."""
    jwk = OKPAlgorithm.to_jwk(Ed25519PrivateKey.generate(), as_dict=True)
    part = path.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_text(json.dumps({**jwk, "iss": issuer, "kid": f"{issuer}-{time.time_ns()}"}))
    part.rename(path)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit("usage: python -m chassis.auth.identity FOLDER ISSUER...")
    make_keys(Path(sys.argv[1]), sys.argv[2:])
