"""`python -m testkit.revise PACKAGE NAME` writes the migration that brings a database to the tables.

NAME is a few words with underscores: `vendors_have_phones` makes `00NN_vendors_have_phones.py` (NN: the next number),
whose id is the file's name. A developer must read and complete it: Alembic sees neither sequences nor partitions, and
writes no CHECK of a table that exists, also not that of a new column.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.resources
import subprocess
import sys
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData
from sqlalchemy.engine import Connection

from chassis.db import migrations
from makeready_local.databases import make_database
from makeready_local.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
ID_LENGTH_MAX = 32  # of Alembic's column


def main(package: str, name: str) -> None:
    """Migrates an empty database, compares it with the package's tables, and writes the difference."""
    from testkit.plugin import server_folder  # noqa: PLC0415 - of the tests' packages, not the product's

    metadata = importlib.import_module(f"{package}.tables").metadata
    versions = Path(str(importlib.resources.files(package))) / "migrations" / "versions"
    identity = f"{len(list(versions.glob('*.py'))) + 1:04}_{name}"
    if not name.isidentifier():
        raise SystemExit(f"{name}: a name has letters, digits and underscores only")
    if len(identity) > ID_LENGTH_MAX:
        most = ID_LENGTH_MAX - len("0000_")
        raise SystemExit(f"{name} has {len(name)} characters; a name has {most} at most, for Alembic's column")

    def revision(connection: Connection) -> None:
        config = migrations.alembic_config(package, connection, metadata)
        config.set_main_option("file_template", "%%(rev)s")
        command.revision(config, name.replace("_", " "), autogenerate=True, rev_id=identity)

    with server_folder() as folder:
        server = Postgres(folder / "postgres", "revise", log=folder / "postgres.log")
        server.start()
        try:
            url = make_database(server.url, "revised", "revised")
            migrations.migrate(url, package, metadata)
            asyncio.run(migrations.with_connection(url, revision))
        finally:
            server.stop()
    tidy(versions / f"{identity}.py")


def tidy(file: Path) -> None:
    """Gives a generated file the style that the lint demands."""
    for words in (("check", "--fix", "--quiet", "--exit-zero"), ("format", "--quiet")):
        command_line = [sys.executable, "-P", "-m", "ruff", *words, "--config", str(ROOT / "pyproject.toml"), str(file)]
        subprocess.run(command_line, check=True)


async def differences(url: str, metadata: MetaData) -> list[Any]:
    """The differences between a migrated database and `metadata`, for the drift test."""

    def compare(connection: Connection) -> list[Any]:
        options = {"compare_type": True, "compare_server_default": False, "include_name": migrations.is_a_contexts}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    return await migrations.with_connection(url, compare)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m testkit.revise PACKAGE NAME")
    main(*sys.argv[1:])
