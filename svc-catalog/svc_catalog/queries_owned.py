"""The rows that other contexts keep as replicas, all there are, by the field of References that carries them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, Table, select

from svc_catalog import tables as t
from svc_catalog.queries_vendors import ALL_VENDOR_REFERENCES


def _all(table: Table, *columns: str) -> Select[Any]:
    return select(*(table.c[name] for name in ("id", "version", "company_id", *columns, "name", "external_id")))


# The columns are the fields of the messages in makeready.events.v1.
ROWS = {
    "properties": _all(t.property_),
    "units": _all(t.unit, "property_id", "unit_number"),
    "assets": _all(t.asset, "property_id"),
    "vendors": ALL_VENDOR_REFERENCES,
}
