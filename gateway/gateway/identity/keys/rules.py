"""The form of an API key, its keyed check, and the scopes that it may have.

A key is `mk_RING_`, 43 random characters and a check of 16: a MAC, under a secret of the gateway's, over what precedes
it. The check shows without the database that a key may be one of ours, so that random keys cost no look-up.

RING is the id of the secret and the first characters of its digest: a secret that was replaced under the same id is
another ring. A key of a ring that is not known here proves nothing by its check and has to be looked for; so losing a
secret kills no key. Release 0.2.0 minted keys without a check: `mk_` and 43 random characters.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Literal, get_args

from chassis.refusals import Refusal

Scope = Literal["read", "write", "webhook_only"]
SCOPES: tuple[str, ...] = get_args(Scope)

# A prefix that secret scanners recognize.
KEY_MARK = "mk_"
# 256 random bits in base64url.
RANDOM_CHARACTERS = 43
# 96 bits in base64url: nobody finds a check by trying keys, and the key stays short.
CHECK_CHARACTERS, CHECK_BYTES = 16, 12
UNCHECKED_CHARACTERS = len(KEY_MARK) + RANDOM_CHARACTERS
VISIBLE_CHARACTERS = 8
FINGERPRINT_CHARACTERS = 4

Verdict = Literal["good", "bad", "unchecked", "unknown ring"]
"""What the form of a key says. unchecked: it is of release 0.2.0."""


class KeyChecks:
    """Makes keys and looks at their checks. ring: secrets by id (letters and digits); new keys are of the first."""

    def __init__(self, ring: Mapping[str, bytes]) -> None:
        self._ring = {
            f"{KEY_MARK}{key_id}{hashlib.sha256(secret).hexdigest()[:FINGERPRINT_CHARACTERS]}_": secret
            for key_id, secret in ring.items()
        }
        self._newest = next(iter(self._ring))

    @property
    def marks(self) -> list[str]:
        """The first characters of keys with a check that can be verified here, up to the random ones."""
        return list(self._ring)

    def new_key(self) -> str:
        """A random bearer key, which is returned to its owner once."""
        checked = self._newest + secrets.token_urlsafe(32)
        return checked + _check(self._ring[self._newest], checked)

    def verdict(self, key: str) -> Verdict:
        """What the key's form says, without the database. key: ASCII."""
        if len(key) == UNCHECKED_CHARACTERS:
            return "unchecked"
        end = len(key) - RANDOM_CHARACTERS - CHECK_CHARACTERS
        mark = key[: max(end, 0)]
        secret = self._ring.get(mark)
        if secret is not None:
            checked = key[:-CHECK_CHARACTERS]
            return "good" if hmac.compare_digest(key[len(checked) :], _check(secret, checked)) else "bad"
        ring = mark[len(KEY_MARK) : -1]
        return "unknown ring" if mark == f"{KEY_MARK}{ring}_" and ring.isalnum() else "bad"


def visible(key: str) -> str:
    """The first characters of a new key, which stay visible to tell keys apart: its mark and 8 random ones."""
    return key[: -RANDOM_CHARACTERS - CHECK_CHARACTERS + VISIBLE_CHARACTERS]


def _check(secret: bytes, checked: str) -> str:
    mac = hmac.digest(secret, checked.encode(), hashlib.sha256)[:CHECK_BYTES]
    return base64.urlsafe_b64encode(mac).decode()


def no_key() -> Refusal:
    return Refusal(404, "not_found", "No key has that id; list the company's keys to see their ids.")
