"""The table of companies."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Identity, Table, Text, UniqueConstraint, text

from gateway.identity.rules import NAME_POINTS_MAX
from gateway.identity.schema import instant, metadata

company = Table(
    "company",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    # Replicas in the other contexts accept a row if its version is higher than theirs.
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("name", Text, nullable=False),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("timezone", Text, nullable=False),
    # Whether administrators must have one.
    Column("second_factor_required", Boolean, nullable=False, server_default=text("false")),
    # By which a file of companies finds them again.
    Column("external_id", Text),
    instant("created_at"),
    instant("updated_at"),
    UniqueConstraint("external_id", name="company_external_id"),
    CheckConstraint(f"char_length(name) BETWEEN 1 AND {NAME_POINTS_MAX}", name="company_name"),
)
