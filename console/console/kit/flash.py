"""The flash message: one sentence about what was done, which the next page shows once. A cookie carries it, with an
HMAC, so that the browser cannot change it."""

from __future__ import annotations

import base64
import hashlib
import hmac

COOKIE = "__Host-makeready-said"
SECONDS = 60
CHARACTERS_MAX = 600
"""Browsers drop a cookie of more than 4,096 bytes, and proxies refuse it."""


def sealed(message: str, secret: str) -> str:
    """The cookie's value; `unsealed` reads it. secret: the session's."""
    if len(message) > CHARACTERS_MAX:
        message = message[: CHARACTERS_MAX - 2] + " …"
    digest = hmac.digest(secret.encode(), b"said" + message.encode(), hashlib.sha256)
    return f"{_encoded(message.encode())}.{_encoded(digest)}"


def unsealed(value: str, secret: str) -> str:
    """The message; empty if it is none of this session's."""
    encoded, _, _ = value.partition(".")
    try:
        message = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return ""
    return message if hmac.compare_digest(sealed(message, secret).encode(), value.encode(errors="replace")) else ""


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
