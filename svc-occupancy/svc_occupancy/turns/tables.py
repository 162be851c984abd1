"""The table of turns, its rows, and the indexes of their lists and sweeps."""

from __future__ import annotations

import datetime

import msgspec
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    FromClause,
    Index,
    Sequence,
    Table,
    Text,
    and_,
    literal_column,
    not_,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

from chassis.changes.tables import Follow, make_followable
from chassis.lists.paging import page_indexes
from chassis.writes.idempotency import SET_BY_WRITES
from svc_occupancy.schema import at_most, metadata, one_of, property_, unit
from svc_occupancy.turns import rules

# Tables that this context owns.

transition_id = Sequence("transition_id", metadata=metadata, data_type=BigInteger)

# The API's turns, one row a residency (spec 2.10).
transition = Table(
    "transition",
    metadata,
    # The key begins with the company: with an index of ids alone, a planner that knows few companies would page through
    # all companies' turns to find one company's.
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False, server_default=text(f"nextval('{transition_id.name}')")
    ),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id"), nullable=False),
    # active -> completed, when the next resident moves in; active -> cancelled
    Column("status", Text, nullable=False),
    Column("move_out_date", Date),
    Column("move_in_date", Date),
    Column("projected_ready_on", Date),
    Column("occupancy_source", Text),
    Column("occupancy_fed_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    # The turn's own, by which a later file finds it.
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    # The fields of the last notice. Its external_id differs from the turn's.
    Column("notice_external_id", Text),
    Column("ntv_reason_code", Text),
    Column("departure_destination_code", Text),
    Column("notes", Text),
    # The move_out_date that is dealt with: the sweep has handled its morning after, or staff have said before that the
    # resident is gone. A turn with another date is due again.
    Column("vacated_on", Date),
    # False: the turn is planned. The release before writes begun turns alone, and does not know the column.
    Column("has_begun", Boolean, nullable=False, server_default=text("true"), info={SET_BY_WRITES: True}),
    # The turn before it in the unit, which ends when this one begins; null if there was none.
    Column("predecessor_id", BigInteger),
    # When the sweep began the planned turn; null for one that began with its record.
    Column("began_at", DateTime(timezone=True)),
    # Of a turn that has not begun: its version. A release that does not know planned turns raises the version alone, so
    # it can write to none.
    Column("planned_version", BigInteger),
    one_of("transition", "status", rules.TRANSITION_STATUSES),
    one_of("transition", "source", rules.SOURCES),
    CheckConstraint("projected_ready_on IS NULL OR move_out_date IS NOT NULL", name="transition_ready_after_move_out"),
    CheckConstraint("occupancy_fed_at IS NULL OR occupancy_source IS NOT NULL", name="transition_fed_by_somebody"),
    CheckConstraint(
        f"char_length(occupancy_source) BETWEEN 1 AND {rules.PROVIDER_POINTS_MAX}", name="transition_occupancy_source"
    ),
    CheckConstraint("updated_at >= created_at", name="transition_updated_after_created"),
    CheckConstraint("has_begun OR status <> 'completed'", name="transition_begun_before_completed"),
    CheckConstraint(
        "has_begun OR status <> 'active' OR move_in_date IS NOT NULL", name="transition_planned_for_a_date"
    ),
    CheckConstraint(
        "CASE WHEN has_begun THEN planned_version IS NULL ELSE planned_version IS NOT DISTINCT FROM version END",
        name="transition_planned_version",
    ),
    CheckConstraint("has_begun OR began_at IS NULL", name="transition_began_at"),
    *at_most(
        "transition",
        notice_external_id=rules.FEED_EXTERNAL_ID_POINTS_MAX,
        ntv_reason_code=rules.TEXT_POINTS_MAX,
        departure_destination_code=rules.TEXT_POINTS_MAX,
        notes=rules.TEXT_POINTS_MAX,
    ),
)


class StoredTurn(msgspec.Struct, frozen=True, gc=False):
    """A row of `transition`: its columns in their order, without its place in the order of changes."""

    company_id: int
    id: int
    version: int
    property_id: int
    unit_id: int
    status: rules.TransitionStatus
    move_out_date: datetime.date | None
    move_in_date: datetime.date | None
    projected_ready_on: datetime.date | None
    occupancy_source: str | None
    occupancy_fed_at: datetime.datetime | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    external_id: str | None
    source: rules.Source
    notice_external_id: str | None
    ntv_reason_code: str | None
    departure_destination_code: str | None
    notes: str | None
    vacated_on: datetime.date | None
    has_begun: bool
    predecessor_id: int | None
    began_at: datetime.datetime | None
    planned_version: int | None

    @property
    def next_planned_version(self) -> int | None:
        """See `next_planned_version`."""
        return next_planned_version(has_begun=self.has_begun, version=self.version)


def next_planned_version(*, has_begun: bool, version: int) -> int | None:
    """The planned_version that belongs to a turn's next version. has_begun: after the change; version: before it."""
    return None if has_begun else version + 1


page_indexes(transition, places=("property_id", "unit_id"))
# external_id is unique among imported turns, but not among those from feeds. Each row is in one of the two indexes.
Index(
    "transition_external_id",
    transition.c.company_id,
    transition.c.external_id,
    unique=True,
    postgresql_where=text("source = 'import'"),
)
Index(
    "transition_fed_external_id",
    transition.c.company_id,
    transition.c.external_id,
    transition.c.unit_id,
    transition.c.id,
    postgresql_where=text("source <> 'import'"),
)


# Literals, because the indexes are partial.
is_active: ColumnElement[bool] = transition.c.status == literal_column("'active'")


def begun(turn: FromClause) -> ColumnElement[bool]:
    """The condition for current turns. turn: `transition`, or an alias of it."""
    return and_(turn.c.status == literal_column("'active'"), turn.c.has_begun)


def planned(turn: FromClause) -> ColumnElement[bool]:
    """The condition for planned turns. turn: `transition`, or an alias of it."""
    return and_(turn.c.status == literal_column("'active'"), not_(turn.c.has_begun))


is_current, is_planned = begun(transition), planned(transition)
# A unit has at most one current turn, and a turn at most one active successor.
Index(
    "transition_active_in_unit", transition.c.company_id, transition.c.unit_id, unique=True, postgresql_where=is_current
)
Index(
    "transition_successor",
    transition.c.company_id,
    transition.c.predecessor_id,
    unique=True,
    postgresql_where=and_(is_active, transition.c.predecessor_id.is_not(None)),
)
# Without the company, or the planner would take the sweep's index of planned turns for as good.
Index(
    "transition_planned_in_unit",
    transition.c.unit_id,
    transition.c.move_in_date,
    transition.c.id,
    postgresql_where=is_planned,
)
# The sweep's indexes: the residents who leave and whose morning after is not handled yet, and the planned turns.
leaves: ColumnElement[bool] = transition.c.move_out_date.is_distinct_from(transition.c.vacated_on)
Index(
    "transition_to_vacate",
    transition.c.company_id,
    transition.c.move_out_date,
    transition.c.id,
    postgresql_where=and_(is_active, leaves),
)
Index(
    "transition_to_begin",
    transition.c.company_id,
    transition.c.move_in_date,
    transition.c.id,
    postgresql_where=is_planned,
)
make_followable(
    transition,
    Follow("property_id", property_, "name", "external_id"),
    Follow("unit_id", unit, "name", "external_id"),
)
