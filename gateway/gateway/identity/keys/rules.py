"""The form of an API key, its keyed check, and the scopes that it may have.

A key is `mk_RING_`, 43 random characters and a check of 16: a MAC, under a secret of the gateway's, over what precedes
it. The check shows without the database that a key may be one of ours, so that random keys cost no look-up.

RING is the id of the secret and the first characters of its digest: a secret that was replaced under the same id is
another ring. A sandbox's key begins with `mk_test_RING_`. A key of a ring that is not known here proves nothing by its
check and has to be looked for; so losing a secret kills no key. Release 0.2.0 minted
keys without a check: `mk_` and 43 random characters.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Literal, get_args

from chassis.refusals import Refusal, invalid_request

Scope = Literal["read", "write", "webhook_only"]
SCOPES: tuple[str, ...] = get_args(Scope)

# A prefix that secret scanners recognize.
KEY_MARK = "mk_"
SANDBOX_MARK = "mk_test_"
# 256 random bits in base64url.
RANDOM_CHARACTERS = 43
# 96 bits in base64url: nobody finds a check by trying keys, and the key stays short.
CHECK_CHARACTERS, CHECK_BYTES = 16, 12
UNCHECKED_CHARACTERS = len(KEY_MARK) + RANDOM_CHARACTERS
VISIBLE_CHARACTERS = 8
FINGERPRINT_CHARACTERS = 4
# For how long a mint or a rotation that is sent again gets the same key again.
AGAIN = datetime.timedelta(hours=24)
OVERLAP_DAYS_MAX = 30
EXPIRY_YEARS_MAX = 10
EXPIRY_MAX = datetime.timedelta(days=366 * EXPIRY_YEARS_MAX)
KEYS_A_PAGE = 200

Verdict = Literal["good", "bad", "unchecked", "unknown ring"]
"""What the form of a key says. unchecked: it is of release 0.2.0."""


class KeyChecks:
    """Makes keys and looks at their checks. ring: secrets by id (letters and digits); new keys are of the first."""

    def __init__(self, ring: Mapping[str, bytes]) -> None:
        names = {
            f"{key_id}{hashlib.sha256(secret).hexdigest()[:FINGERPRINT_CHARACTERS]}_": secret
            for key_id, secret in ring.items()
        }
        self._ring = {mark + name: secret for name, secret in names.items() for mark in (KEY_MARK, SANDBOX_MARK)}
        self._newest = next(iter(names))

    @property
    def marks(self) -> list[str]:
        """The first characters of keys with a check that can be verified here, up to the random ones."""
        return list(self._ring)

    def new_recipe(self, is_sandbox: bool = False) -> str:
        """A key's mark and 256 random bits, of which `key_of` makes a bearer key. It is no secret: without the ring
        the key cannot be made from it. So it can be stored with the reply to a request that may be sent again."""
        return (SANDBOX_MARK if is_sandbox else KEY_MARK) + self._newest + secrets.token_urlsafe(32)

    def key_of(self, recipe: str) -> str | None:
        """The bearer key; None if the ring's secret is not known here any longer."""
        mark = recipe[:-RANDOM_CHARACTERS]
        secret = self._ring.get(mark)
        if secret is None:
            return None
        drawn = hmac.digest(secret, b"key\0" + recipe.encode(), hashlib.sha256)
        checked = mark + base64.urlsafe_b64encode(drawn).rstrip(b"=").decode()
        return checked + _check(secret, checked)

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
        ring = mark.removeprefix(SANDBOX_MARK if mark.startswith(SANDBOX_MARK) else KEY_MARK)[:-1]
        return "unknown ring" if mark.endswith(f"_{ring}_") and ring.isalnum() else "bad"


def visible(key: str) -> str:
    """The first characters of a new key, which stay visible to tell keys apart: its mark and 8 random ones."""
    return key[: -RANDOM_CHARACTERS - CHECK_CHARACTERS + VISIBLE_CHARACTERS]


def _check(secret: bytes, checked: str) -> str:
    mac = hmac.digest(secret, checked.encode(), hashlib.sha256)[:CHECK_BYTES]
    return base64.urlsafe_b64encode(mac).decode()


def no_key() -> Refusal:
    return Refusal(404, "not_found", "No key has that id; list the company's keys to see their ids.")


def no_administrator() -> Refusal:
    return Refusal(404, "not_found", "The company has no such administrator; list its administrators.")


def end_after_mint(requested: datetime.datetime | None, now: datetime.datetime) -> datetime.datetime | None:
    """When a new key ends. Raises Refusal 422 for an instant that is past, or so far ahead that it is a slip."""
    if requested is not None and not now < requested <= now + EXPIRY_MAX:
        raise invalid_request(
            f"expires_at must be in the future, at most {EXPIRY_YEARS_MAX} years ahead.", "expires_at", status=422
        )
    return requested


def end_after_rotation(
    requested: datetime.datetime | None,
    created_at: datetime.datetime,
    expires_at: datetime.datetime | None,
    now: datetime.datetime,
) -> datetime.datetime | None:
    """When the new key ends: as requested, else after as long a time as the old one was minted for."""
    if requested is None and expires_at is not None:
        return now + (expires_at - created_at)
    return end_after_mint(requested, now)


def check_overlap(days: int) -> None:
    if not 0 <= days <= OVERLAP_DAYS_MAX:
        raise invalid_request(f"overlap_days must be from 0 to {OVERLAP_DAYS_MAX}.", "overlap_days", status=422)


def check_rotation(
    revoked_at: datetime.datetime | None,
    expires_at: datetime.datetime | None,
    replaced_by: int | None,
    now: datetime.datetime,
) -> None:
    """Raises Refusal 422 for a key that has ended or has been replaced."""
    if revoked_at is not None or (expires_at is not None and expires_at <= now):
        raise invalid_request("The key was revoked or has expired; mint a new one.", "key_id", status=422)
    if replaced_by is not None:
        raise invalid_request("The key was replaced by another one; rotate that one.", "key_id", status=422)


def check_take_over(
    revoked_at: datetime.datetime | None,
    expires_at: datetime.datetime | None,
    administrator_active: bool | None,
    now: datetime.datetime,
) -> None:
    """Raises Refusal 422 for a key that has ended, and for one whose administrator has not been deactivated.

    administrator_active: None if no administrator is on record; such a key never writes (spec 4.13.5).
    """
    if revoked_at is not None or (expires_at is not None and expires_at <= now):
        raise invalid_request("The key was revoked or has expired; mint a new one.", "key_id", status=422)
    if administrator_active is None:
        raise invalid_request("The key has no administrator on record; mint a new one.", "key_id", status=422)
    if administrator_active:
        raise invalid_request(
            "The key's administrator has not been deactivated; rotate the key to replace it.", "key_id", status=422
        )
