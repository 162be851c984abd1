"""Rows in one statement: each column travels as one array."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.selectable import CTE


def array_rows(name: str, **columns: Any) -> CTE:
    """Parameters of arrays, one a column, as rows."""
    arrays = [bindparam(column, type_=ARRAY(kind)) for column, kind in columns.items()]
    offered = func.unnest(*arrays).table_valued(*columns).render_derived()
    return select(*offered.c).cte(name)
