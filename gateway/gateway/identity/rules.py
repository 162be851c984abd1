"""What a company, an administrator and a key may be: pure, standard library only. Raises ValueError with a sentence."""

from __future__ import annotations

import functools
import re
import secrets
import zoneinfo
from typing import Literal, get_args

Scope = Literal["read", "write", "webhook_only"]
SCOPES: tuple[str, ...] = get_args(Scope)
NAME_POINTS_MAX = 200
EXTERNAL_ID_POINTS_MAX = 200
EMAIL_POINTS_MAX = 150
PASSWORD_POINTS_MIN, PASSWORD_POINTS_MAX = 10, 1000
DEFAULT_TIMEZONE = "UTC"

# 256 random bits in 43 characters of base64url behind a mark that secret scanners find.
KEY_MARK = "mk_"
KEY_CHARACTERS = len(KEY_MARK) + 43
KEY_PREFIX_CHARACTERS = len(KEY_MARK) + 8

_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+\.[^@\s\x00-\x1f\x7f.]+")


def new_key() -> str:
    """A bearer key nobody has. Its first KEY_PREFIX_CHARACTERS are shown to people, the rest to its owner once."""
    return KEY_MARK + secrets.token_urlsafe(32)


def name(value: str) -> str:
    """A name for people, without blanks around it."""
    value = value.strip()
    if not value:
        raise ValueError("The name must not be blank.")
    if len(value) > NAME_POINTS_MAX:
        raise ValueError(f"The name must be at most {NAME_POINTS_MAX} characters.")
    if not value.isprintable():
        raise ValueError("The name must be one line of printable characters.")
    return value


def email(value: str) -> str:
    """An address in lower case: an administrator signs in with it, so it names one administrator alone."""
    value = value.strip().lower()
    if len(value) > EMAIL_POINTS_MAX or not _EMAIL.fullmatch(value) or not value.isascii():
        raise ValueError(f"The email must be an address as name@example.com of at most {EMAIL_POINTS_MAX} characters.")
    return value


def password(value: str) -> str:
    if not PASSWORD_POINTS_MIN <= len(value) <= PASSWORD_POINTS_MAX:
        raise ValueError(f"The password must be {PASSWORD_POINTS_MIN} to {PASSWORD_POINTS_MAX} characters.")
    return value


@functools.cache
def _timezones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def timezone(value: str) -> str:
    """An IANA name; empty: UTC."""
    value = value or DEFAULT_TIMEZONE
    if value not in _timezones():
        raise ValueError("The timezone must be an IANA name such as America/Toronto.")
    return value
