"""The rules for an administrator's password. Raises ValueError with a sentence."""

from __future__ import annotations

PASSWORD_POINTS_MIN, PASSWORD_POINTS_MAX = 10, 1000


def password(value: str) -> str:
    if not PASSWORD_POINTS_MIN <= len(value) <= PASSWORD_POINTS_MAX:
        raise ValueError(f"The password must be {PASSWORD_POINTS_MIN} to {PASSWORD_POINTS_MAX} characters.")
    return value
