"""Authenticator apps: secrets stored under a ring of keys, and their codes (RFC 6238: SHA-1, 6 digits, 30 s)."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import os
from collections.abc import Mapping

import pyotp
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.identity.accounts import rules

ISSUER = "Makeready"
_NONCE_BYTES = 12


class TotpFault(Exception):  # noqa: N818 - names the party at fault
    """A sealed secret can't be opened: its key is not in the ring, or the bytes are not authentic."""


class TotpSecrets:
    """Seals secrets with the ring's first key and opens them with any: AES-256-GCM, bound to the account.

    Sealed bytes are the key's id, a NUL, the nonce and the sealed secret.
    """

    def __init__(self, ring: Mapping[str, bytes]) -> None:
        """ring: key material by key id, the sealing one first."""
        self._ring = {
            key_id: AESGCM(hashlib.sha256(b"makeready totp\0" + material).digest()) for key_id, material in ring.items()
        }
        self._sealing = next(iter(self._ring))

    def seal(self, account_id: int, secret: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ring[self._sealing].encrypt(nonce, secret.encode(), _bound_to(account_id))
        return self._sealing.encode() + b"\0" + nonce + sealed

    def open(self, account_id: int, sealed: bytes) -> str:
        """The secret. Raises TotpFault."""
        key_id, _, nonce_and_secret = sealed.partition(b"\0")
        key = self._ring.get(key_id.decode("ascii", "replace"))
        if key is None:
            raise TotpFault(f"no key {key_id!r} in MAKEREADY_TOTP_KEYS")
        try:
            return key.decrypt(
                nonce_and_secret[:_NONCE_BYTES], nonce_and_secret[_NONCE_BYTES:], _bound_to(account_id)
            ).decode()
        except (InvalidTag, ValueError):
            raise TotpFault(f"not sealed by key {key_id!r} for this account") from None


def _bound_to(account_id: int) -> bytes:
    return b"makeready totp of account %d" % account_id


def new_secret() -> str:
    """160 random bits in base32."""
    return pyotp.random_base32()


def uri(secret: str, email: str) -> str:
    """What a QR code of the secret says."""
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)


def step_of(secret: str, code: str, at: datetime.datetime, last_used: int) -> int | None:
    """The step whose code this is: the one of the instant or a neighbour, and later than the last one used."""
    app = pyotp.HOTP(secret)
    steps = rules.totp_steps(at.timestamp(), last_used)
    return next((step for step in steps if hmac.compare_digest(app.at(step).encode(), code.encode())), None)
