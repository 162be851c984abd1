"""The tables of vendors: a vendor is a company's relationship with a business.

Two vendors of one company can share a business, if they are the same legal entity. Companies never share one: one
company's import must not change another's data.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
    text,
)

from chassis.changes.tables import Follow, make_followable
from chassis.lists.updated_since import status_key
from svc_catalog import field_rules
from svc_catalog.day_pages import INFINITY
from svc_catalog.schema import between, company_key, id_of, ids, instant, metadata, one_of, version
from svc_catalog.vendors import rules
from svc_catalog.vendors.words import words_of

business_id = ids("business_id")
vendor_id = ids("vendor_id")

business = Table(
    "business",
    metadata,
    company_key(),
    id_of(business_id),
    Column("legal_name", Text, nullable=False),
    Column("website", Text),
    UniqueConstraint("company_id", "legal_name", name="business_legal_name"),
)

vendor = Table(
    "vendor",
    metadata,
    company_key(),
    id_of(vendor_id),
    version(),
    Column("business_id", BigInteger, nullable=False),
    # Null if the company uses the legal name.
    Column("nickname", Text),
    Column("avg_rating", Double),
    Column("rating_count", Integer, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("property_visibility", Text, nullable=False),
    instant("onboarded_at"),
    Column("retired_at", DateTime(timezone=True)),
    # The newest snapshot; null if none was taken.
    Column("last_compliance_state", Text),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    Column("on_hold", Boolean, nullable=False, server_default=text("false")),
    Column("hold_reason", Text),
    # When the newest hold began; it stays when the hold ends.
    Column("held_at", DateTime(timezone=True)),
    # Insurance, and the next day for a snapshot (rules.VendorCompliance).
    Column("insurance_tracked", Boolean, nullable=False, server_default=text("false")),
    Column("insurance_expires_on", Date),
    Column("lapse_held_for", Date),
    Column("compliance_due_on", Date),
    UniqueConstraint("company_id", "external_id", name="vendor_external_id"),
    ForeignKeyConstraint(["company_id", "business_id"], ["business.company_id", "business.id"]),
    between("vendor", "avg_rating", 0, rules.RATING_MAX),
    between("vendor", "rating_count", 0, field_rules.COUNT_MAX),
    one_of("vendor", "property_visibility", rules.PROPERTY_VISIBILITIES),
    one_of("vendor", "last_compliance_state", rules.COMPLIANCE_STATES),
    one_of("vendor", "source", field_rules.SOURCES),
    CheckConstraint("on_hold = (hold_reason IS NOT NULL)", name="vendor_hold_has_a_reason"),
    CheckConstraint("NOT on_hold OR held_at IS NOT NULL", name="vendor_hold_has_an_instant"),
    CheckConstraint(
        "insurance_tracked OR num_nonnulls(insurance_expires_on, lapse_held_for, compliance_due_on) = 0",
        name="vendor_insurance_is_tracked",
    ),
)
# The name that the company uses for the vendor.
VENDOR_NAME = func.coalesce(vendor.c.nickname, business.c.legal_name)

# Imports use it to find out whether other vendors share a business, and changes of a business to find its vendors.
Index("vendor_of_business", vendor.c.company_id, vendor.c.business_id, vendor.c.id)
# The sweep's index: only vendors whose state may change.
Index(
    "vendor_compliance_due",
    vendor.c.company_id,
    vendor.c.compliance_due_on,
    vendor.c.id,
    postgresql_where=vendor.c.compliance_due_on.is_not(None),
)
Index("vendor_on_hold", vendor.c.company_id, vendor.c.id, postgresql_where=vendor.c.on_hold)

# What people search by (rules.search_state).
SEARCH_STATE = func.textcat(
    func.text(vendor.c.on_hold),
    func.textcat(
        func.text(vendor.c.is_active), func.coalesce(vendor.c.last_compliance_state, literal_column("'unknown'"))
    ),
    type_=Text,
)
# The last insured day; infinity if none is on record.
INSURED_UNTIL = func.coalesce(vendor.c.insurance_expires_on, INFINITY)
Index("vendor_search", status_key(vendor.c.company_id, SEARCH_STATE), vendor.c.id)
Index("vendor_search_insurance", status_key(vendor.c.company_id, SEARCH_STATE), INSURED_UNTIL, vendor.c.id)

# The text of a vendor whose words people search; its business's legal name has an index of its own.
VENDOR_TEXT = func.textcat(
    func.coalesce(vendor.c.nickname, text("''")),
    func.textcat(text("' '"), func.coalesce(vendor.c.external_id, text("''"))),
)
VENDOR_WORDS = words_of(vendor.c.company_id, VENDOR_TEXT)
BUSINESS_WORDS = words_of(business.c.company_id, business.c.legal_name)
# Without a list of pending entries, which each search would read: vendors change rarely.
_GIN: dict[str, Any] = {"postgresql_using": "gin", "postgresql_with": {"fastupdate": "off"}}
Index("vendor_words", VENDOR_WORDS, **_GIN)
Index("business_words", BUSINESS_WORDS, **_GIN)
make_followable(vendor, Follow("business_id", business, "legal_name", "website"))
