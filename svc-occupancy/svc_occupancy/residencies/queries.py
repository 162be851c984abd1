"""The SQL statements of residencies. Notices and move-ins lock the unit's row before they read its turns."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, Text, and_, cast, delete, func, literal_column, null, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import TIME, Query, Statement, param
from chassis.lists.updated_since import is_of, stretch
from chassis.writes.idempotency import IdempotentWrite
from svc_occupancy import schema
from svc_occupancy.residencies import rules, tables
from svc_occupancy.turns import tables as turn_tables
from svc_occupancy.turns.queries import LOOK
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units import tables as unit_tables
from svc_occupancy.units.queries import put_states

_company_id = param("company_id", BigInteger)

# The transition's columns that a notice sets. Their parameters have the prefix "turn_".
_NOTICE_CHANGES = (
    "move_out_date",
    "occupancy_source",
    "occupancy_fed_at",
    "updated_at",
    "notice_external_id",
    "ntv_reason_code",
    "departure_destination_code",
    "notes",
    "vacated_on",
    "planned_version",
)

_changed = update(turn_tables.transition).where(turn_tables.transition.c.company_id == _company_id)
_version = turn_tables.transition.c.version + literal_column("1")

_leave = _changed.where(turn_tables.transition.c.id == param("turn_id", BigInteger)).values(
    {name: param(f"turn_{name}", turn_tables.transition.c[name].type) for name in _NOTICE_CHANGES}
    | {"version": _version}
)
_complete = _changed.where(turn_tables.transition.c.id == func.any(param("completed_ids", ARRAY(BigInteger)))).values(
    status=literal_column("'completed'", Text), version=_version, updated_at=param("completed_at", TIME)
)

# Both take the unit's new state as array parameters with the prefix "state_": one row, or none if it stays.
NOTICE = IdempotentWrite(
    schema.idempotency,
    schema.unit,
    LOOK,
    inserts=[schema.outbox, unit_tables.unit_status_change],
    updates=[_leave, put_states("state_")],
)
MOVE_IN = IdempotentWrite(
    schema.idempotency,
    schema.unit,
    LOOK,
    inserts=[
        turn_tables.transition,
        tables.lease,
        tables.party,
        schema.outbox,
        unit_tables.unit_status_change,
    ],
    updates=[_complete, put_states("state_")],
    # A turn is inserted only under its unit's lock, so these cannot occur; the unique indexes guarantee it.
    refusals={
        "transition_active_in_unit": lambda: rules.refused("already_occupied"),
        "transition_successor": lambda: rules.refused("already_planned"),
    },
)


_turn, _lease, _party = turn_tables.transition, tables.lease, tables.party
_of_unit, _order = stretch([(_turn.c.company_id, _company_id), (_turn.c.unit_id, param("unit_id", BigInteger))], [])
_newest = (
    select(_turn)
    .where(*_of_unit, _turn.c.id < param("before_id", BigInteger))
    .order_by(*(column.desc() for column in _order), _turn.c.id.desc())
    .limit(param("rows", Integer))
    .subquery("newest")
)
RESIDENCIES = Statement(
    select(
        *_newest.c,
        _lease.c.id.label("lease_id"),
        _lease.c.start_date.label("lease_start_date"),
        _lease.c.end_date.label("lease_end_date"),
    )
    .select_from(
        _newest.outerjoin(_lease, and_(_lease.c.company_id == _company_id, _lease.c.transition_id == _newest.c.id))
    )
    .order_by(_newest.c.id.desc())
)
PARTIES = Statement(
    select(_party)
    .where(
        _party.c.company_id == _company_id,
        _party.c.transition_id == func.any(param("turn_ids", ARRAY(BigInteger))),
    )
    .order_by(_party.c.transition_id, _party.c.position)
)


async def residencies(connection: Connection, company_id: int, unit_id: int, before_id: int, rows: int) -> list[Record]:
    """A unit's turns, newest first, each with its lease; null if it has none."""
    return await connection.rows(RESIDENCIES, company_id=company_id, unit_id=unit_id, before_id=before_id, rows=rows)


async def parties(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> list[Record]:
    """The parties of these turns' leases, in their stored order."""
    return await connection.rows(PARTIES, company_id=company_id, turn_ids=turn_ids) if turn_ids else []


# People who are forgotten.

_party_id = param("party_id", BigInteger)
_PARTY = Statement(select(_party).where(_party.c.company_id == _company_id, _party.c.id == _party_id))
_LOCKED_PARTY = Statement(
    select(_party).where(_party.c.company_id == _company_id, _party.c.id == _party_id).with_for_update()
)
SAME_EMAIL_ROWS = 20


class SameEmail(NamedTuple):
    """A party of another lease."""

    party_id: int
    first_name: str | None
    last_name: str | None
    turn_id: int
    unit_id: int
    unit: str


def _same_email() -> Query[SameEmail]:
    conditions, order = stretch([(_party.c.company_id, _company_id), (tables.EMAIL_KEY, param("email", Text))], [])
    matches = (
        select(_party.c.id, _party.c.transition_id, _party.c.first_name, _party.c.last_name)
        # A literal condition, because the index is partial.
        .where(*conditions, _party.c.email.is_not(None), _party.c.id != _party_id)
        .order_by(*(column.desc() for column in order), _party.c.id.desc())
        .limit(literal_column(str(SAME_EMAIL_ROWS)))
        .subquery("matches")
    )
    of_turn = and_(_turn.c.company_id == _company_id, _turn.c.id == matches.c.transition_id)
    return Query(
        SameEmail,
        select(
            matches.c.id.label("party_id"), matches.c.first_name, matches.c.last_name,
            matches.c.transition_id.label("turn_id"), _turn.c.unit_id, schema.unit.c.name.label("unit"),
        )
        .select_from(matches.join(_turn, of_turn).join(schema.unit, schema.unit.c.id == _turn.c.unit_id))
        .order_by(matches.c.id.desc()),
    )  # fmt: skip


SAME_EMAIL = _same_email()
_FORGET = Statement(
    update(_party)
    .where(_party.c.company_id == _company_id, _party.c.id == _party_id)
    .values({name: null() for name in tables.PERSONAL} | {"forgotten_at": param("at", TIME)})
)
_found = tables.party_search.c
_UNFIND = Statement(delete(tables.party_search).where(_found.company_id == _company_id, _found.id == _party_id))
NOTICE_WORDS = ("ntv_reason_code", "departure_destination_code", "notes")
# The public record has none of these columns: neither its version nor its updated_at changes.
_FORGET_NOTICE = Statement(
    update(_turn)
    .where(_turn.c.company_id == _company_id, _turn.c.id == param("turn_id", BigInteger))
    .values({name: null() for name in NOTICE_WORDS})
)
_ledger = schema.idempotency
_REPLIES = Statement(
    select(_ledger.c.api_key_id, _ledger.c.idempotency_key, _ledger.c.reply).where(
        # By the index of instants: the key's has all claims of a company.
        *is_of([(_ledger.c.company_id, _company_id)]),
        _ledger.c.recorded_at >= param("after", TIME),
        _ledger.c.recorded_at <= param("before", TIME),
    )
)
_SAVE_REPLY = Statement(
    update(_ledger)
    .where(
        _ledger.c.company_id == _company_id,
        _ledger.c.api_key_id == param("api_key_id", BigInteger),
        _ledger.c.idempotency_key == param("idempotency_key", Text),
    )
    .values(reply=param("reply", _ledger.c.reply.type))
)


async def party(connection: Connection | Database, company_id: int, party_id: int) -> Record | None:
    return await connection.row(_PARTY, company_id=company_id, party_id=party_id)


async def locked_party(connection: Connection, company_id: int, party_id: int) -> Record | None:
    return await connection.row(_LOCKED_PARTY, company_id=company_id, party_id=party_id)


async def same_email(database: Database, company_id: int, party: Record) -> list[SameEmail]:
    """Other parties with the party's e-mail address, newest first."""
    if not party["email"]:
        return []
    lowered = await database.value(_LOWER, email=party["email"])
    return await SAME_EMAIL.rows(database, company_id=company_id, email=lowered, party_id=party["id"])


# PostgreSQL and Python differ in some letters.
_LOWER = Statement(select(func.lower(param("email", Text))))


async def forget(connection: Connection, company_id: int, party_id: int, at: datetime.datetime) -> None:
    """Removes who the party is, and what the search finds it by. The party's row is locked: whatever was indexing it
    has committed."""
    await connection.execute(_FORGET, company_id=company_id, party_id=party_id, at=at)
    await connection.execute(_UNFIND, company_id=company_id, party_id=party_id)


def has_notice_words(turn: StoredTurn) -> bool:
    """Whether a turn has words of a notice."""
    return any(getattr(turn, name) is not None for name in NOTICE_WORDS)


_audit = schema.audit
_forgotten_turn = cast(_audit.c.after["turn_id"].astext, BigInteger)
_turn_ids = param("turn_ids", ARRAY(BigInteger))
_FORGOTTEN_AT = Statement(
    select(_forgotten_turn.label("turn_id"), func.max(_audit.c.recorded_at).label("forgotten_at"))
    .where(
        _audit.c.company_id == _company_id,
        _audit.c.subject == literal_column("'unit'"),
        _audit.c.subject_id.in_(
            select(_turn.c.unit_id).where(_turn.c.company_id == _company_id, _turn.c.id == func.any(_turn_ids))
        ),
        _audit.c.action == literal_column("'unit.person_forgotten'"),
        _forgotten_turn == func.any(_turn_ids),
    )
    .group_by(_forgotten_turn)
)


async def forgotten_at(database: Database, company_id: int, turn_ids: Sequence[int]) -> dict[int, datetime.datetime]:
    """When a person of these turns was forgotten last, by turn; without those of which nobody was."""
    rows = await database.rows(_FORGOTTEN_AT, company_id=company_id, turn_ids=list(turn_ids))
    return {row["turn_id"]: row["forgotten_at"] for row in rows}


async def forget_notice(connection: Connection, company_id: int, turn_id: int) -> None:
    await connection.execute(_FORGET_NOTICE, company_id=company_id, turn_id=turn_id)


async def replies(
    connection: Connection, company_id: int, after: datetime.datetime, before: datetime.datetime
) -> list[Record]:
    """The stored replies of the company's writes between two instants."""
    return await connection.rows(_REPLIES, company_id=company_id, after=after, before=before)


async def save_reply(connection: Connection, company_id: int, stored: Record, reply: bytes) -> None:
    """stored: one of `replies`."""
    await connection.execute(
        _SAVE_REPLY,
        company_id=company_id,
        api_key_id=stored["api_key_id"],
        idempotency_key=stored["idempotency_key"],
        reply=reply,
    )
