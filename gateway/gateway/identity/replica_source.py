"""All rows that other contexts keep as replicas, by the field of References that carries them."""

from __future__ import annotations

from sqlalchemy import select

from gateway.identity.tables.companies import company
from gateway.identity.tables.staff import staff

# The columns are the fields of the messages in makeready.events.v1.
ROWS = {
    "companies": select(
        *(company.c[name] for name in ("id", "version", "name", "active", "timezone", "is_sandbox", "clock_offset")),
        company.c.ended_at.is_not(None).label("ended"),
    ),
    "staff": select(*(staff.c[name] for name in ("id", "version", "company_id", "name", "external_id"))),
}
