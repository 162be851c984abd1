"""The tables of the database `occupancy`. Constraints make impossible what the rules forbid."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    and_,
    literal_column,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

from chassis.lists.paging import page_indexes
from chassis.messaging.consumer import inbox_table
from chassis.messaging.outbox import outbox_table
from chassis.replicas.tables import company_replica, replica_table
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger
from svc_occupancy import rules, rules_board
from svc_occupancy import rules_residencies as residencies

metadata = MetaData()

outbox = outbox_table(metadata)
inbox = inbox_table(metadata)
idempotency = ledger(metadata)
audit = audit_table(metadata)


def _one_of(table: str, column: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}")


def _at_most(table: str, **points: int) -> list[CheckConstraint]:
    """Texts of at most so many code points."""
    return [
        CheckConstraint(f"char_length({column}) <= {most}", name=f"{table}_{column}") for column, most in points.items()
    ]


# Replicas: rows of other contexts by their own ids. Version 0 stands for a row that has not arrived yet: a unit may
# arrive before its property. Nothing refers to a company's row, so the company may arrive last of all.

company = company_replica(metadata)


property_ = replica_table(metadata, "property")
unit = replica_table(
    metadata,
    "unit",
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_number", Text),
)
# The turn board goes through a company's units, or a property's.
Index("unit_page", unit.c.company_id, unit.c.id)
Index("unit_page_of_property", unit.c.company_id, unit.c.property_id, unit.c.id)

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
    _one_of("transition", "status", rules.TRANSITION_STATUSES),
    _one_of("transition", "source", rules.SOURCES),
    CheckConstraint("projected_ready_on IS NULL OR move_out_date IS NOT NULL", name="transition_ready_after_move_out"),
    CheckConstraint("occupancy_fed_at IS NULL OR occupancy_source IS NOT NULL", name="transition_fed_by_somebody"),
    CheckConstraint(
        f"char_length(occupancy_source) BETWEEN 1 AND {rules.PROVIDER_POINTS_MAX}", name="transition_occupancy_source"
    ),
    CheckConstraint("updated_at >= created_at", name="transition_updated_after_created"),
    *_at_most(
        "transition",
        notice_external_id=residencies.EXTERNAL_ID_POINTS_MAX,
        ntv_reason_code=residencies.TEXT_POINTS_MAX,
        departure_destination_code=residencies.TEXT_POINTS_MAX,
        notes=residencies.TEXT_POINTS_MAX,
    ),
)
page_indexes(transition)
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

# The lease of a move-in that a feed told of. Whether it is for a fixed term follows from its end.
lease_id = Sequence("lease_id", metadata=metadata, data_type=BigInteger)
lease = Table(
    "lease",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("transition_id", BigInteger, nullable=False),
    Column("start_date", Date, nullable=False),
    Column("end_date", Date),
    ForeignKeyConstraint(["company_id", "transition_id"], ["transition.company_id", "transition.id"]),
    UniqueConstraint("company_id", "transition_id", name="lease_of_transition"),
    CheckConstraint("end_date >= start_date", name="lease_end_date"),
)

# Who stands in a transition's lease. email and phone are never served, logged or sent on.
party_id = Sequence("party_id", metadata=metadata, data_type=BigInteger)
party = Table(
    "party",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("transition_id", BigInteger, nullable=False),
    # Its place in the stored order, from 0.
    Column("position", SmallInteger, nullable=False),
    Column("first_name", Text),
    Column("last_name", Text),
    Column("email", Text),
    Column("phone", Text),
    Column("role", Text),
    Column("external_id", Text),
    # A lease's parties, and so none without a lease.
    ForeignKeyConstraint(["company_id", "transition_id"], ["lease.company_id", "lease.transition_id"]),
    UniqueConstraint("company_id", "transition_id", "position", name="party_order"),
    CheckConstraint(f"position BETWEEN 0 AND {residencies.PARTIES_MAX - 1}", name="party_position"),
    _one_of("party", "role", residencies.PARTY_ROLES),
    *_at_most(
        "party",
        first_name=residencies.PARTY_NAME_POINTS_MAX,
        last_name=residencies.PARTY_NAME_POINTS_MAX,
        email=residencies.PARTY_EMAIL_POINTS_MAX,
        phone=residencies.PARTY_PHONE_POINTS_MAX,
        external_id=residencies.EXTERNAL_ID_POINTS_MAX,
    ),
)

# What svc-catalog serves of a unit; a unit that never had a turn has no row. The version tells svc-catalog which of
# two is the newer.
unit_state = Table(
    "unit_state",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id"), primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("unit_status", Text, nullable=False),
    # Of the unit's active turn.
    Column("projected_ready_on", Date),
    _one_of("unit_state", "unit_status", rules.UNIT_STATUSES),
)

# What is to be done until a unit is ready.
turn_task_id = Sequence("turn_task_id", metadata=metadata, data_type=BigInteger)
turn_task = Table(
    "turn_task",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False, server_default=text(f"nextval('{turn_task_id.name}')")
    ),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("transition_id", BigInteger, nullable=False),
    # The transition's.
    Column("unit_id", BigInteger, nullable=False),
    Column("task_type", Text, nullable=False),
    # open -> completed; open -> cancelled
    Column("status", Text, nullable=False),
    Column("scheduled_date", Date),
    Column("completed_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
    # When it was told of as overdue, or counted as told of: once for ever.
    Column("stale_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    ForeignKeyConstraint(["company_id", "transition_id"], ["transition.company_id", "transition.id"]),
    _one_of("turn_task", "status", rules_board.TASK_STATUSES),
    _one_of("turn_task", "source", ("staff", "import")),
    CheckConstraint("(status = 'completed') = (completed_at IS NOT NULL)", name="turn_task_completed_at"),
    CheckConstraint("(status = 'cancelled') = (cancelled_at IS NOT NULL)", name="turn_task_cancelled_at"),
    CheckConstraint("updated_at >= created_at", name="turn_task_updated_after_created"),
    *_at_most("turn_task", task_type=rules_board.TASK_TYPE_POINTS_MAX),
)
Index("turn_task_external_id", turn_task.c.company_id, turn_task.c.external_id, unique=True)
Index("turn_task_of_transition", turn_task.c.company_id, turn_task.c.transition_id, turn_task.c.id)
_open: ColumnElement[bool] = turn_task.c.status == literal_column("'open'")
Index("turn_task_open_in_unit", turn_task.c.company_id, turn_task.c.unit_id, turn_task.c.id, postgresql_where=_open)
# Tasks that may become overdue: what a sweep looks through.
Index(
    "turn_task_to_tell_of",
    turn_task.c.company_id,
    turn_task.c.scheduled_date,
    turn_task.c.id,
    postgresql_where=and_(_open, turn_task.c.stale_at.is_(None)),
)
