"""The tables of the database `occupancy`: so far the replicas of what transitions will name."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, MetaData, Text

from chassis.consumer import inbox_table
from chassis.outbox import outbox_table
from chassis.replicas import company_replica, replica_table

metadata = MetaData()

outbox = outbox_table(metadata)
inbox = inbox_table(metadata)

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
