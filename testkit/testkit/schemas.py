"""The parts of a database, for the tests of migrations; and each context's schema as SQL, stored with its code.

`python -m testkit.schemas` writes PROJECT/schema/current.sql from today's migrations. With `release` it also
writes PROJECT/schema/released.sql, deletes the differences that were allowed since the last release, and keeps what
the release says it uses no longer (`deprecated.toml`) as `released-deprecated.toml`: the next one may drop it.
"""

import importlib
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import MetaData, create_mock_engine
from sqlalchemy.dialects import postgresql

from chassis.db import migrations
from chassis.db.revisions import OF_MIGRATIONS
from makeready_local.databases import make_database
from makeready_local.postgres import Postgres, reachable_binaries
from testkit.expansion import FOREIGN_KEY, Column, Constraint, Named, Schema

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ("gateway", "console", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
PG_DUMP = (
    "--schema-only", "--no-owner", "--no-privileges", "--no-comments",
    *(f"--exclude-table={table}" for table in OF_MIGRATIONS),
)  # fmt: skip
FIRST_OBJECT = "\n--\n-- Name: "  # the lines before are session settings and, from a new pg_dump, a random word
NOT_KEPT = ("SET default_table", "--\n", "-- Name: ", "-- PostgreSQL database dump complete", "\\unrestrict ")

# Alembic compares neither constraints by their definition nor sequences nor defaults, and knows no triggers.
_SCHEMA = """
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'sequence', '', sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public'
UNION ALL SELECT 'column', table_name, column_name, concat_ws(' ', data_type, is_nullable, column_default)
  FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid)
  FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'function', '', proname, pg_get_functiondef(oid)
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
"""


async def schema(url: str) -> set[tuple[str, str, str, str]]:
    """Every column, constraint, index and sequence: its kind, its table, its name, its definition."""
    connection = await asyncpg.connect(url)
    try:
        columns = {(row[0], row[1], row[2], row[3]) for row in await connection.fetch(_SCHEMA)}
    finally:
        await connection.close()
    return {row for row in columns if not set(row).intersection(OF_MIGRATIONS)}


async def declare(url: str, metadata: MetaData) -> None:
    """Makes the tables in an empty database as they are declared, without migrations."""
    statements: list[str] = []

    def collect(clause: Any, *_arguments: Any, **_more: Any) -> None:
        statements.append(str(clause.compile(dialect=postgresql.dialect())))  # type: ignore[no-untyped-call]

    metadata.create_all(create_mock_engine("postgresql://", collect), checkfirst=False)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(";\n".join(statements))
    finally:
        await connection.close()


def folder(project: str) -> Path:
    """The folder of a project's schema: `current.sql`, `released.sql`, and the allowed differences, `allowed.toml`."""
    return ROOT / project / "schema"


def package(project: str) -> str:
    """The project's Python package."""
    return project.replace("-", "_")


def dump(url: str) -> str:
    """The schema as SQL that makes it in an empty database, the same text for the same schema. Needs no superuser.

    pg_dump refuses a server that is newer than itself.
    """
    program = [str(reachable_binaries(None) / "pg_dump"), *PG_DUMP, url]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    _, mark, objects = done.stdout.partition(FIRST_OBJECT)
    schema = "".join(line for line in (mark + objects).splitlines(keepends=True) if not line.startswith(NOT_KEPT))
    statements = (part.strip("\n") for part in schema.split("\n\n"))
    return "\n\n".join(part for part in statements if part) + "\n"


async def load(url: str, sql: str) -> None:
    """Makes a dumped schema in an empty database; a blank one is that of a database that no release had."""
    if not sql.strip():
        return
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def listed(project: str, name: str) -> dict[str, str]:
    """A file of findings of a project, each sentence of `breakages` with its reason; empty if there is none."""
    file = folder(project) / f"{name}.toml"
    entries: dict[str, str] = tomllib.loads(file.read_text()) if file.exists() else {}
    return entries


def unexplained(breakages: Iterable[str], allowed: Mapping[str, str], deprecated: Mapping[str, str]) -> list[str]:
    """The findings that turn a build red, and what is allowed in vain.

    allowed: findings that can break nothing, with the reason. Nothing that is gone is among them: the code of the
    release names it. deprecated: findings of which the release said that its code uses the thing no longer.
    """
    remaining = [sentence for sentence in breakages if sentence not in deprecated]
    explained = {sentence for sentence in remaining if allowed.get(sentence) and not sentence.endswith(" is gone")}
    return [
        *(sentence for sentence in remaining if sentence not in explained),
        *(
            f"allowed.toml allows what does not happen, or may not: {sentence}"
            for sentence in sorted(allowed.keys() - explained)
        ),
    ]


_OURS = "nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'"
_TABLES = f"""
SELECT pg_class.oid, pg_class.oid::regclass::text AS name, coalesce(pg_get_partkeydef(pg_class.oid), '') AS partitioned
  FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
 WHERE relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN {OF_MIGRATIONS} AND {_OURS}
"""
_COLUMNS = """
SELECT attrelid::regclass::text AS table, attname AS name, attnotnull AS not_null,
       format_type(atttypid, atttypmod)
         || CASE WHEN attcollation <> typcollation THEN ' COLLATE ' || attcollation::regcollation ELSE '' END AS type,
       CASE attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' ELSE '' END AS identity,
       attgenerated <> '' AS computed, CASE attgenerated WHEN '' THEN pg_get_expr(adbin, adrelid) END AS default
  FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE attrelid = ANY ($1) AND attnum > 0 AND NOT attisdropped
"""
_CONSTRAINTS = """
SELECT conrelid::regclass::text AS table, conname AS name, contype::text AS kind,
       pg_get_constraintdef(oid) AS definition,
       confrelid::regclass::text AS referenced, confdeltype IN ('a', 'r') AS holds,
       CASE contype WHEN 'c' THEN ARRAY(
         SELECT attname::text FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey)
       ) END AS columns,
       CASE contype WHEN 'c' THEN pg_get_expr(conbin, conrelid) END AS condition
  FROM pg_constraint WHERE conrelid = ANY ($1) AND contype IN ('c', 'f', 'p', 'u', 'x')
"""
_UNIQUE_INDEXES = """
SELECT indrelid::regclass::text AS table, relname AS name, pg_get_indexdef(indexrelid) AS definition
  FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
 WHERE indrelid = ANY ($1) AND indisunique AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""
_TRIGGERS = """
SELECT tgrelid::regclass::text AS table, tgname AS name, pg_get_triggerdef(oid) AS definition
  FROM pg_trigger WHERE tgrelid = ANY ($1) AND NOT tgisinternal
"""
_SEQUENCES = f"""
SELECT seqrelid::regclass::text AS name,
       concat_ws(' ', seqtypid::regtype, 'by', seqincrement, 'from', seqmin, 'to', seqmax, 'cache', seqcache) AS counts
  FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
 WHERE {_OURS}
"""


async def read(url: str) -> Schema:
    """The `Schema` of a database."""
    connection = await asyncpg.connect(url)
    try:
        return await read_on(connection)
    finally:
        await connection.close()


async def read_on(connection: asyncpg.Connection) -> Schema:
    """The `Schema` of the connection's database, as its transaction sees it."""
    tables = await connection.fetch(_TABLES)
    ids = [row["oid"] for row in tables]
    columns, constraints, indexes, triggers = [
        {(row["table"], row["name"]): row for row in await connection.fetch(query, ids)}
        for query in (_COLUMNS, _CONSTRAINTS, _UNIQUE_INDEXES, _TRIGGERS)
    ]
    passing = await _passing(connection, constraints, columns)
    sequences = await connection.fetch(_SEQUENCES)
    namespaces = await connection.fetch(f"SELECT nspname FROM pg_namespace WHERE {_OURS}")
    return Schema(
        tables={row["name"]: row["partitioned"] for row in tables},
        columns={
            key: Column(row["type"], row["not_null"], row["default"], row["identity"], row["computed"])
            for key, row in columns.items()
        },
        constraints={
            key: Constraint(
                row["kind"],
                row["definition"],
                row["referenced"] if row["kind"] == FOREIGN_KEY and row["holds"] else "",
                frozenset(row["columns"] or ()),
                key in passing,
            )
            for key, row in constraints.items()
        },
        unique_indexes={key: row["definition"] for key, row in indexes.items()},
        triggers={key: row["definition"] for key, row in triggers.items()},
        sequences={row["name"]: row["counts"] for row in sequences},
        namespaces=frozenset(row["nspname"] for row in namespaces),
    )


async def _passing(
    connection: asyncpg.Connection, constraints: Mapping[Named, asyncpg.Record], columns: Mapping[Named, asyncpg.Record]
) -> set[Named]:
    """The CHECKs that a row of their columns' defaults passes. Computed and identity columns have no default."""
    passing = set()
    for (table, name), row in constraints.items():
        defaults = ", ".join(
            f"({columns[table, column]['default'] or 'NULL'})::{columns[table, column]['type']} AS {_quoted(column)}"
            for column in row["columns"] or ()
        )
        if defaults and await connection.fetchval(
            f"SELECT ({row['condition']}) IS NOT FALSE FROM (SELECT {defaults}) AS defaults"
        ):
            passing.add((table, name))
    return passing


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def main(words: list[str]) -> int:
    """Writes the schemas of all contexts, from databases of its own."""
    from testkit.plugin import server_folder  # noqa: PLC0415 - of the tests' packages, not the product's

    if words not in ([], ["release"]):
        sys.stderr.write("usage: python -m testkit.schemas [release]\n")
        return 2
    with server_folder() as place:
        server = Postgres(place / "postgres", "schemas", log=place / "postgres.log", settings={"fsync": "off"})
        server.start()
        try:
            for project in PROJECTS:
                url = make_database(server.url, package(project), "schemas")
                tables = importlib.import_module(f"{package(project)}.tables")
                migrations.migrate(url, package(project), tables.metadata)
                sql = dump(url)
                folder(project).mkdir(exist_ok=True)
                for name in ("current.sql", *(["released.sql"] if words else [])):
                    (folder(project) / name).write_text(sql)
                if words:
                    (folder(project) / "allowed.toml").unlink(missing_ok=True)
                    (folder(project) / "released-deprecated.toml").unlink(missing_ok=True)
                    if (deprecated := folder(project) / "deprecated.toml").exists():
                        deprecated.rename(folder(project) / "released-deprecated.toml")
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
