"""The rows that other contexts keep as replicas, all there are, by the field of References that carries them."""

from __future__ import annotations

from sqlalchemy import select

from gateway.identity import tables as t

# The columns are the fields of the messages in makeready.events.v1.
ROWS = {
    "companies": select(*(t.company.c[name] for name in ("id", "version", "name", "active", "timezone"))),
    "staff": select(*(t.staff.c[name] for name in ("id", "version", "company_id", "name", "external_id"))),
}
