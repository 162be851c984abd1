"""Fills the words by which people find places, in the background.

A row whose `version` is not its `searched_version` is in a small partial index. So no write knows about words, rows of
imports and of older releases are found too, and after a kill the rest is still in the index.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import IN_ORDER, Connection, Database
from chassis.db.rows import array_rows
from chassis.db.statements import Expression, SqlType, Statement
from chassis.lists.words import words_of
from svc_catalog.meters.tables import meter
from svc_catalog.places.tables import asset, location, property_, unit
from svc_catalog.schema import in_order_of_names
from svc_catalog.search.tables import lexeme_prefix, place_search
from svc_catalog.selects import refers_to

ROWS_AT_ONCE = 200
POLL_SECONDS = 1.0
# After a first import the statistics call the tables empty for a minute. A batch of 10,000 new assets was then merged
# with all units of the company, for 62 million rows and 7 s.
BATCH = IN_ORDER

_KEY = {"company_id": sa.BigInteger(), "id": sa.BigInteger()}


class Kind:
    """How the rows of one table get their words."""

    def __init__(
        self, name: str, table: sa.Table, source: sa.FromClause, property_id: Expression, *texts: Expression
    ) -> None:
        """source: the table with those joined that have texts."""
        stale = sa.text(f"{table.name}.searched_version <> {table.name}.version")
        self.name = name
        # In the order of the small index: PostgreSQL assumes that nearly all rows are stale. Without the order it read
        # the whole table to find that none was.
        in_order = sa.select(table.c.id).where(stale).order_by(table.c.company_id, table.c.id)
        first = in_order.limit(sa.literal_column("1"))
        self.is_stale = first.scalar_subquery().is_not(None)
        order = in_order_of_names(table.c.name).label("name_order")
        columns = (table.c.company_id, table.c.id, table.c.version, property_id.label("property_id"), order)
        self.rows = Statement(
            sa.select(*columns, *(text.label(f"text_{place}") for place, text in enumerate(texts)))
            .select_from(source)
            .where(stale)
            .order_by(table.c.company_id, table.c.id)
            .limit(sa.literal_column(str(ROWS_AT_ONCE)))
            .with_for_update(of=table, key_share=True, skip_locked=True)
        )
        done = array_rows("done", {**_KEY, "version": sa.BigInteger()})
        same = (table.c.company_id == done.c.company_id, table.c.id == done.c.id)
        self.mark = Statement(sa.update(table).where(*same).values(searched_version=done.c.version))


def _again(table: sa.Table, column: str) -> Statement:
    """Marks the rows that lie in changed places."""
    places = array_rows("places", _KEY)
    return Statement(
        sa.update(table)
        .where(
            table.c.company_id == places.c.company_id,
            table.c[column] == places.c.id,
            table.c.searched_version != sa.literal_column("0"),
        )
        .values(searched_version=sa.literal_column("0"))
    )


_in_property = {table: refers_to(table, "property_id", property_) for table in (unit, asset, meter)}
KINDS = (
    Kind(
        "property",
        property_,
        property_,
        property_.c.id,
        *(property_.c[name] for name in ("name", "external_id", "address", "city", "postal_code")),
    ),
    Kind(
        "unit",
        unit,
        unit.join(property_, _in_property[unit]),
        unit.c.property_id,
        *(unit.c[name] for name in ("name", "unit_number", "external_id")),
        property_.c.name,
    ),
    Kind(
        "asset",
        asset,
        asset.join(property_, _in_property[asset])
        .outerjoin(unit, refers_to(asset, "unit_id", unit))
        .outerjoin(location, refers_to(asset, "location_id", location)),
        asset.c.property_id,
        *(asset.c[name] for name in ("name", "asset_tag", "serial_number", "external_id", "make", "model")),
        *(asset.c[name] for name in ("category", "sub_category")),
        *(property_.c.name, unit.c.name, location.c.name),
    ),
    Kind(
        "meter",
        meter,
        meter.join(property_, _in_property[meter]).outerjoin(unit, refers_to(meter, "unit_id", unit)),
        meter.c.property_id,
        *(meter.c[name] for name in ("name", "meter_number", "external_id", "utility_type")),
        *(property_.c.name, unit.c.name),
    ),
)
# The records whose words have the name of a place of this kind.
_INSIDE = {
    "property": [_again(table, "property_id") for table in (unit, asset, meter)],
    "unit": [_again(table, "unit_id") for table in (asset, meter)],
}
_STALE = Statement(
    sa.union_all(*(sa.select(sa.literal_column(f"'{kind.name}'", sa.Text)).where(kind.is_stale) for kind in KINDS))
)

_FIELDS: dict[str, SqlType] = {
    **_KEY,
    "kind": sa.Text(),
    "property_id": sa.BigInteger(),
    "name_order": sa.Text(),
    "words": sa.Text(),
}


class _Entry(NamedTuple):
    company_id: int
    id: int
    kind: str
    property_id: int
    name_order: str
    words: str


def _save() -> Statement:
    """Saves entries and returns the keys of those that are new or differ."""
    entries = array_rows("entries", _FIELDS)
    blank: Expression = sa.literal_column("' '")
    words = sa.func.array_to_tsvector(
        sa.func.array_remove(sa.func.string_to_array(entries.c.words, blank), sa.literal_column("''"))
    )
    columns = [entries.c[name] for name in _FIELDS if name != "words"]
    form = insert(place_search).from_select(list(_FIELDS), sa.select(*columns, words), include_defaults=False)
    new, stored = form.excluded, place_search.c
    values = {name: new[name] for name in ("property_id", "name_order", "words")}
    differs = sa.or_(*(stored[name].is_distinct_from(new[name]) for name in values))
    upsert = form.on_conflict_do_update(index_elements=["company_id", "kind", "id"], set_=values, where=differs)
    return Statement(upsert.returning(stored.company_id, stored.id))


_SAVE = _save()


class Indexing:
    """Keeps `place_search` up to date. Several processes share the work."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        """Works for as long as the process runs."""
        while True:
            if not await self.step():
                await asyncio.sleep(POLL_SECONDS)

    async def step(self) -> int:
        """Fills the words of a batch of rows of each kind; returns how many."""
        stale = {row[0] for row in await self._database.rows(_STALE)}
        done = 0
        for kind in KINDS:
            if kind.name in stale:
                async with self._database.transaction(BATCH) as connection:
                    done += await self._fill(connection, kind)
        return done

    async def _fill(self, connection: Connection, kind: Kind) -> int:
        rows = await connection.rows(kind.rows)
        if not rows:
            return 0
        entries = []
        for row in rows:
            company_id, entity_id, _, property_id, name_order, *texts = row
            prefix = lexeme_prefix(company_id, kind.name)
            words = " ".join(prefix + word for word in words_of(*texts))
            entries.append(_Entry(company_id, entity_id, kind.name, property_id, name_order, words))
        changed = await connection.rows(_SAVE, **_arrays(entries, list(_FIELDS)))
        await connection.execute(kind.mark, **_arrays(rows, [*_KEY, "version"]))
        for statement in _INSIDE.get(kind.name, ()) if changed else ():
            await connection.execute(statement, **_arrays(changed, list(_KEY)))
        return len(rows)


def _arrays(rows: Sequence[Record | _Entry], names: Sequence[str]) -> dict[str, list[object]]:
    return {name: [getattr(row, name) if isinstance(row, tuple) else row[name] for row in rows] for name in names}
