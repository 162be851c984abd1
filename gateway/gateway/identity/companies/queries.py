"""The SQL statements about companies, named for what they return."""

from __future__ import annotations

from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    Boolean,
    Text,
    and_,
    bindparam,
    case,
    false,
    func,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from chassis.auth.identity import Call, may_administer
from chassis.db.database import Connection, Database
from chassis.db.statements import CLOCK, Statement
from gateway.identity.rules import no_company
from gateway.identity.tables.companies import company as _company

_company_id = bindparam("company_id", type_=BigInteger)

_COMPANIES = Statement(select(_company).order_by(_company.c.id))
_COMPANY = Statement(select(_company).where(_company.c.id == _company_id, _company.c.ended_at.is_(None)))
_COMPANY_EVEN_ENDED = Statement(select(_company).where(_company.c.id == _company_id))
_COMPANY_FOR_UPDATE = Statement(select(_company).where(_company.c.id == _company_id).with_for_update())
_NEW_COMPANY = Statement(
    insert(_company)
    .values(
        name=bindparam("name", type_=Text),
        timezone=bindparam("timezone", type_=Text),
        external_id=bindparam("external_id", type_=Text),
        is_sandbox=bindparam("is_sandbox", type_=Boolean),
        sandbox_of=bindparam("sandbox_of", type_=BigInteger),
        content=bindparam("content", type_=Text),
    )
    .on_conflict_do_nothing(constraint="company_external_id")
    .returning(*_company.c)
)
# Locked: a lock is a write, so the answer waits until the standby has the company, see `chassis.writes.idempotency`.
_COMPANY_BY_EXTERNAL_ID = Statement(
    select(_company)
    .where(_company.c.external_id == bindparam("external_id", type_=Text))
    .with_for_update(read=True, key_share=True)
)
_is_sandbox_of = and_(_company.c.sandbox_of == _company_id, _company.c.ended_at.is_(None))
_COUNT_SANDBOXES = Statement(select(func.count()).select_from(_company).where(_is_sandbox_of))
_SANDBOXES = Statement(select(_company).where(_is_sandbox_of).order_by(_company.c.id))
_ENDED_COMPANY = Statement(
    update(_company)
    .where(_company.c.id == _company_id)
    .values(
        active=false(),
        # A file may give it to another company.
        external_id=null(),
        ended_at=CLOCK,
        version=_company.c.version + 1,
        updated_at=func.greatest(func.clock_timestamp(), _company.c.updated_at),
    )
    .returning(*_company.c)
)
_to_fill = (_company.c.content != literal_column("'empty'"), _company.c.filled_at.is_(None))
_TO_FILL = Statement(
    select(_company.c.id, _company.c.sandbox_of, _company.c.content, _company.c.timezone, _company.c.created_at)
    .where(*_to_fill, _company.c.ended_at.is_(None))
    .order_by(_company.c.id)
)
_FILLED = Statement(update(_company).where(_company.c.id == _company_id, *_to_fill).values(filled_at=CLOCK))
_ENDED = Statement(select(_company.c.id).where(_company.c.ended_at.is_not(None)).order_by(_company.c.id))
_TO_PURGE = Statement(
    select(_company.c.id, _company.c.ended_at, _company.c.console_purged_at)
    .where(_company.c.ended_at.is_not(None), _company.c.purged_at.is_(None))
    .order_by(_company.c.id)
)
_PURGED_BY_CONSOLE = Statement(
    update(_company)
    .where(_company.c.id == _company_id, _company.c.ended_at.is_not(None))
    .values(console_purged_at=case((bindparam("rows_left", type_=BigInteger) == 0, CLOCK), else_=null()))
)
_PURGED = Statement(
    update(_company)
    .where(_company.c.id == _company_id, _company.c.ended_at.is_not(None), _company.c.purged_at.is_(None))
    .values(purged_at=CLOCK)
)
_CHANGED_COMPANY = Statement(
    update(_company)
    .where(_company.c.id == _company_id)
    .values(
        name=bindparam("new_name", type_=Text),
        active=bindparam("active", type_=Boolean),
        timezone=bindparam("new_timezone", type_=Text),
        second_factor_required=bindparam("new_second_factor_required", type_=Boolean),
        external_id=bindparam("new_external_id", type_=Text),
        version=_company.c.version + 1,
        updated_at=func.greatest(func.clock_timestamp(), _company.c.updated_at),
    )
    .returning(*_company.c)
)


async def companies(database: Database) -> list[Record]:
    return await database.rows(_COMPANIES)


async def company(connection: Connection | Database, company_id: int) -> Record | None:
    """None for a company that has ended, too."""
    return await connection.row(_COMPANY, company_id=company_id)


async def company_even_ended(connection: Connection, company_id: int) -> Record | None:
    return await connection.row(_COMPANY_EVEN_ENDED, company_id=company_id)


async def administered_company(connection: Connection | Database, company_id: int, call: Call) -> Record:
    """A company that the caller administers. Raises Refusal 404."""
    row = await company(connection, company_id) if may_administer(call, company_id) else None
    if row is None:
        raise no_company()
    return row


async def company_for_update(connection: Connection, company_id: int) -> Record | None:
    return await connection.row(_COMPANY_FOR_UPDATE, company_id=company_id)


class NewCompany(NamedTuple):
    """A company to store. The columns of company have the same names."""

    name: str
    timezone: str
    external_id: str | None
    is_sandbox: bool
    sandbox_of: int | None
    """The live company whose administrators administer the sandbox."""
    content: str
    """What the sandbox starts with."""


async def new_company(connection: Connection, new: NewCompany) -> Record | None:
    """None if another company has the external id."""
    return await connection.row(_NEW_COMPANY, **new._asdict())


async def count_sandboxes(connection: Connection, company_id: int) -> int:
    """How many sandboxes of the live company have not been ended."""
    count: int = await connection.value(_COUNT_SANDBOXES, company_id=company_id)
    return count


async def sandboxes(on: Connection | Database, company_id: int) -> list[Record]:
    """The sandboxes of the live company that have not been ended, ascending by id."""
    return await on.rows(_SANDBOXES, company_id=company_id)


async def company_by_external_id(connection: Connection, external_id: str) -> Record:
    return _present(await connection.row(_COMPANY_BY_EXTERNAL_ID, external_id=external_id))


class CompanySettings(NamedTuple):
    """What an administrator or the operator sets of a company. The columns of company have the same names."""

    name: str
    active: bool
    timezone: str
    second_factor_required: bool
    external_id: str | None


async def changed_company(connection: Connection, company_id: int, settings: CompanySettings) -> Record:
    return _present(
        await connection.row(
            _CHANGED_COMPANY,
            company_id=company_id,
            new_name=settings.name,
            active=settings.active,
            new_timezone=settings.timezone,
            new_second_factor_required=settings.second_factor_required,
            new_external_id=settings.external_id,
        )
    )


async def ended_company(connection: Connection, company_id: int) -> Record:
    """Ends a sandbox."""
    return _present(await connection.row(_ENDED_COMPANY, company_id=company_id))


async def sandboxes_to_fill(database: Database) -> list[Record]:
    """The sandboxes that lack some of what they start with: id, sandbox_of, content, timezone and created_at."""
    return await database.rows(_TO_FILL)


async def note_filled(database: Database, company_id: int) -> None:
    """Notes that a sandbox has all that it starts with."""
    await database.execute(_FILLED, company_id=company_id)


async def ended_companies(database: Database) -> list[int]:
    """The ids of all sandboxes that have ended."""
    return [row["id"] for row in await database.rows(_ENDED)]


async def sandboxes_to_purge(database: Database) -> list[Record]:
    """id, ended_at and console_purged_at of the ended sandboxes of which something may be left in a database."""
    return await database.rows(_TO_PURGE)


async def note_console_purge(database: Database, company_id: int, rows_left: int) -> None:
    """Notes how much of an ended sandbox the console keeps."""
    await database.execute(_PURGED_BY_CONSOLE, company_id=company_id, rows_left=rows_left)


async def note_purge(database: Database, company_id: int) -> None:
    """Notes that nothing of an ended sandbox is left in any database."""
    await database.execute(_PURGED, company_id=company_id)


def _present(row: Record | None) -> Record:
    assert row is not None
    return row
