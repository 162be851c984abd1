"""Companies and members of staff: the tables of an owner and of its replicas alike, and the rows that it publishes."""

from __future__ import annotations

import sqlalchemy as sa

from chassis.replicas.tables import company_replica, replica_table

metadata = sa.MetaData()
company = company_replica(metadata)
staff = replica_table(metadata, "staff")
OWNED = {
    "companies": sa.select(
        company.c.id,
        company.c.version,
        company.c.name,
        company.c.active,
        company.c.timezone,
        company.c.is_sandbox,
        company.c.clock_offset,
        company.c.ended,
    ),
    "staff": sa.select(staff.c.id, staff.c.version, staff.c.company_id, staff.c.name, staff.c.external_id),
}
