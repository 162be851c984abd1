"""The SQL statements about staff, named for what they return."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, bindparam, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.database import Database
from chassis.imports import Stored
from chassis.statements import TEXTS, Statement
from gateway import tables as t

STAFF = Stored(t.staff, "name", "email", "title", "created_at")

# The fields of makeready.events.v1.StaffReference.
_REFERENCES = Statement(
    select(*(t.staff.c[name] for name in ("id", "version", "company_id", "name", "external_id"))).where(
        t.staff.c.company_id == bindparam("company_id", type_=BigInteger),
        or_(
            t.staff.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))),
            t.staff.c.external_id == func.any(bindparam("external_ids", type_=TEXTS)),
        ),
    )
)


async def staff_references(
    database: Database, company_id: int, ids: Sequence[int], external_ids: Sequence[str]
) -> list[Record]:
    """Those of the company's staff who have one of the ids or external ids."""
    return await database.rows(_REFERENCES, company_id=company_id, ids=ids, external_ids=external_ids)
