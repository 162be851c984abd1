"""The tables of leases and their parties."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

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

# What tells who a party is.
PERSONAL = ("first_name", "last_name", "email", "phone", "external_id")

# The parties to a transition's lease. email and phone are never logged or published; ListResidencies and
# SearchResidents alone serve them.
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
    # When the person was forgotten.
    Column("forgotten_at", DateTime(timezone=True), server_default=text("NULL")),
    # A party belongs to a lease, not only to a transition.
    ForeignKeyConstraint(["company_id", "transition_id"], ["lease.company_id", "lease.transition_id"]),
    UniqueConstraint("company_id", "transition_id", "position", name="party_order"),
    CheckConstraint(
        f"forgotten_at IS NULL OR num_nonnulls({', '.join(PERSONAL)}) = 0", name="party_forgotten_without_a_trace"
    ),
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
# The parties with one e-mail address: the same person in other leases.
EMAIL_KEY = func.lower(party.c.email)
Index("party_email", party.c.company_id, EMAIL_KEY, party.c.id, postgresql_where=text("email IS NOT NULL"))

# The words, phone number and e-mail address by which people find a party; they are in no other context's database or
# index. Filled after the write of the party; deleted in the transaction that forgets the person.
party_search = Table(
    "party_search",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("transition_id", BigInteger, nullable=False),
    Column("terms", TSVECTOR, nullable=False),
)
# No words wait to be merged into the index: nobody waits for its writes.
Index("party_search_terms", party_search.c.terms, postgresql_using="gin", postgresql_with={"fastupdate": "off"})
