"""The table of unit states."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Date, ForeignKey, Table, Text

from svc_occupancy.schema import metadata, one_of
from svc_occupancy.units import rules

# The unit fields that svc-catalog serves. A unit has no row until it has a turn or staff set its status. svc-catalog
# stores the highest version.
unit_state = Table(
    "unit_state",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id"), primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("unit_status", Text, nullable=False),
    # The active turn's date.
    Column("projected_ready_on", Date),
    one_of("unit_state", "unit_status", rules.UNIT_STATUSES),
)
