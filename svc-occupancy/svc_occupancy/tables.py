"""The tables of the database `occupancy`: so far the replicas of what transitions will name."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, MetaData, Table, Text, text

from chassis.consumer import inbox_table

metadata = MetaData()

inbox = inbox_table(metadata)

# Replicas: rows of other contexts by their own ids. Version 0 stands for a row that has not arrived yet: a unit may
# arrive before its property. Nothing refers to a company's row, so the company may arrive last of all.

company = Table(
    "company",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False, server_default=text("0")),
    Column("name", Text, nullable=False, server_default=text("''")),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("timezone", Text, nullable=False, server_default=text("'UTC'")),
)


def _replica(name: str, *columns: Column[object]) -> Table:
    table = Table(
        name,
        metadata,
        Column("id", BigInteger, primary_key=True, autoincrement=False),
        Column("version", BigInteger, nullable=False, server_default=text("0")),
        Column("company_id", BigInteger, nullable=False),
        Column("name", Text, nullable=False, server_default=text("''")),
        Column("external_id", Text),
        *columns,
    )
    Index(f"{name}_external_id", table.c.company_id, table.c.external_id)
    return table


property_ = _replica("property")
unit = _replica(
    "unit",
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_number", Text),
)
