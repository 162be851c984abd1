"""The table of turns, its rows, and the indexes of their lists and sweeps."""

from __future__ import annotations

import datetime

import msgspec
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Index,
    Sequence,
    Table,
    Text,
    and_,
    literal_column,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

from chassis.changes.tables import Follow, make_followable
from chassis.lists.paging import page_indexes
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
    # The move_out_date that the sweep has handled: it made the unit vacant, or left a status that was set on purpose.
    # Another date, or a new notice with the same date, makes the turn due again.
    Column("vacated_on", Date),
    one_of("transition", "status", rules.TRANSITION_STATUSES),
    one_of("transition", "source", rules.SOURCES),
    CheckConstraint("projected_ready_on IS NULL OR move_out_date IS NOT NULL", name="transition_ready_after_move_out"),
    CheckConstraint("occupancy_fed_at IS NULL OR occupancy_source IS NOT NULL", name="transition_fed_by_somebody"),
    CheckConstraint(
        f"char_length(occupancy_source) BETWEEN 1 AND {rules.PROVIDER_POINTS_MAX}", name="transition_occupancy_source"
    ),
    CheckConstraint("updated_at >= created_at", name="transition_updated_after_created"),
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
Index(
    "transition_active_in_unit",
    transition.c.company_id,
    transition.c.unit_id,
    unique=True,
    postgresql_where=text("status = 'active'"),
)
# The residents who leave and whose morning after is not handled yet: the sweep's index.
leaves: ColumnElement[bool] = transition.c.move_out_date.is_distinct_from(transition.c.vacated_on)
Index(
    "transition_to_vacate",
    transition.c.company_id,
    transition.c.move_out_date,
    transition.c.id,
    postgresql_where=and_(transition.c.status == literal_column("'active'"), leaves),
)
make_followable(
    transition,
    Follow("property_id", property_, "name", "external_id"),
    Follow("unit_id", unit, "name", "external_id"),
)
