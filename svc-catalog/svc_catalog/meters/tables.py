"""Utility meters and their readings (spec 2.11)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Table,
    Text,
    UniqueConstraint,
)

from chassis.changes.tables import Follow, make_followable
from chassis.lists.paging import page_indexes
from svc_catalog import field_rules
from svc_catalog.meters import rules
from svc_catalog.places.tables import property_, unit
from svc_catalog.schema import (
    PLACES,
    between,
    company_key,
    id_of,
    ids,
    instant,
    lies_in_property,
    metadata,
    one_of,
    people_indexes,
    searched_version,
    version,
    within_property,
)

meter_id = ids("meter_id")
reading_id = ids("reading_id")

meter = Table(
    "meter",
    metadata,
    company_key(),
    id_of(meter_id),
    version(),
    Column("property_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("utility_type", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("unit_id", BigInteger),
    Column("meter_number", Text),
    Column("unit_of_measure", Text),
    Column("is_active", Boolean, nullable=False),
    instant("created_at"),
    instant("updated_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    searched_version(),
    UniqueConstraint("company_id", "external_id", name="meter_external_id"),
    lies_in_property(),
    within_property("unit_id", "unit"),
    CheckConstraint("(scope = 'unit') = (unit_id IS NOT NULL)", name="meter_of_a_unit_names_it"),
    CheckConstraint("updated_at >= created_at", name="meter_updated_after_created"),
    one_of("meter", "utility_type", rules.UTILITY_TYPES),
    one_of("meter", "scope", rules.SCOPES),
    one_of("meter", "source", field_rules.SOURCES),
)
page_indexes(meter, places=PLACES)
people_indexes(meter, property=[meter.c.property_id], utility_type=[meter.c.utility_type])
make_followable(
    meter,
    Follow("property_id", property_, "name", "external_id"),
    Follow("unit_id", unit, "name", "external_id"),
    beside=["searched_version"],
)

# The largest table: an hourly meter adds 8,760 rows a year. The wide columns precede the texts, which saves the
# padding. It has no version, because no other context stores readings. It has four indexes: the key, which a meter's
# list reads, (company, external_id), by which an import finds existing readings, the periods, which people's table
# and chart read, as ids are in the order of arrival, and the order of changes, which followers of all meters read.
reading = Table(
    "reading",
    metadata,
    company_key(),
    Column("meter_id", BigInteger, primary_key=True, autoincrement=False),
    id_of(reading_id),
    instant("period_start"),
    instant("period_end"),
    Column("consumption", Double, nullable=False),
    Column("cost", Double),
    instant("created_at"),
    Column("is_estimated", Boolean, nullable=False),
    Column("unit_of_measure", Text),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    UniqueConstraint("company_id", "external_id", name="reading_external_id"),
    ForeignKeyConstraint(["company_id", "meter_id"], ["meter.company_id", "meter.id"]),
    CheckConstraint("period_end >= period_start", name="reading_ends_after_it_starts"),
    between("reading", "consumption", -rules.AMOUNT_MAX, rules.AMOUNT_MAX),
    between("reading", "cost", -rules.AMOUNT_MAX, rules.AMOUNT_MAX),
    one_of("reading", "source", rules.READING_SOURCES),
)
Index("reading_periods", reading.c.company_id, reading.c.meter_id, reading.c.period_start, reading.c.id)
make_followable(reading, has_documents=False)
