"""Every table of the database `catalog`, in `metadata`, for migrations and the service's startup."""

from __future__ import annotations

# Each import adds its tables to `metadata`.
from svc_catalog.inspection_templates import tables as inspection_templates
from svc_catalog.inspections import tables as inspections
from svc_catalog.meters import tables as meters
from svc_catalog.notices import tables as notices
from svc_catalog.places import tables as places
from svc_catalog.schema import metadata
from svc_catalog.search import tables as search
from svc_catalog.vendors import tables as vendors

__all__ = ["inspection_templates", "inspections", "metadata", "meters", "notices", "places", "search", "vendors"]
