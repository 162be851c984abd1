"""The tables of notices to the residents of a property."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Table,
    Text,
    UniqueConstraint,
    and_,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.types import NullType

from svc_catalog import field_rules
from svc_catalog.places.tables import unit
from svc_catalog.schema import (
    IDS,
    company_key,
    id_of,
    ids,
    instant,
    lies_in_property,
    metadata,
    one_of,
    version,
    within_property,
)

notice_id = ids("notice_id")

notice = Table(
    "notice",
    metadata,
    company_key(),
    id_of(notice_id),
    version(),
    Column("property_id", BigInteger, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("when", Text, nullable=False),
    # Part of the property, in words. A notice without an area and without units is for the whole property.
    Column("area", Text),
    instant("created_at"),
    instant("updated_at"),
    # Null until the notice is published.
    Column("published_at", DateTime(timezone=True)),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    UniqueConstraint("company_id", "property_id", "id", name="notice_of_property"),
    UniqueConstraint("company_id", "external_id", name="notice_external_id"),
    lies_in_property(),
    one_of("notice", "source", field_rules.SOURCES),
)

# When it was published; infinity while it is being composed. Newest first, such notices come before the others.
PUBLISHED_OR_COMPOSING = func.coalesce(notice.c.published_at, literal_column("'infinity'::timestamptz"))
Index("notice_newest", notice.c.company_id, PUBLISHED_OR_COMPOSING, notice.c.id)
Index("notice_newest_of_property", notice.c.company_id, notice.c.property_id, PUBLISHED_OR_COMPOSING, notice.c.id)

# The units that a notice is for.
notice_unit = Table(
    "notice_unit",
    metadata,
    company_key(),
    Column("notice_id", BigInteger, primary_key=True, autoincrement=False),
    Column("unit_id", BigInteger, primary_key=True, autoincrement=False),
    Column("property_id", BigInteger, nullable=False),
    within_property("notice_id", "notice"),
    within_property("unit_id", "unit"),
)

_unit = and_(unit.c.company_id == notice_unit.c.company_id, unit.c.id == notice_unit.c.unit_id)
# Joined to each notice: the ids of its units, ascending, and the name of one of them.
units_of_notice = (
    select(
        # Without a type, or SQLAlchemy Core would copy asyncpg's list.
        func.coalesce(
            func.array_agg(aggregate_order_by(unit.c.id, unit.c.id)),
            cast(literal_column("'{}'"), IDS),
            type_=NullType(),
        ).label("ids"),
        func.min(unit.c.name).label("name"),
    )
    .select_from(notice_unit.join(unit, _unit))
    .where(notice_unit.c.company_id == notice.c.company_id, notice_unit.c.notice_id == notice.c.id)
    .correlate(notice)
    .lateral("units")
)
