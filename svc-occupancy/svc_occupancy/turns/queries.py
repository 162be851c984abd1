"""The SQL statements of turns: served turns, and those of a locked unit. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Boolean, Column, FromClause, and_, func, literal_column, or_, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import LateralFromClause

from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany, array_rows
from chassis.db.statements import TIME, Expression, Query, Selection, Statement, param
from chassis.lists.lookup import Identified
from chassis.lists.paging import Inside, Pages
from chassis.lists.updated_since import is_of, stretch
from chassis.records.shapes import Source
from chassis.writes.editing import EditableTable
from makeready.common.v1 import lookup_pb2
from makeready.occupancy.v1.turns_pb2 import ListTurnsRequest
from svc_occupancy import schema
from svc_occupancy.turns import records, rules, tables
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units import tables as unit_tables
from svc_occupancy.units.rules import UnitState

_turns = records.TURN.select(
    tables.transition.join(schema.property_, schema.property_.c.id == tables.transition.c.property_id).join(
        schema.unit, schema.unit.c.id == tables.transition.c.unit_id
    )
)


def _is(column: str) -> ColumnElement[bool]:
    return tables.transition.c[column] == param(column, tables.transition.c[column].type)


TURN_DOCUMENTS = Documents(records.TURN, _turns, tables.transition)
TURNS_PAGE = Pages(
    TURN_DOCUMENTS.rows,
    tables.transition.c.id,
    {name: _is(name) for name in ("property_id", "unit_id", "status")}
    | {"updated_since": tables.transition.c.updated_at >= param("updated_since", TIME)},
    statuses=rules.TRANSITION_STATUSES,
    places=("property_id", "unit_id"),
    inside=[Inside("unit_id", "property_id", schema.unit)],
    request=ListTurnsRequest,
)

TURN_CHANGES = Changes("turn", TURN_DOCUMENTS)
# In the form of the two indexes. A feed may give several turns one external_id.
_is_imported = literal_column("source = 'import'", Boolean)
_is_fed = literal_column("source <> 'import'", Boolean)
IDENTIFIED = (
    Identified(lookup_pb2.RECORD_KIND_TURN, tables.transition, [_is_imported]),
    Identified(
        lookup_pb2.RECORD_KIND_TURN,
        tables.transition,
        [_is_fed],
        [tables.transition.c.unit_id, tables.transition.c.id],
    ),
)

SERVED_TURN = Statement(_turns.where(_is("company_id"), tables.transition.c.id == param("entity_id", BigInteger)))


_TURNS = Statement(
    _turns.where(_is("company_id"), tables.transition.c.id == func.any(param("turn_ids", ARRAY(BigInteger))))
)


async def turns(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> list[Record]:
    """The columns of `records.TURN`, in any order."""
    return await connection.rows(_TURNS, company_id=company_id, turn_ids=turn_ids) if turn_ids else []


_company_id = param("company_id", BigInteger)
# The served columns that are not in `transition` but in the unit and property, with their labels in LOOK.
_PLACE_LABELS = {
    column: f"held_{column.table.name}_{column.name}"
    for column in records.TURN.columns
    if isinstance(column, Column) and column.table is not tables.transition
}
_TRANSITION_NAMES = {tables.transition.c[name]: name for name in StoredTurn.__struct_fields__}


def first_planned(company_id: Expression, unit_id: Expression, name: str) -> LateralFromClause:
    """The first of a unit's planned turns, as a lateral table called `name`: the one behind no other planned turn."""
    return _end_of_row(company_id, unit_id, name, is_first=True)


def planned_in(turn: FromClause, company_id: Expression, unit_id: Expression) -> list[ColumnElement[bool]]:
    """The condition for a unit's planned turns, which are few. turn: `transition`, or an alias of it."""
    return [turn.c.unit_id == unit_id, tables.planned(turn), *is_of([(turn.c.company_id, company_id)])]


def _end_of_row(company_id: Expression, unit_id: Expression, name: str, *, is_first: bool) -> LateralFromClause:
    turn, other = (tables.transition.alias(f"{name}_{role}") for role in ("turn", "neighbour"))
    neighbour = select(other.c.id).where(
        *planned_in(other, turn.c.company_id, turn.c.unit_id),
        other.c.id == turn.c.predecessor_id if is_first else other.c.predecessor_id == turn.c.id,
    )
    order = (turn.c.move_in_date, turn.c.id)
    return (
        select(*(turn.c[label] for label in _TRANSITION_NAMES.values()))
        .where(*planned_in(turn, company_id, unit_id), ~neighbour.offset(literal_column("0")).exists())
        .order_by(*(order if is_first else (column.desc() for column in order)))
        .limit(literal_column("1"))
        .lateral(name)
    )


def _look(unit_id: Expression) -> Selection:
    """The unit with this id, with its property, if both have arrived; with its current turn, its first
    planned turn, the last one's id and move_out_date, its state, the company's timezone and the offset of its clock,
    each null if it does not exist."""
    turn, state, company = tables.transition, unit_tables.unit_state, schema.company
    here = and_(turn.c.company_id == _company_id, turn.c.unit_id == schema.unit.c.id, tables.is_current)
    following = first_planned(_company_id, schema.unit.c.id, "following")
    last = _end_of_row(_company_id, schema.unit.c.id, "last", is_first=False)
    has_state = and_(state.c.company_id == _company_id, state.c.unit_id == schema.unit.c.id)
    return (
        select(
            *(column.label(label) for column, label in _PLACE_LABELS.items()),
            *_TRANSITION_NAMES,
            *(following.c[name].label(f"next_{name}") for name in _TRANSITION_NAMES.values()),
            last.c.id.label("last_id"),
            last.c.move_out_date.label("last_move_out_date"),
            state.c.version.label("state_version"),
            state.c.unit_status,
            state.c.projected_ready_on.label("unit_ready_on"),
            company.c.timezone,
            company.c.clock_offset,
        )
        .select_from(
            schema.unit.join(schema.property_, schema.property_.c.id == schema.unit.c.property_id)
            .outerjoin(turn, here)
            .outerjoin(following, true())
            .outerjoin(last, true())
            .outerjoin(state, has_state)
            .outerjoin(company, and_(company.c.id == _company_id, company.c.version > 0))
        )
        .where(
            # Only the key's index fits this form: with few units known, the planner may choose the company's index.
            *is_of([(schema.unit.c.company_id, _company_id)]),
            schema.unit.c.id == unit_id,
            schema.unit.c.version > 0,
            schema.property_.c.version > 0,
        )
    )


def _look_at_several() -> Statement:
    """Each of the units `:unit_ids`, in that order. By keys only, whatever the statistics: OFFSET prevents joins of
    whole tables."""
    named = array_rows("named", {"ids": BigInteger()}, prefix="unit_", numbered=True)
    look = _look(named.c.ids).offset(literal_column("0")).lateral("look")
    return Statement(select(look).select_from(named.join(look, true())).order_by(named.c.n))


LOOK = _look(param("unit_id", BigInteger))
LOOK_AT_SEVERAL = _look_at_several()


def by_column(turn: StoredTurn) -> dict[Source, object]:
    """A stored turn's values by column, for `Renderer.of_values`."""
    return {column: getattr(turn, name) for column, name in _TRANSITION_NAMES.items()}


class LastPlanned(NamedTuple):
    """The last of a unit's planned turns."""

    id: int
    move_out_date: datetime.date | None


class HeldUnit:
    """A unit whose row is locked, with its row of active turns and its state."""

    def __init__(self, company_id: int, row: Record) -> None:
        """row: a row of `LOOK`."""
        self._places: dict[Source, Any] = {column: row[label] for column, label in _PLACE_LABELS.items()}
        self.id: int = self._places[schema.unit.c.id]
        self.property_id: int = self._places[schema.property_.c.id]
        names = _TRANSITION_NAMES.values()
        self.turn = None if row["id"] is None else StoredTurn(*(row[name] for name in names))
        """The current turn; None if the unit has none."""
        self.next = None if row["next_id"] is None else StoredTurn(*(row[f"next_{name}"] for name in names))
        """The first planned turn; None if none is planned."""
        self.last = None if row["last_id"] is None else LastPlanned(row["last_id"], row["last_move_out_date"])
        """The last planned turn; None if none is planned."""
        self.state = UnitState(company_id, self.id, row["state_version"] or 0, row["unit_status"], row["unit_ready_on"])
        self.timezone: str | None = row["timezone"]
        """The company's timezone; None if the company has not arrived."""
        self.clock_offset: datetime.timedelta | None = row["clock_offset"]
        """That of the company's clock; None if the company has not arrived."""

    def shown(self, turn: StoredTurn) -> dict[Source, object]:
        """The values of `records.TURN`'s columns for a turn of this unit."""
        return self._places | by_column(turn)


_unit_id, _turn_id = param("unit_id", BigInteger), param("turn_id", BigInteger)

_LOCK_UNIT = Statement(
    select(schema.unit.c.id)
    .where(*is_of([(schema.unit.c.company_id, _company_id)]), schema.unit.c.id == _unit_id)
    .with_for_update(key_share=True)
)
_LOOK = Statement(LOOK)


async def held_unit(connection: Connection, company_id: int, unit_id: int) -> HeldUnit | None:
    """Locks the unit, then reads it; None if it has not arrived, or only after the lock."""
    if await connection.row(_LOCK_UNIT, company_id=company_id, unit_id=unit_id) is None:
        return None
    row = await connection.row(_LOOK, company_id=company_id, unit_id=unit_id)
    return None if row is None else HeldUnit(company_id, row)


async def held_units(connection: Connection, company_id: int, unit_ids: Sequence[int]) -> list[HeldUnit]:
    """Reads units that are locked already, in this order."""
    rows = await connection.rows(LOOK_AT_SEVERAL, company_id=company_id, unit_ids=unit_ids)
    return [HeldUnit(company_id, row) for row in rows]


_STORED_TURN = Query(
    StoredTurn,
    select(*_TRANSITION_NAMES).where(tables.transition.c.company_id == _company_id, tables.transition.c.id == _turn_id),
)


async def stored_turn(connection: Connection | Database, company_id: int, turn_id: int) -> StoredTurn | None:
    return await _STORED_TURN.row(connection, company_id=company_id, turn_id=turn_id)


_of_unit, _by_id = stretch([(tables.transition.c.company_id, _company_id), (tables.transition.c.unit_id, _unit_id)], [])


def _newest(*conditions: ColumnElement[bool]) -> Query[StoredTurn]:
    return Query(
        StoredTurn,
        select(*_TRANSITION_NAMES)
        .where(*_of_unit, *conditions)
        .order_by(*(column.desc() for column in _by_id), tables.transition.c.id.desc())
        .limit(literal_column("1")),
    )


NEWEST_BEGUN, NEWEST = _newest(tables.transition.c.has_begun), _newest()


async def turn_of_vacant_unit(connection: Connection, company_id: int, unit: HeldUnit) -> StoredTurn | None:
    """The turn that an event of a unit without a current turn shows: the newest that has begun, else the first planned
    one, else the newest of all; None if the unit has none."""
    place = {"company_id": company_id, "unit_id": unit.id}
    begun = await NEWEST_BEGUN.row(connection, **place)
    return begun or unit.next or await NEWEST.row(connection, **place)


_MOVE_UP = Statement(
    update(tables.transition)
    .where(
        tables.transition.c.company_id == _company_id,
        tables.transition.c.predecessor_id == _turn_id,
        tables.transition.c.predecessor_id.is_not(None),
        tables.is_active,
    )
    .values(predecessor_id=param("new_predecessor_id", BigInteger))
)


async def move_up(connection: Connection, company_id: int, turn_id: int, predecessor_id: int | None) -> None:
    """Puts the successor of a turn that leaves the row behind the turn before it. No public record shows it, so the
    successor's version stays."""
    await connection.execute(_MOVE_UP, company_id=company_id, turn_id=turn_id, new_predecessor_id=predecessor_id)


# The columns of a notice.
NOTICE_NAMES = ("notice_external_id", "ntv_reason_code", "departure_destination_code", "notes")
EDITABLE_TURNS = EditableTable(
    tables.transition,
    *("property_id", "unit_id", "status", "move_in_date", "move_out_date", "projected_ready_on"),
    *("occupancy_source", "occupancy_fed_at", *NOTICE_NAMES, "vacated_on"),
    *("has_begun", "predecessor_id", "began_at", "planned_version"),
)


class UnitPlace(NamedTuple):
    """A unit and its property, with their names."""

    unit_id: int
    unit: str
    property_id: int
    property: str


_PLACE = Query(
    UnitPlace,
    select(
        schema.unit.c.id.label("unit_id"),
        schema.unit.c.name.label("unit"),
        schema.property_.c.id.label("property_id"),
        schema.property_.c.name.label("property"),
    )
    .select_from(schema.unit.join(schema.property_, schema.property_.c.id == schema.unit.c.property_id))
    .where(*is_of([(schema.unit.c.company_id, _company_id)]), schema.unit.c.id == _unit_id, schema.unit.c.version > 0),
)


async def place(connection: Connection | Database, company_id: int, unit_id: int) -> UnitPlace | None:
    """The unit with its property; None if the company has no such unit."""
    return await _PLACE.row(connection, company_id=company_id, unit_id=unit_id)


def has_departed(day: Expression, _now: Expression) -> Sequence[ColumnElement[bool]]:
    """The condition for current turns whose resident has left. day: in the company, dates before it are over."""
    return [tables.is_current, tables.leaves, tables.transition.c.move_out_date < day]


def is_to_begin(day: Expression, _now: Expression) -> Sequence[ColumnElement[bool]]:
    """The condition for planned turns that begin, as `rules.begins_on` says. day: today in the company."""
    turn, current, before = tables.transition, tables.transition.alias("current"), tables.transition.alias("before")
    stays = and_(
        current.c.company_id == turn.c.company_id,
        current.c.unit_id == turn.c.unit_id,
        tables.begun(current),
        current.c.vacated_on.is_(None),
        or_(current.c.move_out_date.is_(None), current.c.move_out_date > day),
    )
    is_behind = and_(
        before.c.company_id == turn.c.company_id, before.c.id == turn.c.predecessor_id, tables.planned(before)
    )
    in_the_way = (select(current.c.id).where(stays), select(before.c.id).where(is_behind))
    # By keys only, whatever the statistics: OFFSET prevents joins of whole tables.
    looked_up = (rows.correlate(turn, day.table).offset(literal_column("0")).exists() for rows in in_the_way)
    return [tables.is_planned, turn.c.move_in_date <= day, *(~row for row in looked_up)]


def next_arrival(company_id: Expression) -> Selection:
    """When the company's next planned turn begins, as `rules.begins_on` says, as one row with `due`.

    One begins on its own date, unless a resident stays longer: then on the day when that one leaves. Of those days only
    such are looked at as come before the first departure is over.
    """
    turn, current, before = (tables.transition.alias(name) for name in ("arriving", "staying", "in_front"))
    leaving = tables.transition.alias("leaving")

    def looked_up(turns: FromClause, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
        # By keys only, whatever the statistics: OFFSET prevents joins of whole tables.
        return select(turns.c.id).where(*conditions).offset(literal_column("0")).exists()

    def first(dates: Selection) -> ColumnElement[datetime.date]:
        # Inside of a function, a subquery would be about all companies.
        return dates.limit(literal_column("1")).correlate(company_id.table).scalar_subquery()

    is_behind = (before.c.company_id == turn.c.company_id, before.c.id == turn.c.predecessor_id, tables.planned(before))
    is_first = ~looked_up(before, *is_behind)
    is_planned = (turn.c.company_id == company_id, tables.planned(turn), is_first)
    in_unit = (current.c.company_id == turn.c.company_id, current.c.unit_id == turn.c.unit_id)
    stays = and_(*in_unit, tables.begun(current), current.c.vacated_on.is_(None))
    stays_longer = and_(stays, or_(current.c.move_out_date.is_(None), current.c.move_out_date > turn.c.move_in_date))
    by_plan = select(turn.c.move_in_date).where(*is_planned, ~looked_up(current, stays_longer))
    is_leaving = (tables.begun(leaving), leaving.c.move_out_date.is_distinct_from(leaving.c.vacated_on))
    departure = select(leaving.c.move_out_date).where(leaving.c.company_id == company_id, *is_leaving)
    first_departure = first(departure.order_by(leaving.c.move_out_date))
    follows = (turn.c.company_id == current.c.company_id, turn.c.unit_id == current.c.unit_id, tables.planned(turn))
    late = select(current.c.move_out_date).where(
        current.c.company_id == company_id,
        tables.begun(current),
        current.c.vacated_on.is_(None),
        current.c.move_out_date.is_distinct_from(current.c.vacated_on),
        current.c.move_out_date <= first_departure + literal_column("1"),
        looked_up(turn, *follows, is_first, turn.c.move_in_date < current.c.move_out_date),
    )
    first_by_plan, first_late = (
        first(by_plan.order_by(turn.c.move_in_date)),
        first(late.order_by(current.c.move_out_date)),
    )
    return select(func.least(first_by_plan, first_late).label("due"))


# The columns of a due turn, for the sweep.
DUE = select(*(tables.transition.c[name] for name in ("company_id", "id", "unit_id")))
SAVE_TURNS = UpdateMany(
    tables.transition,
    (
        *("status", "vacated_on", "has_begun", "predecessor_id", "began_at", "planned_version"),
        *("version", "updated_at"),
    ),
)
