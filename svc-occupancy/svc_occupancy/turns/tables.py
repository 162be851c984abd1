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

from chassis.lists.paging import page_indexes
from svc_occupancy.schema import at_most, metadata, one_of
from svc_occupancy.turns import rules

# What this context owns.

transition_id = Sequence("transition_id", metadata=metadata, data_type=BigInteger)

# The API's turns, one row a residency (spec 2.10).
transition = Table(
    "transition",
    metadata,
    # The key begins with the company: by an index of the ids alone, a planner that knows few companies would page
    # through everybody's turns to find one company's.
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
    # The turn's own: by it a file finds the turn again.
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    # Of the last notice. Its external_id is not the turn's.
    Column("notice_external_id", Text),
    Column("ntv_reason_code", Text),
    Column("departure_destination_code", Text),
    Column("notes", Text),
    # The move_out_date whose morning after is dealt with: the unit was made vacant then, or something else was known
    # of it. Another date, or the same one in a new notice, has a morning of its own.
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
    """A row of `transition`: the columns in their order."""

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
# A file's turns are told apart by external_id; what feeds send need not be unique. Each row is in one of the two.
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
# Residents who leave, until the morning after is dealt with: what a sweep looks through.
leaves: ColumnElement[bool] = transition.c.move_out_date.is_distinct_from(transition.c.vacated_on)
Index(
    "transition_to_vacate",
    transition.c.company_id,
    transition.c.move_out_date,
    transition.c.id,
    postgresql_where=and_(transition.c.status == literal_column("'active'"), leaves),
)
