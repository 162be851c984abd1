"""Whose company a caller may administer."""

from __future__ import annotations

from chassis.auth.identity import ADMINISTRATOR, Call


def administers(call: Call, company_id: int) -> bool:
    """Whether the caller looks after this company: an administrator after one, the operator after all."""
    return call.identity.kind != ADMINISTRATOR or call.identity.company_id == company_id
