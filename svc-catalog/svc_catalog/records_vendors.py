"""The public shape of a vendor (spec 2.8), and its row in an import."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.bodies import Between, Text
from chassis.instants import printed
from svc_catalog import rules_vendors as rules
from svc_catalog.records import Row
from svc_catalog.records_import import Count, ExternalId, Name


class Business(msgspec.Struct, frozen=True, gc=False):
    """The legal entity behind a vendor: these of its fields and no other."""

    id: int
    legal_name: str
    website: str | None


class Vendor(msgspec.Struct, frozen=True, gc=False):
    """A vendor relationship, keys in the order of spec 2.8: without external_id and source, and url before the last."""

    schema_version: int
    entity_type: str
    entity_id: int
    name: str
    business: Business
    avg_rating: float | None
    rating_count: int
    is_active: bool
    property_visibility: rules.PropertyVisibility
    onboarded_at: str
    retired_at: str | None
    url: str
    last_compliance_state: rules.ComplianceState


class VendorLinks:
    """Renders rows of `queries_vendors` with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._links_url = links_url

    def vendor(self, row: Row) -> Vendor:
        # The columns of queries_vendors.VENDOR_COLUMNS, in their order.
        (
            entity_id,
            name,
            business_id,
            legal_name,
            website,
            avg_rating,
            rating_count,
            is_active,
            property_visibility,
            onboarded_at,
            retired_at,
            last_compliance_state,
            _version,
        ) = row
        return Vendor(
            1,
            "vendor",
            entity_id,
            name,
            Business(business_id, legal_name, website),
            avg_rating,
            rating_count,
            is_active,
            property_visibility,
            printed(onboarded_at),
            None if retired_at is None else printed(retired_at),
            f"{self._links_url}/vendors/{entity_id}",
            rules.published_compliance(last_compliance_state),  # type: ignore[arg-type]
        )


class VendorRow(msgspec.Struct, kw_only=True):
    """A vendor's row in an import. legal_name and website are the business's; legal_name is the name if not given."""

    external_id: ExternalId
    name: Name
    legal_name: Name | None = None
    website: Annotated[str, Text(longest=rules.WEBSITE_POINTS_MAX)] | None = None
    avg_rating: Annotated[float, Between(0, rules.RATING_MAX)] | None = None
    rating_count: Count | None = None
    is_active: bool | None = None
    property_visibility: rules.PropertyVisibility | None = None
    onboarded_at: datetime.datetime | None = None
    retired_at: datetime.datetime | None = None
    last_compliance_state: rules.ComplianceState | None = None
