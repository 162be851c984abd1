"""What the back office gives of a vendor."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Between, Text
from svc_catalog import rules_vendors, rules_vendors_desk
from svc_catalog.records_import import Count, ExternalId, Name


class VendorChange(msgspec.Struct, kw_only=True):
    """Fields of a vendor; legal_name and website are the business's."""

    name: Name | None = None
    legal_name: Name | None = None
    website: Annotated[str, Text(longest=rules_vendors.WEBSITE_POINTS_MAX)] | None = None
    avg_rating: Annotated[float, Between(0, rules_vendors.RATING_MAX)] | None = None
    rating_count: Count | None = None
    is_active: bool | None = None
    property_visibility: rules_vendors.PropertyVisibility | None = None
    external_id: ExternalId | None = None


class NewVendor(VendorChange, kw_only=True):
    """A vendor that is added."""

    name: Name


class Hold(msgspec.Struct, kw_only=True):
    """Why a vendor is placed on hold."""

    reason: Annotated[str, Text(longest=rules_vendors_desk.REASON_POINTS_MAX, blank=False)]


class Insurance(msgspec.Struct, kw_only=True):
    """Until when a vendor is insured."""

    expires_on: datetime.date | None = None


FIELDS = VendorChange.__struct_fields__
CLEARABLE = frozenset({"website", "avg_rating", "external_id"})
