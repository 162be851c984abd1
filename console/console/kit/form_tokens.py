"""The form token: the hidden field `act` of every form.

It has 16 random bytes and an HMAC of them, of the session and of the form's path. So a form of another site, of another
session or of another page is refused. The RPC behind the form gets it as its idempotency key: a double click, a reload,
or Back and send again is the same action.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

FIELD = "act"
RANDOM_BYTES, CHECK_BYTES = 16, 16
_LENGTH = 43  # of 32 bytes in base64 without padding


def new_token(secret: str, path: str) -> str:
    """The value for a form that is sent to `path`. secret: the session's, or the visitor's before a sign-in."""
    random = secrets.token_bytes(RANDOM_BYTES)
    return _encoded(random + _check(secret, path, random))


def is_valid(token: str, secret: str, path: str) -> bool:
    """Whether `new_token` made this value for the same session and path."""
    if len(token) != _LENGTH or not token.isascii():
        return False
    try:
        value = base64.b64decode(token + "=", altchars=b"-_", validate=True)
    except ValueError:
        return False
    random, check = value[:RANDOM_BYTES], value[RANDOM_BYTES:]
    # One text only for a value: the last character of the base64 has bits to spare.
    return hmac.compare_digest(check, _check(secret, path, random)) and _encoded(value) == token


def _check(secret: str, path: str, random: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"act\0" + path.encode() + b"\0" + random, hashlib.sha256)[:CHECK_BYTES]


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
