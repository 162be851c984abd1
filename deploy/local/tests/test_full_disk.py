"""A full disk is reported as one: by `makeready status`, the gateway's log, an import, and the runner.

The disk is real: a small tmpfs, which only root may mount. The tests of the chassis raise the same error without one.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from makeready_local.postgres import unprivileged_account
from testkit.folders import server_folder
from testkit.requirements import lacks

from .installation import System, wait_for

MEGABYTES = 48  # two databases of 8 MB, and what the services add
Mount = Callable[[str, int], Path]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mounts a tmpfs of some megabytes at a name below a folder of the test's own, and unmounts it at the end."""
    mounted: list[Path] = []
    with server_folder() as folder:

        def one(name: str, megabytes: int) -> Path:
            path = folder / name
            path.mkdir()
            program = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", str(path)]
            try:
                done = subprocess.run(program, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                lacks("mount", "there is no mount command")
            if done.returncode != 0:
                lacks("mount", done.stderr.strip())
            mounted.append(path)
            return path

        try:
            yield one
        finally:
            for path in mounted:
                subprocess.run(["umount", "-l", str(path)], check=True)


async def run_sql(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def fill(url: str) -> None:
    """Fills the disk of the database with a table `filler`."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE filler (line text STORAGE PLAIN)")
        for rows in (100, 1):  # 8 kB a row: to the last page
            with pytest.raises(asyncpg.DiskFullError):
                while True:
                    await connection.execute(
                        "INSERT INTO filler SELECT repeat('x', 7000) FROM generate_series(1, $1)", rows
                    )
    finally:
        await connection.close()


def run(system: System, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "makeready_cli", *words]
    return subprocess.run(
        command, env=system.environment, input=stdin, capture_output=True, text=True, check=False, timeout=60
    )


def post_ticket(system: System, key: str, unit_id: int, number: int) -> int:
    body = json.dumps({"unit_id": unit_id, "title": "x" * 100, "category": "Plumbing", "description": "y" * 4000})
    request = urllib.request.Request(
        f"http://127.0.0.1:{system.ports[0]}/api/v1/tickets",
        data=body.encode(),
        headers={
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"full-{number}",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_full_disk_of_the_databases_is_named_and_goes_away_with_room(prepared: System, mount: Mount) -> None:
    system = prepared
    disk = mount("disk", MEGABYTES)
    space = disk / "space"
    space.mkdir()
    if account := unprivileged_account():
        os.chown(space, account.uid, account.gid)
    system.started(MAKEREADY_DEMO="0")
    # PostgreSQL's log of changes stays on the large disk: this one has tables alone.
    url = system.read("runtime.json")["database_url"]
    company = str(system.makeready("company", "create", "Maple Homes")["company_id"])
    company_row = run(
        system, "administrator", "create", company, "ada@elm.test", "--password-stdin", stdin="correct horse battery\n"
    )
    assert company_row.returncode == 0, company_row.stderr
    key = system.makeready("key", "mint", company, "--scope", "write", "--administrator", "ada@elm.test")["key"]
    house = system.makeready("property", "add", company, "--name", "Elm Court", "--address", "1 Elm St")["entity_id"]
    unit_id = system.makeready("unit", "add", company, "--property-id", str(house), "--name", "1A")["entity_id"]
    system.makeready("wait")
    asyncio.run(
        run_sql(
            url,
            "ALTER DATABASE catalog WITH ALLOW_CONNECTIONS false",
            "ALTER DATABASE tickets WITH ALLOW_CONNECTIONS false",
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname IN ('catalog', 'tickets')",
            f"CREATE TABLESPACE small LOCATION '{space}'",
            "ALTER DATABASE catalog SET TABLESPACE small",
            "ALTER DATABASE tickets SET TABLESPACE small",
            "ALTER DATABASE catalog WITH ALLOW_CONNECTIONS true",
            "ALTER DATABASE tickets WITH ALLOW_CONNECTIONS true",
        )
    )
    wait_for(lambda: system.run("status")[0] == 0)
    healthy = json.loads(system.run("--json", "status")[1])
    assert healthy["serving"] and healthy["faults"] == []
    assert healthy["processes"]["svc-catalog"]["version"] and healthy["disk"]["free_bytes"] > 0
    assert healthy["processes"]["svc-catalog"]["database_bytes"] > 5_000_000
    assert healthy["deliveries"] == {"due": 0, "waiting": 0, "parked": 0}

    catalog_url = urlsplit(url)._replace(path="/catalog").geturl()
    asyncio.run(fill(catalog_url))
    # status looks for itself: no write has failed yet.
    status, report = system.run("--json", "status")
    faults = json.loads(report)["faults"]
    assert status == 1
    assert faults == ["the disk of svc-catalog's database is full", "the disk of svc-tickets's database is full"]
    assert "FAULT: the disk of svc-catalog's database is full" in system.run("status")[1]

    rows = [{"external_id": f"P{n}", "name": "n" * 200, "address": "a" * 200} for n in range(1000)]
    file = disk.parent / "properties.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, ended = system.run("import", company, "properties", str(file))
    assert status == 1
    assert "The disk of svc-catalog's database is full: make room on it" in ended
    assert "does not answer" not in ended and "The import of properties ended at line" in ended

    numbers = iter(range(100))
    while (status := post_ticket(system, key, unit_id, number := next(numbers))) == 201:
        continue
    assert status == 500
    log = (system.folder / "logs" / "gateway.log").read_text()
    lines = [json.loads(line) for line in log.splitlines() if '"disk_full"' in line]
    assert {(line["event"], line["database"]) for line in lines} == {("disk_full", "svc-tickets")}

    subprocess.run(["mount", "-o", f"remount,size={2 * MEGABYTES}m", str(disk)], check=True)
    assert system.run("status")[0] == 0
    assert system.run("import", company, "properties", str(file))[0] == 0
    assert post_ticket(system, key, unit_id, number) == 201, "the same key again"
    assert system.stop() == 0


def test_a_postgres_that_ends_for_want_of_disk_space_is_named(system: System, mount: Mount) -> None:
    """Without room for its log of changes PostgreSQL stops; the runner's one line says why."""
    data = mount("data", 180)
    system.folder.mkdir()
    (system.folder / "postgres").symlink_to(data)
    (system.folder / "secrets.json").write_text('{"postgres": "word"}')
    if account := unprivileged_account():
        os.chown(data, account.uid, account.gid)
    data.chmod(0o700)
    system.started(MAKEREADY_DEMO="0")
    with (data / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(b"x" * 4096)
    url = system.read("runtime.json")["database_url"]

    async def write() -> None:
        connection = await asyncpg.connect(url)
        try:
            while True:
                await connection.execute("SELECT pg_logical_emit_message(true, 'fill', repeat('x', 1000000))")
        finally:
            connection.terminate()

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        asyncio.run(write())
    assert system.runner is not None
    assert system.runner.wait(60) == 1
    assert "no space is left on the disk of" in system.one_line()
