"""The SQL statements of the turn board. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    Date,
    FromClause,
    Integer,
    Text,
    and_,
    case,
    column,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import LateralFromClause

from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, Expression, Query, Selection, Statement, param
from chassis.lists.updated_since import is_of, stretch
from svc_occupancy import schema
from svc_occupancy.board.records import BoardUnit, PlannedTurn, Resident, StatusChange
from svc_occupancy.dates import Position
from svc_occupancy.residencies import tables as residency_tables
from svc_occupancy.turn_tasks import tables as task_tables
from svc_occupancy.turn_tasks.tables import StoredTask
from svc_occupancy.turns import tables as turn_tables
from svc_occupancy.turns.queries import first_planned, planned_in
from svc_occupancy.turns.rules import in_order
from svc_occupancy.units import tables as unit_tables
from svc_occupancy.units.rules import LIVED_IN, UnitStatus

TASKS_SHOWN = 8
PROPERTIES_MAX = 500
RECENT_TURNS, RECENT_DAYS = 200, 365

_company_id, _property_id = param("company_id", BigInteger), param("property_id", BigInteger)
_rows, _today = param("rows", Integer), param("today", Date)

# A literal: the index of open tasks is partial.
_OPEN: ColumnElement[str] = literal_column("'open'")
_unit, _turn, _state, _task = schema.unit, turn_tables.transition, unit_tables.unit_state, task_tables.turn_task
_change = unit_tables.unit_status_change


def _board(units: FromClause, order: Sequence[Expression]) -> Selection:
    """The columns of `BoardUnit` of units. units: a subquery with id, name, property_id and floorplan;
    order: of its columns."""
    current = and_(_turn.c.company_id == _company_id, _turn.c.unit_id == units.c.id, turn_tables.is_current)
    has_state = and_(_state.c.company_id == _company_id, _state.c.unit_id == units.c.id)
    following = first_planned(_company_id, units.c.id, "following")
    to_do, newest = _to_do(units), _newest_change(units)
    is_first_of_file = and_(newest.c.from_status.is_(None), newest.c.cause == literal_column("'import'"))
    stays = and_(_turn.c.vacated_on.is_(None), _stays_beyond(_turn, following.c.move_in_date))
    columns = (
        units.c.id.label("unit_id"),
        units.c.name,
        schema.property_.c.id.label("property_id"),
        schema.property_.c.name.label("property"),
        _state.c.unit_status,
        _turn.c.id.label("turn_id"),
        _turn.c.move_in_date,
        _turn.c.move_out_date,
        _turn.c.projected_ready_on,
        to_do.c.tasks_open,
        newest.c.changed_at.label("unit_status_since"),
        _is_true(is_first_of_file).label("since_or_earlier"),
        following.c.move_in_date.label("next_move_in"),
        to_do.c.tasks_late,
        case((_is_lived_in.is_(false()), _empty_since(units))).label("empty_since"),
        following.c.id.label("next_turn_id"),
        _leaseholder(following).label("next_resident"),
        _is_true(and_(_turn.c.vacated_on.is_not(None), _is_lived_in.is_not(true()))).label("has_left"),
        _is_true(or_(stays, _planned_clash(units))).label("is_clash"),
        units.c.floorplan,
        _state.c.projected_ready_on.label("ready_on"),
    )
    rows = (
        units.join(schema.property_, schema.property_.c.id == units.c.property_id)
        .outerjoin(_turn, current)
        .outerjoin(following, true())
        .outerjoin(_state, has_state)
        .outerjoin(to_do, true())
        # The release before changes a status without recording it, while an installation is upgraded.
        .outerjoin(newest, newest.c.to_status == _state.c.unit_status)
    )
    return select(*columns).select_from(rows).order_by(*order)


_is_lived_in = _state.c.unit_status.in_([literal_column(f"'{status}'") for status in sorted(LIVED_IN)])


def _is_true(condition: Expression) -> Expression:
    """Null becomes false."""
    return func.coalesce(condition, literal_column("false", Boolean))


def _to_do(units: FromClause) -> LateralFromClause:
    """How many open tasks a unit has, and how many of them are late."""
    of_unit = and_(_task.c.company_id == _company_id, _task.c.unit_id == units.c.id, _task.c.status == _OPEN)
    late = func.count().filter(_task.c.scheduled_date < _today).label("tasks_late")
    return select(func.count().label("tasks_open"), late).where(of_unit).correlate(units).lateral("to_do")


def _newest_change(units: FromClause) -> LateralFromClause:
    """The newest change of a unit's status."""
    return (
        select(_change.c.changed_at, _change.c.from_status, _change.c.to_status, _change.c.cause)
        .where(_change.c.company_id == _company_id, _change.c.unit_id == units.c.id)
        .order_by(_change.c.version.desc())
        .limit(literal_column("1"))
        .correlate(units)
        .lateral("newest")
    )


def _stays_beyond(turn: FromClause, move_in_date: Expression) -> ColumnElement[bool]:
    """Whether a turn has no move-out date, or one after the move-in date of the turn that follows; null without it."""
    return and_(
        turn.c.id.is_not(None),
        move_in_date.is_not(None),
        or_(turn.c.move_out_date.is_(None), turn.c.move_out_date > move_in_date),
    )


def _planned_clash(units: FromClause) -> ColumnElement[bool]:
    """Whether a planned turn of the unit stays beyond the move-in date of the planned turn that follows."""
    before, after = _turn.alias("before"), _turn.alias("after")
    here = (*planned_in(before, _company_id, units.c.id), *planned_in(after, _company_id, units.c.id))
    clash = select(after.c.id).where(
        *here, after.c.predecessor_id == before.c.id, _stays_beyond(before, after.c.move_in_date)
    )
    return clash.offset(literal_column("0")).correlate(units).exists()


def _empty_since(units: FromClause) -> Expression:
    """The move-out date of the unit's last resident, if it is before today. That is the current turn's, if there is
    one: a resident who is still there, or who leaves later, leaves nothing empty. Else the later one of the newest two
    turns that are over, because files have them in any order."""
    turn = _turn.alias("over")
    of_unit, by_id = stretch([(turn.c.company_id, _company_id), (turn.c.unit_id, units.c.id)], [])
    two = (
        select(turn.c.move_out_date)
        .where(*of_unit, turn.c.status == literal_column("'completed'"))
        .order_by(*(column.desc() for column in by_id), turn.c.id.desc())
        .limit(literal_column("2"))
        .correlate(units)
        .subquery("two")
    )
    over = select(func.max(two.c.move_out_date)).scalar_subquery()
    move_out_date = case((_turn.c.id.is_not(None), _turn.c.move_out_date), else_=over)
    return case((move_out_date < _today, move_out_date))


def _leaseholder(turn: FromClause) -> Expression:
    """The name of the first leaseholder of a turn's lease."""
    party = residency_tables.party
    name = func.nullif(
        func.concat_ws(literal_column("' '"), party.c.first_name, party.c.last_name), literal_column("''")
    )
    return (
        select(name)
        .where(
            party.c.company_id == _company_id,
            party.c.transition_id == turn.c.id,
            party.c.role == literal_column("'leaseholder'"),
            name.is_not(None),
        )
        .order_by(party.c.position)
        .limit(literal_column("1"))
        .correlate(turn)
        .scalar_subquery()
    )


def _by_id(place: ColumnElement[int] | None) -> Selection:
    having = [(_unit.c.company_id, _company_id)] + ([] if place is None else [(_unit.c.property_id, place)])
    stretched, order = stretch(having, [(_unit.c.id, param("first_id", BigInteger))])
    units = select(_unit).where(_unit.c.version > 0, *stretched).order_by(*order).limit(_rows).subquery("units")
    return _board(units, [units.c.id])


def _one() -> Selection:
    mine = is_of([(_unit.c.company_id, _company_id)])
    units = select(_unit).where(_unit.c.id == param("unit_id", BigInteger), *mine, _unit.c.version > 0)
    unit_ = units.subquery("units")
    return _board(unit_, [unit_.c.id])


def _by_ready_date(place: ColumnElement[int] | None) -> Selection:
    """The first units of each status after the cursor, merged into one page."""
    statuses = (
        func.unnest(param("statuses", TEXTS)).table_valued(column("status", Text)).render_derived(name="statuses")
    )
    key = unit_tables.ready_key
    having = [(_state.c.company_id, _company_id)] + ([] if place is None else [(_state.c.property_id, place)])
    stretched, order = stretch([*having, (_state.c.unit_status, statuses.c.status)], [])
    after = tuple_(key, _state.c.unit_id) > tuple_(param("after_date", Date), param("after_id", BigInteger))
    first = (
        select(_state.c.unit_id, key.label("ready"))
        .where(*stretched, unit_tables.is_under_way, after)
        .order_by(*order, key, _state.c.unit_id)
        .limit(_rows)
        .correlate(statuses)
        .lateral("first")
    )
    several = select(first.c.unit_id, first.c.ready).select_from(statuses.join(first, true()))
    cut = several.order_by(first.c.ready, first.c.unit_id).limit(_rows).subquery("cut")
    units = (
        select(_unit.c.id, _unit.c.name, _unit.c.property_id, _unit.c.floorplan, cut.c.ready)
        .select_from(cut.join(_unit, _unit.c.id == cut.c.unit_id))
        .subquery("units")
    )
    return _board(units, [units.c.ready, units.c.id])


def _clashing(place: ColumnElement[int] | None) -> Selection:
    """The first units from an id on in which a resident stays beyond the move-in of the next one."""
    after, current, ahead = (_turn.alias(name) for name in ("after", "current", "ahead"))
    in_unit = (current.c.company_id == _company_id, current.c.unit_id == after.c.unit_id, turn_tables.begun(current))
    is_there = and_(current.c.vacated_on.is_(None), _stays_beyond(current, after.c.move_in_date))
    in_row = (ahead.c.id == after.c.predecessor_id, turn_tables.planned(ahead))
    stays = (
        select(current.c.id).where(*in_unit, is_there).correlate(after).exists(),
        select(ahead.c.id).where(*in_row, _stays_beyond(ahead, after.c.move_in_date)).correlate(after).exists(),
    )
    several = select(after.c.unit_id).where(
        after.c.company_id == _company_id, turn_tables.planned(after), after.c.unit_id >= param("first_id", BigInteger),
        or_(*stays), *(() if place is None else (after.c.property_id == place,)),
    )  # fmt: skip
    units = (
        select(_unit.c.id, _unit.c.name, _unit.c.property_id, _unit.c.floorplan)
        .where(_unit.c.id.in_(several), _unit.c.version > 0)
        .subquery("units")
    )
    board = _board(units, []).subquery("board")
    return select(board).where(board.c.is_clash).order_by(board.c.unit_id).limit(_rows)


BOARD = Query(BoardUnit, _by_id(None))
BOARD_OF_PROPERTY = Query(BoardUnit, _by_id(_property_id))
BOARD_UNIT = Query(BoardUnit, _one())
UNDER_WAY = Query(BoardUnit, _by_ready_date(None))
UNDER_WAY_IN_PROPERTY = Query(BoardUnit, _by_ready_date(_property_id))
CLASHING, CLASHING_IN_PROPERTY = Query(BoardUnit, _clashing(None)), Query(BoardUnit, _clashing(_property_id))


async def board(
    connection: Connection | Database,
    company_id: int,
    first_id: int,
    rows: int,
    today: datetime.date,
    property_id: int | None = None,
    *,
    clashes: bool = False,
) -> list[BoardUnit]:
    """Units with ids from first_id on, of one property or of all. today: in the company's timezone. clashes: those
    alone in which a resident stays beyond the move-in of the next one."""
    place = {} if property_id is None else {"property_id": property_id}
    of_all, of_property = (CLASHING, CLASHING_IN_PROPERTY) if clashes else (BOARD, BOARD_OF_PROPERTY)
    query = of_all if property_id is None else of_property
    return await query.rows(connection, company_id=company_id, first_id=first_id, rows=rows, today=today, **place)


async def under_way(
    database: Database,
    company_id: int,
    statuses: Sequence[UnitStatus],
    after: Position,
    rows: int,
    today: datetime.date,
    property_id: int | None = None,
) -> list[BoardUnit]:
    """Units with these statuses by ready date, of one property or of all. today: in the company's timezone."""
    place = {} if property_id is None else {"property_id": property_id}
    query = UNDER_WAY if property_id is None else UNDER_WAY_IN_PROPERTY
    return await query.rows(
        database,
        company_id=company_id,
        statuses=statuses,
        after_date=after.date,
        after_id=after.id,
        rows=rows,
        today=today,
        **place,
    )


async def unit(
    connection: Connection | Database, company_id: int, unit_id: int, today: datetime.date
) -> BoardUnit | None:
    return await BOARD_UNIT.row(connection, company_id=company_id, unit_id=unit_id, today=today)


def _tasks() -> Query[StoredTask]:
    """Of each unit the open tasks, and of each active turn the completed ones: of both the first so many."""
    several: ColumnElement[int] = literal_column(str(TASKS_SHOWN))
    pair = func.unnest(param("unit_ids", ARRAY(BigInteger)), param("turn_ids", ARRAY(BigInteger)))
    pairs = pair.table_valued(column("unit_id", BigInteger), column("turn_id", BigInteger)).render_derived(name="pairs")
    mine = _task.c.company_id == _company_id
    to_do = select(_task).where(mine, _task.c.unit_id == pairs.c.unit_id, _task.c.status == _OPEN)
    to_do = to_do.order_by(*task_tables.open_order).limit(several).correlate(pairs)
    done = select(_task).where(
        mine, _task.c.transition_id == pairs.c.turn_id, _task.c.status == literal_column("'completed'")
    )
    done = done.order_by(_task.c.completed_at.desc(), _task.c.id).limit(several).correlate(pairs)
    both = union_all(select(to_do.subquery("to_do")), select(done.subquery("done"))).lateral("task")
    return Query(StoredTask, select(both).select_from(pairs.join(both, true())))


TASKS = _tasks()


async def tasks(database: Database, company_id: int, units: Sequence[BoardUnit]) -> list[StoredTask]:
    """The units' open tasks in their order, and their active turns' completed ones, at most so many of each."""
    ids = {"unit_ids": [unit.unit_id for unit in units], "turn_ids": [unit.turn_id for unit in units]}
    return await TASKS.rows(database, company_id=company_id, **ids) if units else []


_party = residency_tables.party
RESIDENTS = Query(
    Resident,
    select(_party.c.transition_id.label("turn_id"), _party.c.first_name, _party.c.last_name, _party.c.role)
    .where(
        _party.c.company_id == _company_id,
        _party.c.transition_id == func.any(param("turn_ids", ARRAY(BigInteger))),
    )
    .order_by(_party.c.transition_id, _party.c.position),
)


async def residents(database: Database, company_id: int, turn_ids: Sequence[int]) -> dict[int, list[Resident]]:
    """The parties of these turns' leases by turn, in their stored order."""
    parties: dict[int, list[Resident]] = {turn_id: [] for turn_id in turn_ids}
    for party in await RESIDENTS.rows(database, company_id=company_id, turn_ids=turn_ids):
        parties[party.turn_id].append(party)
    return parties


PLANNED = Query(
    PlannedTurn,
    select(_turn.c.id.label("turn_id"), _turn.c.move_in_date, _turn.c.move_out_date, _turn.c.predecessor_id).where(
        *planned_in(_turn, _company_id, param("unit_id", BigInteger))
    ),
)


async def planned_turns(database: Database, company_id: int, unit_id: int) -> list[PlannedTurn]:
    """A unit's planned turns, in the order in which they begin."""
    return in_order(await PLANNED.rows(database, company_id=company_id, unit_id=unit_id))


STATUS_CHANGES = Query(
    StatusChange,
    select(*(_change.c[name] for name in StatusChange._fields))
    .where(
        _change.c.company_id == _company_id,
        _change.c.unit_id == param("unit_id", BigInteger),
        _change.c.version < param("before_version", BigInteger),
    )
    .order_by(_change.c.version.desc())
    .limit(_rows),
)


async def status_changes(
    database: Database, company_id: int, unit_id: int, before_version: int, rows: int
) -> list[StatusChange]:
    return await STATUS_CHANGES.rows(
        database, company_id=company_id, unit_id=unit_id, before_version=before_version, rows=rows
    )


class Counted(NamedTuple):
    """A number of units in a property with a status."""

    property_id: int | None
    unit_status: UnitStatus | None
    units: int


def _counts() -> Query[Counted]:
    """Of all properties: units on their way to ready alone, by an index that has nothing else."""
    stretched, _ = stretch([(_state.c.company_id, _company_id)], [])
    counts = select(_state.c.property_id, _state.c.unit_status, func.count().label("units"))
    return Query(
        Counted, counts.where(*stretched, unit_tables.is_under_way).group_by(_state.c.property_id, _state.c.unit_status)
    )


def _counts_of_property() -> Query[Counted]:
    stretched, order = stretch([(_unit.c.company_id, _company_id), (_unit.c.property_id, _property_id)], [])
    units = select(_unit.c.id, _unit.c.property_id).where(_unit.c.version > 0, *stretched).order_by(*order).subquery()
    has_state = and_(_state.c.company_id == _company_id, _state.c.unit_id == units.c.id)
    counts = select(units.c.property_id, _state.c.unit_status, func.count().label("units"))
    return Query(
        Counted,
        counts.select_from(units.outerjoin(_state, has_state)).group_by(units.c.property_id, _state.c.unit_status),
    )


COUNTS, COUNTS_OF_PROPERTY = _counts(), _counts_of_property()
UNITS = Statement(select(func.count()).select_from(_unit).where(_unit.c.company_id == _company_id, _unit.c.version > 0))
NAMES = Statement(
    select(schema.property_.c.id, schema.property_.c.name).where(
        schema.property_.c.id == func.any(param("ids", ARRAY(BigInteger))),
        *is_of([(schema.property_.c.company_id, _company_id)]),
        schema.property_.c.version > 0,
    )
)


async def counts(database: Database, company_id: int, property_id: int | None) -> list[Counted]:
    """Of one property all units; else those on their way to ready."""
    if property_id is None:
        return await COUNTS.rows(database, company_id=company_id)
    return await COUNTS_OF_PROPERTY.rows(database, company_id=company_id, property_id=property_id)


async def units(database: Database, company_id: int) -> int:
    """The number of the company's units."""
    count: int = await database.value(UNITS, company_id=company_id)
    return count


async def property_names(database: Database, company_id: int, ids: Sequence[int]) -> dict[int, str]:
    """The names of those properties that the company has."""
    return {row["id"]: row["name"] for row in await database.rows(NAMES, company_id=company_id, ids=ids)}


class TaskCounts(NamedTuple):
    open: int
    late: int


def _task_counts(place: ColumnElement[int] | None) -> Query[TaskCounts]:
    having = [(_task.c.company_id, _company_id)] + ([] if place is None else [(_task.c.property_id, place)])
    stretched, _ = stretch(having, [])
    late = func.count().filter(task_tables.date_key < _today)
    return Query(
        TaskCounts,
        select(func.count().label("open"), late.label("late")).where(*stretched, _task.c.status == _OPEN),
    )


TASK_COUNTS, TASK_COUNTS_OF_PROPERTY = _task_counts(None), _task_counts(_property_id)


async def task_counts(database: Database, company_id: int, today: datetime.date, property_id: int | None) -> TaskCounts:
    place = {} if property_id is None else {"property_id": property_id}
    query = TASK_COUNTS if property_id is None else TASK_COUNTS_OF_PROPERTY
    counts = await query.row(database, company_id=company_id, today=today, **place)
    assert counts is not None
    return counts


def _days_empty(place: ColumnElement[int] | None) -> Statement:
    """The mean over the newest turns that have begun: from the departure before each to its move-in."""
    having = [(_turn.c.company_id, _company_id)] + ([] if place is None else [(_turn.c.property_id, place)])
    stretched, order = stretch(having, [])
    newest_first = [column.desc() for column in order]
    recent = select(_turn.c.id, _turn.c.unit_id, _turn.c.move_in_date, _turn.c.status, _turn.c.has_begun)
    recent = (
        recent.where(*stretched).order_by(*newest_first, _turn.c.id.desc()).limit(literal_column(str(RECENT_TURNS)))
    )
    came = recent.subquery("came")
    gone = _turn.alias("gone")
    of_unit, by_id = stretch([(gone.c.company_id, _company_id), (gone.c.unit_id, came.c.unit_id)], [])
    before = (
        select(gone.c.move_out_date)
        .where(*of_unit, gone.c.id < came.c.id, gone.c.status == literal_column("'completed'"))
        .order_by(*(column.desc() for column in by_id), gone.c.id.desc())
        .limit(literal_column("1"))
        .correlate(came)
        .lateral("before")
    )
    # From the day after the move-out to the day of the move-in: none if both are on one day.
    days = func.greatest(
        came.c.move_in_date - before.c.move_out_date - literal_column("1", Integer), literal_column("0")
    )
    return Statement(
        select(func.round(func.avg(days)).cast(Integer))
        .select_from(came.join(before, true()))
        .where(
            came.c.has_begun,
            came.c.status != literal_column("'cancelled'"),
            came.c.move_in_date <= _today,
            came.c.move_in_date > _today - literal_column(str(RECENT_DAYS)),
            before.c.move_out_date <= came.c.move_in_date,
        )
    )


DAYS_EMPTY, DAYS_EMPTY_OF_PROPERTY = _days_empty(None), _days_empty(_property_id)


async def days_empty(database: Database, company_id: int, today: datetime.date, property_id: int | None) -> int | None:
    """How long a unit of the newest turns was empty before the move-in, in days; None if no turn says."""
    place = {} if property_id is None else {"property_id": property_id}
    statement = DAYS_EMPTY if property_id is None else DAYS_EMPTY_OF_PROPERTY
    days: int | None = await database.value(statement, company_id=company_id, today=today, **place)
    return days
