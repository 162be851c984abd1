"""The plans of pages: the rows that a list's statement reads, for tests and for docs/plans.md."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.lists.paging import Pages

Node = dict[str, Any]


class Plan(list[Node]):
    """Every node of an executed plan, the root first."""

    @property
    def returned(self) -> int:
        rows: float = self[0]["Actual Rows"]
        return round(rows)

    @property
    def rows_met(self) -> int:
        """The rows and index entries that the plan read from tables, including those that it discarded."""
        return round(sum(rows_looked_at(node) for node in self if "Relation Name" in node))

    @property
    def buffers(self) -> int:
        """The number of accesses to blocks of 8 KiB, in memory or on disk."""
        blocks: int = self[0]["Shared Hit Blocks"] + self[0]["Shared Read Blocks"]
        return blocks

    @property
    def indexes(self) -> list[str]:
        """The indexes that the plan read, in its order."""
        return list(dict.fromkeys(node["Index Name"] for node in self if "Index Name" in node and node["Actual Loops"]))

    @property
    def whole_tables(self) -> list[str]:
        """The tables that the plan read from their first row."""
        return [node["Relation Name"] for node in self if node["Node Type"] == "Seq Scan" and node["Actual Loops"]]


def lists_of(*modules: ModuleType) -> dict[str, Pages]:
    """Every list that the modules declare, by its name there."""
    return {name: value for module in modules for name, value in vars(module).items() if isinstance(value, Pages)}


def filter_sets(pages: Pages, requires: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Every set of filters that a caller may set. requires: filters that are refused without another."""
    for size in range(len(pages.filters) + 1):
        for names in itertools.combinations(pages.filters, size):
            if all(requires.get(name, name) in names for name in names):
                yield names


async def page_plan(
    database: Database, pages: Pages, company_id: int, limit: int, after_id: Any = 0, **filters: Any
) -> Plan:
    """The generic plan, which knows no parameter's value, executed with these values."""
    values = {"company_id": company_id, "after_id": after_id, "rows": limit + 1, **filters}
    return await statement_plan(database, pages.statement(frozenset(filters)), **values)


async def statement_plan(database: Database, statement: Statement, first: str = "", /, **values: Any) -> Plan:
    """As `page_plan`, for any statement; first: SQL at the beginning of its transaction."""
    async with explained(database, statement, first) as explain:
        return await explain(**values)


def _literal(value: Any) -> str:
    """A parameter's value in SQL; the statement knows its type."""
    text = f"{{{', '.join(map(_element, value))}}}" if isinstance(value, list) else str(value)
    return "'" + text.replace("'", "''") + "'"


def _element(value: Any) -> str:
    """An element of an array."""
    if isinstance(value, bytes):
        value = f"\\\\x{value.hex()}"
    return "NULL" if value is None else f'"{value}"'


@asynccontextmanager
async def explained(
    database: Database, statement: Statement, first: str = ""
) -> AsyncIterator[Callable[..., Awaitable[Plan]]]:
    """Prepares a statement once and runs it with any values. first: see `Database.transaction`."""
    async with database.transaction(first) as connection:
        await connection.raw.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.raw.execute(f"PREPARE explained AS {statement.sql}")

        async def explain(**values: Any) -> Plan:
            literals = ", ".join(map(_literal, statement.arguments(values)))
            arguments = f" ({literals})" if literals else ""
            answer = await connection.raw.fetchval(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON, COSTS OFF, TIMING OFF) EXECUTE explained{arguments}"
            )
            root: Node = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
            return Plan(_nodes(root))

        try:
            yield explain
        finally:
            await connection.raw.execute("DEALLOCATE explained")


def _nodes(node: Node) -> list[Node]:
    return [node, *(descendant for child in node.get("Plans", []) for descendant in _nodes(child))]


def rows_looked_at(node: Node) -> float:
    """How many rows a node read, including those that it filtered out."""
    thrown = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    met: float = (node["Actual Rows"] + thrown) * node["Actual Loops"]
    return met
