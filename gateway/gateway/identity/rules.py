"""The rules for names, emails and external ids of companies and people. Raises ValueError with a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable

from chassis.refusals import Refusal, invalid_request

NAME_POINTS_MAX = 200
EXTERNAL_ID_POINTS_MAX = 200
EMAIL_POINTS_MAX = 150

_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+\.[^@\s\x00-\x1f\x7f.]+")


def name(value: str) -> str:
    """The name without blanks at its ends."""
    value = value.strip()
    if not value:
        raise ValueError("The name must not be blank.")
    if len(value) > NAME_POINTS_MAX:
        raise ValueError(f"The name must be at most {NAME_POINTS_MAX} characters.")
    if not value.isprintable():
        raise ValueError("The name must be one line of printable characters.")
    return value


def email(value: str) -> str:
    """An address in lower case: an administrator signs in with it, so no two administrators share one."""
    value = value.strip().lower()
    if len(value) > EMAIL_POINTS_MAX or not _EMAIL.fullmatch(value) or not value.isascii():
        raise ValueError(f"The email must be an address as name@example.com of at most {EMAIL_POINTS_MAX} characters.")
    return value


def no_company() -> Refusal:
    return Refusal(404, "not_found", "No company has that id; list the companies to see their ids.")


def checked(rule: Callable[[str], str], value: str, field: str = "") -> str:
    """The value that the rule returns. Raises Refusal 400 with the rule's sentence."""
    try:
        return rule(value)
    except ValueError as error:
        raise invalid_request(str(error), field) from None
