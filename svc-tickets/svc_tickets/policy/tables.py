"""The table of ticket policies."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Integer, Table, text

from svc_tickets.policy import rules
from svc_tickets.schema import metadata

ticket_policy = Table(
    "ticket_policy",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("photo_required_to_complete", Boolean, nullable=False, server_default=text("false")),
    Column("stale_after_hours", Integer, nullable=False, server_default=text(str(rules.STALE_AFTER_HOURS))),
    CheckConstraint(
        f"stale_after_hours BETWEEN 1 AND {rules.STALE_AFTER_HOURS_MAX}", name="ticket_policy_stale_after_hours"
    ),
)
