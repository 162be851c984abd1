"""The flash message: one sentence about what was done, which the next page shows once, perhaps with a button that
undoes it. A cookie carries it, with an HMAC, so that the browser cannot change it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import NamedTuple

COOKIE = "__Host-makeready-said"
SECONDS = 60
CHARACTERS_MAX = 600
"""Browsers drop a cookie of more than 4,096 bytes, and proxies refuse it."""


class Undo(NamedTuple):
    """A bulk act that can be undone. path: of the act's undo in pages.py; act_id: which act; back: where it leads."""

    path: str
    act_id: int
    back: str


class Flash(NamedTuple):
    """What the next page says. token: of the form whose act has succeeded."""

    words: str = ""
    undo: Undo | None = None
    token: str = ""

    def __bool__(self) -> bool:
        return bool(self.words)


def sealed(flash: Flash, secret: str) -> str:
    """The cookie's value; `unsealed` reads it. secret: the session's."""
    words = flash.words
    if len(words) > CHARACTERS_MAX:
        words = words[: CHARACTERS_MAX - 2] + " …"
    value = json.dumps([words, flash.token, *(flash.undo or ())], ensure_ascii=False).encode()
    return f"{_encoded(value)}.{_encoded(_digest(value, secret))}"


def unsealed(text: str, secret: str) -> Flash:
    """The message; an empty one if it is none of this session's."""
    encoded, _, digest = text.partition(".")
    try:
        value = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return Flash()
    if not hmac.compare_digest(_encoded(_digest(value, secret)).encode(), digest.encode(errors="replace")):
        return Flash()
    try:
        words, token, *undo = json.loads(value)
    except ValueError:  # of the release before
        return Flash()
    return Flash(words, Undo(*undo) if undo else None, token)


def _digest(value: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"said" + value, hashlib.sha256)


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
