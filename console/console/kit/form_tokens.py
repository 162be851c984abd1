"""The form token: the hidden field `act` of every form.

It has 16 random bytes, the day on which it was made, and an HMAC of these and of the form's path. The HMAC's key is
that of one person, in one company, in one browser: see `kit.browser_secret`. So a form of another site, of another
person, of another company or of another page is refused. It outlives the session: the same person may send it after a
new sign-in.

The RPC behind the form gets it as its idempotency key: a double click, a reload, or Back and send again is the same
action. Services remember keys for 30 days, so a token is refused before that. A page that a browser shows without a
network is sent several times: each time is an action of its own, with a mark of the browser's behind the token.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
import secrets

FIELD = "act"
RANDOM_BYTES, CHECK_BYTES = 16, 14
DAYS_MAX = 28
CHARACTERS_MAX = 48
_DAYS = 1 << 16
_TOKEN = re.compile(r"([A-Za-z0-9_-]{43})(~[A-Za-z0-9]{4})?")


def new_token(key: bytes, path: str, now: datetime.datetime) -> str:
    """The value for a form that is sent to `path`."""
    value = secrets.token_bytes(RANDOM_BYTES) + _day(now).to_bytes(2)
    return _encoded(value + _check(key, path, value))


def is_valid(token: str, key: bytes, path: str, now: datetime.datetime) -> bool:
    """Whether `new_token` made this value for the same key and path, DAYS_MAX days ago at most."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return False
    whole = base64.b64decode(match[1] + "=", altchars=b"-_")
    value, check = whole[:-CHECK_BYTES], whole[-CHECK_BYTES:]
    age = (_day(now) - int.from_bytes(value[RANDOM_BYTES:]) + 1) % _DAYS  # the clock of another console may be ahead
    # One text only for a value: the last character of the base64 has bits to spare.
    is_own = hmac.compare_digest(check, _check(key, path, value)) and _encoded(whole) == match[1]
    return is_own and age <= DAYS_MAX + 1


def _day(now: datetime.datetime) -> int:
    return int(now.timestamp()) // 86400 % _DAYS


def _check(key: bytes, path: str, value: bytes) -> bytes:
    return hmac.digest(key, b"act\0" + path.encode() + b"\0" + value, hashlib.sha256)[:CHECK_BYTES]


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
