"""The plan of a page, for tests that a list's cost depends on nobody else's rows."""

import json
from typing import Any

from chassis.database import Database
from chassis.paging import Pages
from chassis.statements import Statement

Node = dict[str, Any]


async def page_plan(database: Database, pages: Pages, company_id: int, limit: int, **filters: Any) -> list[Node]:
    """Every node of the plan that serves all callers, run for this one: it knows no parameter's value."""
    values = {"company_id": company_id, "after_id": 0, "rows": limit + 1, **filters}
    return await statement_plan(database, pages._statement(frozenset(filters)), **values)


async def statement_plan(database: Database, statement: Statement, **values: Any) -> list[Node]:
    """Likewise for any statement."""
    literals = ", ".join(f"'{value}'" for value in statement.arguments(values))
    async with database.transaction() as connection:
        await connection.raw.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.raw.execute(f"PREPARE page AS {statement.sql}")
        try:
            answer = await connection.raw.fetchval(
                f"EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) EXECUTE page ({literals})"
            )
        finally:
            await connection.raw.execute("DEALLOCATE page")
    plan: Node = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
    return _nodes(plan)


def _nodes(node: Node) -> list[Node]:
    return [node, *(one for child in node.get("Plans", []) for one in _nodes(child))]


def rows_looked_at(node: Node) -> float:
    """How many rows a node met, those that it filtered out too."""
    met: float = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return met
