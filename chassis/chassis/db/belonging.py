"""What a table says of itself where neither a column `company_id` nor a foreign key says whose rows it has.

When a company has ended, its rows are deleted from every table: see `chassis.writes.purging`.
"""

from __future__ import annotations

from typing import Any

NONE, THROUGH = "belongs_to_no_company", "belongs_through"


def to_no_company(reason: str) -> dict[str, Any]:
    """The `info` of a table whose rows stay when a company ends, and why."""
    return {NONE: reason}


def through(column: str, parent: str) -> dict[str, Any]:
    """The `info` of a table whose rows belong to the company of the row that `column` names: `parent` is that row's
    table and column, as "api_key.id". There is no foreign key."""
    return {THROUGH: (column, parent)}
