"""The fields of a vendor in requests and import rows."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Between, PastInstant, Text
from chassis.writes.editing import EditableFields
from svc_catalog.field_types import Count, ExternalId, Name
from svc_catalog.vendors import rules


class VendorRow(msgspec.Struct, kw_only=True):
    """A vendor's row in an import."""

    external_id: ExternalId
    name: Name
    legal_name: Name | None = None
    """Vendors with the same one share a business; by default the name."""
    website: Annotated[str, Text(longest=rules.WEBSITE_POINTS_MAX)] | None = None
    """Of the business: the last row of a file wins."""
    avg_rating: Annotated[float, Between(0, rules.RATING_MAX)] | None = None
    rating_count: Count | None = None
    is_active: bool | None = None
    property_visibility: rules.PropertyVisibility | None = None
    onboarded_at: PastInstant | None = None
    retired_at: PastInstant | None = None
    last_compliance_state: rules.ComplianceState | None = None
    insurance_expires_on: datetime.date | None = None
    """The last day insured. A file with this column starts tracking the insurance; blank, none is on record."""


class Hold(msgspec.Struct, kw_only=True):
    """Why a vendor is placed on hold."""

    reason: Annotated[str, Text(longest=rules.REASON_POINTS_MAX, blank=False)]


class Insurance(msgspec.Struct, kw_only=True):
    """Until when a vendor is insured."""

    expires_on: datetime.date | None = None


# The fields of AddVendor and UpdateVendor: a request may have any of those of an import row, with the same checks.
VENDOR_FIELDS = EditableFields(
    VendorRow, *VendorRow.__struct_fields__, clearable=("website", "avg_rating", "external_id")
)
