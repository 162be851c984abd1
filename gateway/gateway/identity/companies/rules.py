"""The rules for a company's settings. Raises ValueError with a sentence."""

from __future__ import annotations

import functools
import re
import zoneinfo

from chassis.refusals import Refusal, invalid_request

DEFAULT_TIMEZONE = "UTC"
SANDBOXES_MAX = 5
EMPTY, COPY, DEMO = "empty", "copy", "demo"

# A file of companies makes the names of a Secret's keys of it.
_EXTERNAL_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")


def external_id_taken() -> Refusal:
    return invalid_request("Another company has that external_id; give this one another.", "external_id", status=422)


def has_external_id() -> Refusal:
    return invalid_request(
        "The company has another external_id, by which files name it; it keeps that one.", "external_id", status=422
    )


def check_new_sandbox(is_sandbox: bool, external_id: str | None) -> None:
    """Whether an administrator may create such a company. Raises Refusal."""
    if not is_sandbox:
        raise Refusal(403, "insufficient_scope", "The operator alone creates live companies; set is_sandbox.")
    if external_id is not None:
        raise Refusal(403, "insufficient_scope", "The operator alone gives an external_id; leave it out.")


def check_owner(is_sandbox: bool, sandboxes: int) -> None:
    """Whether a company may have these sandboxes, the new one included. is_sandbox: whether it is one itself. Raises
    Refusal."""
    if is_sandbox:
        raise invalid_request("A sandbox is of a live company; name one.", "sandbox_of", status=422)
    if sandboxes > SANDBOXES_MAX:
        raise invalid_request(
            f"A company has at most {SANDBOXES_MAX} sandboxes; end one of them first.", "sandbox_of", status=422
        )


def check_content(content: str, is_sandbox: bool, has_live_company: bool) -> None:
    """Whether a company may start with this content. Raises Refusal."""
    if content == DEMO and not is_sandbox:
        raise invalid_request("Only a sandbox starts with the demo's records; set is_sandbox.", "content", status=422)
    if content == COPY and not has_live_company:
        raise invalid_request("Only a sandbox of a live company is a copy of one; name it.", "content", status=422)


def check_is_sandbox(is_sandbox: bool) -> None:
    """Whether a company can be ended. Raises Refusal."""
    if not is_sandbox:
        raise invalid_request(
            "Only a sandbox can be ended; a live company is closed with active = false.", "company_id", status=422
        )


@functools.cache
def _timezones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def external_id(value: str) -> str:
    """A short name in the form of a DNS label."""
    if not _EXTERNAL_ID.fullmatch(value):
        raise ValueError("The external_id must be 1 to 60 lower-case letters, digits and hyphens, as north-side.")
    return value


def timezone(value: str) -> str:
    """An IANA name; empty means UTC."""
    value = value or DEFAULT_TIMEZONE
    if value not in _timezones():
        raise ValueError("The timezone must be an IANA name such as America/Toronto.")
    return value
