"""The public shape of a vendor (spec 2.8)."""

from __future__ import annotations

from typing import Literal

import msgspec

from chassis.records.shapes import Computed, Link, Nested, Shape, encode
from svc_catalog.vendors import rules
from svc_catalog.vendors.tables import VENDOR_NAME, business, vendor


class Business(msgspec.Struct, frozen=True, gc=False):
    """The legal entity behind a vendor. Vendors with the same business are relationships with the same entity."""

    id: int
    """The business's id."""
    legal_name: str
    """The name that it is registered under."""
    website: str | None
    """The address of its website; null where none is known."""


class Vendor(msgspec.Struct, frozen=True, gc=False):
    """A vendor: the company's relationship with a business that works for it. Inactive vendors are included."""

    schema_version: Literal[1]
    entity_type: Literal["vendor"]
    entity_id: int
    name: str
    """The company's name for the vendor: its nickname, or else the legal name of the business."""
    business: Business
    """The legal entity behind the vendor."""
    avg_rating: float | None
    """The average of its ratings; null where there is none."""
    rating_count: int
    """How many ratings it has."""
    is_active: bool
    """Whether the company works with the vendor at present."""
    property_visibility: rules.PropertyVisibility
    """At which of the company's properties the vendor may work: all of them, or those selected for it."""
    onboarded_at: str
    """When the relationship began."""
    retired_at: str | None
    """When the relationship ended; null where it has not."""
    url: str
    last_compliance_state: rules.ComplianceState
    """The result of the last hourly check of its insurance and documents; `unknown` before the first check."""


# The change of `vendor.hold` (spec 6.1).
HELD = encode({"field": "on_hold", "from": False, "to": True})


VENDOR = Shape(
    Vendor,
    vendor,
    name=VENDOR_NAME,
    business=Nested(Business, business),
    url=Link("/vendors/{entity_id}"),
    last_compliance_state=Computed(rules.published_compliance, vendor.c.last_compliance_state),
    version=vendor.c.version,
)
