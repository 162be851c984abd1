"""The SQL statements about staff, named for what they return."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, Boolean, Integer, and_, bindparam, func, insert, not_, or_, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, Statement, param
from chassis.imports.importer import ImportTable
from chassis.imports.tables import is_leaving
from chassis.lists.lookup import Identified
from chassis.lists.paging import Pages
from gateway.identity.accounts.tables import account
from gateway.identity.staff.records import MEMBER
from gateway.identity.tables.companies import company
from gateway.identity.tables.staff import staff
from makeready.common.v1 import lookup_pb2
from makeready.identity.v1.staff_pb2 import ListMembersRequest

MEMBERS_PAGE = Pages(MEMBER.select(staff), staff.c.id, {}, request=ListMembersRequest)
IDENTIFIED = Identified(lookup_pb2.RECORD_KIND_STAFF, staff)
STAFF = ImportTable(staff, "name", "email", "title", "created_at")

_company_id = bindparam("company_id", type_=BigInteger)
_of_company = staff.c.company_id == _company_id

# The fields of makeready.events.v1.StaffReference.
_references = select(*(staff.c[name] for name in ("id", "version", "company_id", "name", "external_id"))).where(
    _of_company,
    or_(
        staff.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))),
        staff.c.external_id == func.any(bindparam("external_ids", type_=TEXTS)),
    ),
)
_REFERENCES, _GIVEN = Statement(_references), Statement(_references.where(not_(is_leaving(staff, "staff"))))


async def staff_given(
    database: Database, company_id: int, ids: Sequence[int], external_ids: Sequence[str]
) -> list[Record]:
    """As `staff_references`, for a context that lacks them: without those that an undo is about to withdraw."""
    return await database.rows(_GIVEN, company_id=company_id, ids=ids, external_ids=external_ids)


async def staff_references(
    database: Database | Connection, company_id: int, ids: Sequence[int], external_ids: Sequence[str]
) -> list[Record]:
    """The company's members of staff that have one of the ids or external ids."""
    return await database.rows(_REFERENCES, company_id=company_id, ids=ids, external_ids=external_ids)


# The fields of a member of staff that the back office sets.
_SET = ("name", "email", "title", "external_id")
_staff_id = bindparam("staff_id", type_=BigInteger)
_WILD, _ESCAPED = re.compile(r"[\\%_]"), r"\\\g<0>"

# A member with what is known of the account.
_MEMBERS = (
    select(*staff.c, account.c.id.label("account_id"), account.c.last_sign_in_at, company.c.is_sandbox)
    .join_from(staff, company, company.c.id == staff.c.company_id)
    .outerjoin(account, and_(account.c.company_id == staff.c.company_id, account.c.staff_id == staff.c.id))
)
_MEMBER = Statement(_MEMBERS.where(_of_company, staff.c.id == _staff_id))
_STAFF_PAGE = Statement(
    _MEMBERS.where(
        _of_company,
        staff.c.id > bindparam("after_id", type_=BigInteger),
        func.lower(func.concat_ws(" ", *(staff.c[name] for name in _SET))).like(func.all(param("patterns", TEXTS))),
        func.coalesce(staff.c.active == param("wanted_active", Boolean), true()),
    )
    .order_by(staff.c.id)
    .limit(bindparam("rows", type_=Integer))
)
_FOR_UPDATE = Statement(select(staff).where(_of_company, staff.c.id == _staff_id).with_for_update(key_share=True))
_ADDED = Statement(
    insert(staff)
    .values({name: param(name, staff.c[name].type) for name in ("company_id", *_SET, "created_at", "source")})
    .returning(*staff.c)
)
_CHANGED = Statement(
    update(staff)
    .where(_of_company, staff.c.id == _staff_id)
    .values({name: param(f"new_{name}", staff.c[name].type) for name in _SET} | {"version": staff.c.version + 1})
    .returning(*staff.c)
)


_SET_ACTIVE = Statement(
    update(staff).where(_of_company, staff.c.id == _staff_id).values(active=bindparam("new_active", type_=Boolean))
)


async def member(on: Connection | Database, company_id: int, staff_id: int) -> Record | None:
    """The member of staff, with the account's id if they have been invited."""
    return await on.row(_MEMBER, company_id=company_id, staff_id=staff_id)


async def set_active(connection: Connection, company_id: int, staff_id: int, active: bool) -> None:
    await connection.execute(_SET_ACTIVE, company_id=company_id, staff_id=staff_id, new_active=active)


async def staff_page(
    database: Database, company_id: int, after_id: int, rows: int, words: Sequence[str] = (), active: bool | None = None
) -> list[Record]:
    """Members of the company's staff ascending by id, with each of these words and, if given, in this state."""
    patterns = [f"%{_WILD.sub(_ESCAPED, word.lower())}%" for word in words]
    return await database.rows(
        _STAFF_PAGE,
        company_id=company_id,
        after_id=after_id,
        rows=rows,
        patterns=patterns,
        wanted_active=active,
    )


async def member_for_update(connection: Connection, company_id: int, staff_id: int) -> Record | None:
    return await connection.row(_FOR_UPDATE, company_id=company_id, staff_id=staff_id)


async def added_member(
    connection: Connection, company_id: int, values: Mapping[str, object], at: datetime.datetime
) -> Record:
    row: dict[str, object] = {**dict.fromkeys(_SET), **values}
    added = await connection.row(_ADDED, company_id=company_id, created_at=at, source="staff", **row)
    assert added is not None
    return added


async def changed_member(connection: Connection, before: Record, values: Mapping[str, object]) -> Record:
    new = {f"new_{name}": values[name] if name in values else before[name] for name in _SET}
    changed = await connection.row(_CHANGED, company_id=before["company_id"], staff_id=before["id"], **new)
    assert changed is not None
    return changed
