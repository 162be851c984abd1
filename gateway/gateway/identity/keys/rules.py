"""The form of an API key, and the scopes that it may have."""

from __future__ import annotations

import secrets
from typing import Literal, get_args

from chassis.refusals import Refusal

Scope = Literal["read", "write", "webhook_only"]
SCOPES: tuple[str, ...] = get_args(Scope)

# 256 random bits as 43 characters of base64url, after a prefix that secret scanners recognize.
KEY_MARK = "mk_"
KEY_CHARACTERS = len(KEY_MARK) + 43
KEY_PREFIX_CHARACTERS = len(KEY_MARK) + 8


def new_key() -> str:
    """A random bearer key. Its first KEY_PREFIX_CHARACTERS stay visible; the whole key is returned to its owner
    once."""
    return KEY_MARK + secrets.token_urlsafe(32)


def no_key() -> Refusal:
    return Refusal(404, "not_found", "No key has that id; list the company's keys to see their ids.")
