"""The tables of leases and their parties."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    ForeignKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

from svc_occupancy.residencies import rules
from svc_occupancy.schema import at_most, metadata, one_of
from svc_occupancy.turns import rules as turn_rules

# The lease of a move-in that a feed sent. It is for a fixed term if it has an end_date.
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

# The parties to a transition's lease. email and phone are never served, logged or published.
party_id = Sequence("party_id", metadata=metadata, data_type=BigInteger)
party = Table(
    "party",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("transition_id", BigInteger, nullable=False),
    # The party's place in the stored order, from 0.
    Column("position", SmallInteger, nullable=False),
    Column("first_name", Text),
    Column("last_name", Text),
    Column("email", Text),
    Column("phone", Text),
    Column("role", Text),
    Column("external_id", Text),
    # A party belongs to a lease, not only to a transition.
    ForeignKeyConstraint(["company_id", "transition_id"], ["lease.company_id", "lease.transition_id"]),
    UniqueConstraint("company_id", "transition_id", "position", name="party_order"),
    CheckConstraint(f"position BETWEEN 0 AND {rules.PARTIES_MAX - 1}", name="party_position"),
    one_of("party", "role", rules.PARTY_ROLES),
    *at_most(
        "party",
        first_name=rules.PARTY_NAME_POINTS_MAX,
        last_name=rules.PARTY_NAME_POINTS_MAX,
        email=rules.PARTY_EMAIL_POINTS_MAX,
        phone=rules.PARTY_PHONE_POINTS_MAX,
        external_id=turn_rules.FEED_EXTERNAL_ID_POINTS_MAX,
    ),
)
