"""What a newer schema removes from the release's code: each rule is broken once, as a finding and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from testkit.expansion import CHECK, FOREIGN_KEY, PRIMARY_KEY, UNIQUE, Column, Constraint, Schema, breakages
from testkit.plugin import PostgresServer
from testkit.schemas import dump, load, read, read_on

RELEASED = Schema(
    tables={"ticket": "", "event": "RANGE (event_id)"},
    columns={
        ("ticket", "id"): Column("bigint", not_null=True, identity="BY DEFAULT"),
        ("ticket", "title"): Column("text", not_null=True),
        ("ticket", "room"): Column("text"),
        ("ticket", "version"): Column("bigint", not_null=True, default="1"),
        ("event", "event_id"): Column("uuid", not_null=True),
    },
    constraints={
        ("ticket", "ticket_pkey"): Constraint(PRIMARY_KEY, "PRIMARY KEY (id)"),
        ("ticket", "ticket_title"): Constraint(CHECK, "CHECK (title <> '')"),
        ("ticket", "ticket_room"): Constraint(UNIQUE, "UNIQUE (room)"),
    },
    unique_indexes={("ticket", "ticket_open"): "CREATE UNIQUE INDEX ticket_open ON ticket (title)"},
    sequences={"ticket_id": "bigint by 1"},
    namespaces=frozenset({"public", "partitions"}),
)
TITLE, ROOM, VERSION, ID = (("ticket", name) for name in ("title", "room", "version", "id"))


def without(mapping: Mapping[Any, Any], *keys: Any) -> dict[Any, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def column(key: tuple[str, str], definition: Column | None) -> Schema:
    others = without(RELEASED.columns, key)
    return replace(RELEASED, columns=others if definition is None else {**others, key: definition})


def constraint(table: str, name: str, definition: Constraint | None) -> Schema:
    others = without(RELEASED.constraints, (table, name))
    return replace(RELEASED, constraints=others if definition is None else {**others, (table, name): definition})


BROKEN: dict[str, Schema] = {
    "schema partitions is gone": replace(RELEASED, namespaces=frozenset({"public"})),
    "table ticket is gone": replace(
        RELEASED,
        tables=without(RELEASED.tables, "ticket"),
        columns=without(RELEASED.columns, TITLE, ROOM, VERSION, ID),
        constraints={},
        unique_indexes={},
    ),
    "table event is partitioned otherwise": replace(RELEASED, tables={"ticket": "", "event": ""}),
    "column ticket.room is gone": column(ROOM, None),
    "column ticket.version was bigint and is text": column(VERSION, Column("text", not_null=True, default="1")),
    "column ticket.room takes no null any more": column(ROOM, Column("text", not_null=True, default="''")),
    "column ticket.version has no default any more": column(VERSION, Column("bigint", not_null=True)),
    "column ticket.title takes no values any more": column(TITLE, Column("text", not_null=True, computed=True)),
    "column ticket.id takes no values any more": column(ID, Column("bigint", not_null=True, identity="ALWAYS")),
    "column ticket.owner is new, takes no null and has no default": column(
        ("ticket", "owner"), Column("text", not_null=True)
    ),
    "constraint ticket.ticket_owner is new": constraint("ticket", "ticket_owner", Constraint(CHECK, "CHECK (true)")),
    "constraint ticket.ticket_cost is new": constraint(
        "ticket", "ticket_cost", Constraint(CHECK, "CHECK (cost > 0)", "", frozenset({"cost"}))
    ),
    "constraint ticket.ticket_rooms is new": constraint(
        "ticket", "ticket_rooms", Constraint(CHECK, "CHECK (cost > 0)", "", frozenset({"cost", "room"}), True)
    ),
    "constraint ticket.ticket_costs is new": constraint(
        "ticket", "ticket_costs", Constraint(UNIQUE, "UNIQUE (cost)", "", frozenset({"cost"}), True)
    ),
    "constraint ticket.ticket_version is new": constraint(
        "ticket", "ticket_version", Constraint(UNIQUE, "UNIQUE (version)")
    ),
    "constraint ticket.ticket_event is new": constraint(
        "ticket", "ticket_event", Constraint(FOREIGN_KEY, "FOREIGN KEY (room) REFERENCES event", "event")
    ),
    "constraint note.note_ticket is new and holds rows of ticket": replace(
        constraint("note", "note_ticket", Constraint(FOREIGN_KEY, "FOREIGN KEY (id) REFERENCES ticket", "ticket")),
        tables={**RELEASED.tables, "note": ""},
    ),
    "constraint ticket.ticket_title says something else": constraint(
        "ticket", "ticket_title", Constraint(CHECK, "CHECK (length(title) > 3)")
    ),
    "constraint ticket.ticket_room is gone": constraint("ticket", "ticket_room", None),
    "unique index ticket.ticket_once is new or different": replace(
        RELEASED,
        unique_indexes={**RELEASED.unique_indexes, ("ticket", "ticket_once"): "CREATE UNIQUE INDEX ticket_once"},
    ),
    "unique index ticket.ticket_open is gone": replace(RELEASED, unique_indexes={}),
    "trigger ticket.audited is new or different": replace(RELEASED, triggers={("ticket", "audited"): "CREATE TRIGGER"}),
    "sequence ticket_id is gone": replace(RELEASED, sequences={}),
    "sequence ticket_id counts otherwise": replace(RELEASED, sequences={"ticket_id": "bigint by 50"}),
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_break_of_the_release_is_reported_once(sentence: str) -> None:
    assert breakages(RELEASED, BROKEN[sentence]) == [sentence]


@pytest.mark.parametrize(
    "head",
    [
        RELEASED,
        replace(
            column(("note", "body"), Column("text", not_null=True)),
            tables={**RELEASED.tables, "note": ""},
            constraints={**RELEASED.constraints, ("note", "note_pkey"): Constraint(PRIMARY_KEY, "PRIMARY KEY (body)")},
            unique_indexes={**RELEASED.unique_indexes, ("note", "note_once"): "CREATE UNIQUE INDEX note_once"},
            triggers={("note", "audited"): "CREATE TRIGGER"},
            sequences={**RELEASED.sequences, "note_id": "bigint by 1"},
        ),
        column(("ticket", "owner"), Column("text")),
        column(("ticket", "owner"), Column("text", not_null=True, default="''")),
        column(VERSION, Column("bigint", not_null=True, default="2")),
        column(TITLE, Column("text")),
        constraint("ticket", "ticket_title", None),
        constraint("ticket", "ticket_cost", Constraint(CHECK, "CHECK (cost > 0)", "", frozenset({"cost"}), True)),
    ],
    ids=[
        "the same",
        "a new table",
        "a column",
        "one with a default",
        "another default",
        "null allowed",
        "no check",
        "a check of a new column",
    ],
)
def test_what_only_adds_or_allows_breaks_nothing(head: Schema) -> None:
    assert breakages(RELEASED, head) == []


SQL = """
CREATE SCHEMA partitions;
CREATE SEQUENCE ticket_id AS bigint;
CREATE TABLE property (id bigint PRIMARY KEY, name text COLLATE "C" UNIQUE);
CREATE TABLE ticket (
    id bigint DEFAULT nextval('ticket_id') PRIMARY KEY,
    seen bigint GENERATED BY DEFAULT AS IDENTITY,
    title text NOT NULL CONSTRAINT ticket_title CHECK (title <> ''),
    room text,
    version integer NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX ticket_open ON ticket (title) WHERE room IS NULL;
CREATE INDEX ticket_rooms ON ticket (room);
CREATE TABLE event (event_id uuid PRIMARY KEY) PARTITION BY RANGE (event_id);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
"""
AS_SQL = {
    "DROP SCHEMA partitions": ["schema partitions is gone"],
    "ALTER TABLE ticket RENAME TO job": ["table ticket is gone"],
    "DROP TABLE event; CREATE TABLE event (event_id uuid PRIMARY KEY)": ["table event is partitioned otherwise"],
    "ALTER TABLE ticket RENAME version TO edition; ALTER TABLE ticket ALTER edition DROP NOT NULL": [
        "column ticket.version is gone"
    ],
    "ALTER TABLE ticket ALTER version TYPE bigint": ["column ticket.version was integer and is bigint"],
    "ALTER TABLE property ALTER name TYPE text COLLATE pg_catalog.default": [
        'column property.name was text COLLATE "C" and is text'
    ],
    "ALTER TABLE ticket ALTER room SET NOT NULL": ["column ticket.room takes no null any more"],
    "ALTER TABLE ticket ALTER version DROP DEFAULT": ["column ticket.version has no default any more"],
    "ALTER TABLE ticket ALTER seen DROP IDENTITY": [
        "column ticket.seen has no default any more",
        "sequence ticket_seen_seq is gone",
    ],
    "ALTER TABLE ticket ALTER seen SET GENERATED ALWAYS": ["column ticket.seen takes no values any more"],
    "ALTER TABLE ticket DROP room; ALTER TABLE ticket ADD room text GENERATED ALWAYS AS (title) STORED": [
        "column ticket.room takes no values any more",
        "unique index ticket.ticket_open is gone",
    ],
    "ALTER TABLE ticket ADD owner text NOT NULL": ["column ticket.owner is new, takes no null and has no default"],
    "ALTER TABLE ticket ADD CHECK (version > 0) NOT VALID": ["constraint ticket.ticket_version_check is new"],
    "ALTER TABLE ticket ADD cost integer, ADD CONSTRAINT cost_in CHECK (cost IS NOT NULL) NOT VALID": [
        "constraint ticket.cost_in is new"
    ],
    "ALTER TABLE ticket ADD cost integer NOT NULL DEFAULT 0, ADD CONSTRAINT cost_in CHECK (cost > 0) NOT VALID": [
        "constraint ticket.cost_in is new"
    ],
    "ALTER TABLE ticket ADD cost integer, ADD CONSTRAINT cost_in CHECK (cost > version)": [
        "constraint ticket.cost_in is new"
    ],
    "ALTER TABLE ticket ADD UNIQUE (room)": ["constraint ticket.ticket_room_key is new"],
    "ALTER TABLE ticket ADD FOREIGN KEY (version) REFERENCES property": [
        "constraint ticket.ticket_version_fkey is new"
    ],
    "CREATE TABLE note (id bigint PRIMARY KEY REFERENCES ticket)": [
        "constraint note.note_id_fkey is new and holds rows of ticket"
    ],
    "ALTER TABLE ticket DROP CONSTRAINT ticket_title, ADD CONSTRAINT ticket_title CHECK (length(title) > 3)": [
        "constraint ticket.ticket_title says something else"
    ],
    "ALTER TABLE property DROP CONSTRAINT property_name_key": ["constraint property.property_name_key is gone"],
    "CREATE UNIQUE INDEX ticket_once ON ticket (room, lower(title))": [
        "unique index ticket.ticket_once is new or different"
    ],
    "DROP INDEX ticket_open": ["unique index ticket.ticket_open is gone"],
    "DROP INDEX ticket_open; CREATE UNIQUE INDEX ticket_open ON ticket (title)": [
        "unique index ticket.ticket_open is new or different"
    ],
    "CREATE TRIGGER touched BEFORE UPDATE ON ticket FOR EACH ROW EXECUTE FUNCTION touch()": [
        "trigger ticket.touched is new or different"
    ],
    "ALTER SEQUENCE ticket_id INCREMENT 50": ["sequence ticket_id counts otherwise"],
    # Changes that do not affect the release.
    "DROP INDEX ticket_rooms; CREATE INDEX ticket_versions ON ticket (version)": [],
    "ALTER TABLE ticket ADD owner text; ALTER TABLE ticket ADD color text NOT NULL DEFAULT 'none'": [],
    "ALTER TABLE ticket ADD cost integer, ADD \"To\" text DEFAULT 'x' CHECK (\"To\" <> 'y'), ADD CHECK (cost > 0)": [],
    "CREATE TABLE note (id bigint PRIMARY KEY REFERENCES ticket ON DELETE CASCADE, body text NOT NULL)": [],
    "ALTER TABLE ticket DROP CONSTRAINT ticket_title, ALTER title DROP NOT NULL, ALTER version SET DEFAULT 2": [],
}


@pytest.fixture(scope="module")
async def released(postgres_server: PostgresServer) -> str:
    """The URL of a database with the tables of SQL."""
    url = postgres_server.create_database("expansion")
    await load(url, SQL)
    return url


@pytest.mark.parametrize("statements", AS_SQL)
async def test_postgresql_is_read_for_every_rule(released: str, statements: str) -> None:
    before = await read(released)
    connection = await asyncpg.connect(released)
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(statements)
        assert breakages(before, await read_on(connection)) == AS_SQL[statements]
        await transaction.rollback()
    finally:
        await connection.close()
    assert await read(released) == before


async def test_a_dump_makes_what_was_dumped(postgres_server: PostgresServer) -> None:
    first, second = (postgres_server.create_database(f"dumped_{name}") for name in ("once", "again"))
    await load(first, SQL)
    sql = dump(first)
    assert "CREATE UNIQUE INDEX ticket_open" in sql and "\n--" not in sql and "restrict" not in sql
    await load(second, sql)
    assert await read(second) == await read(first)
    assert dump(second) == sql
