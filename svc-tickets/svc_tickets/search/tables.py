"""The table by which people search tickets, written beside them and never in the transaction of their change."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Index, Table, Text, text
from sqlalchemy.dialects.postgresql import TSVECTOR

from svc_tickets.schema import metadata

# A row for each ticket, with the values by which it is found and ordered. version, comment_id and quiet_since are those
# of the ticket that the row was made of: a row that differs from its ticket in one of them is made anew.
ticket_search = Table(
    "ticket_search",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    # The ticket's last comment; 0 for none.
    Column("comment_id", BigInteger, nullable=False),
    # Null for a ticket that cannot go stale.
    Column("quiet_since", DateTime(timezone=True)),
    Column("property_id", BigInteger, nullable=False),
    Column("unit_id", BigInteger),
    Column("asset_id", BigInteger),
    Column("assignee_id", BigInteger),
    Column("vendor_id", BigInteger),
    Column("status", Text, nullable=False),
    Column("is_open", Boolean, nullable=False),
    Column("priority", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("source", Text, nullable=False),
    # The keys of the orders, see `rules`.
    Column("opened", BigInteger, nullable=False),
    Column("urgency", BigInteger, nullable=False),
    Column("waiting", BigInteger, nullable=False),
    Column("terms", TSVECTOR, nullable=False),
)
# The lists that a search may scan in the order of opening: of the company, and of one value each.
LEADS = ("unit_id", "asset_id", "vendor_id", "assignee_id", "property_id", "source", "is_open")
# The columns of the orders' keys.
KEYS = ("opened", "urgency", "waiting")

_c = ticket_search.c
for _key in KEYS:
    Index(f"ticket_search_{_key}", _c.company_id, _c[_key], _c.id)
for _lead in LEADS:
    _where = text(f"{_lead} IS NOT NULL") if _c[_lead].nullable else None
    Index(
        f"ticket_search_of_{_lead.removesuffix('_id')}",
        _c.company_id,
        _c[_lead],
        _c.opened,
        _c.id,
        postgresql_where=_where,
    )
# New entries wait in a list, and go into the index some thousand at a time: a ticket's row writes a quarter of the WAL.
# A search reads all of that list, so its limit (in kB) is low.
Index(
    "ticket_search_terms",
    _c.terms,
    postgresql_using="gin",
    postgresql_with={"fastupdate": "on", "gin_pending_list_limit": 256},
)
