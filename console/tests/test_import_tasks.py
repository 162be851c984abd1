"""Tasks of imports in real processes: none outlives its console, its claim or a cancellation, and no company has all
the places while another waits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from chassis.db import migrations
from chassis.db.database import Database
from console import files, tables
from console.imports import jobs as states
from console.imports.jobs import Job, Jobs
from console.imports.keeper import TOO_COSTLY
from console.imports.worker import TOO_LARGE, TOO_MANY_REJECTS, Rejects
from importing.opening import opened
from testkit.patience import comes_true, eventually
from testkit.plugin import PostgresServer

CONSOLE = """
import asyncio, os, sys
from chassis.db.database import Database
from chassis.db.revisions import head_of
from console import files
from console.imports import keeper
from console.imports.jobs import Jobs
keeper.RENEW_SECONDS, keeper.PATIENCE_SECONDS, keeper.LOOK_SECONDS = 0.2, 1.0, 0.2
async def main():
    jobs = Jobs(Database(os.environ["MAKEREADY_DATABASE_URL"], application="console", connections=4))
    one = keeper.Keeper(jobs, files.at(os.environ["MAKEREADY_FILES_URL"]), int(sys.argv[1]), sys.argv[2:])
    await one.open(head_of("console"))
    await one.run()
asyncio.run(main())
"""
"""The part of a console that starts the processes: `at_once`, and the words of the process."""
SERVICES = ("GATEWAY", "CATALOG", "TICKETS", "OCCUPANCY", "WEBHOOKS")
WORKER = """
import re, time
from console.imports import worker
look = worker.look
def slow(path, reading):
    if path.name.startswith("stuck"):  # in C, with the interpreter's lock held: no signal handler and no thread runs
        re.match("((?:a|a)+)+b", "a" * 60)
    if path.name.startswith("long"):
        time.sleep(3600)
    if path.name.startswith("large"):
        bytes(2**30)
    return look(path, reading)
worker.look = slow
worker.CPU_SECONDS, worker.REJECTS_CHARACTERS_MAX = {cpu}, 2**20
worker.main()
"""


@pytest.fixture
async def jobs(postgres_server: PostgresServer) -> AsyncIterator[Jobs]:
    """Those of a database of its own."""
    url = postgres_server.create_database("imports")
    thread = threading.Thread(target=migrations.migrate, args=(url, "console", tables.metadata))
    thread.start()  # its loop is not the tests'
    await asyncio.to_thread(thread.join)
    database = Database(url, application="test", connections=4)
    await database.open()
    yield Jobs(database)
    await database.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the copies of files lie."""
    path = tmp_path / "copies"
    path.mkdir()
    return path


Start = Callable[..., psutil.Process]


@pytest.fixture
def start(jobs: Jobs, folder: Path, tmp_path: Path, identity_keys: Path) -> Iterator[Start]:
    """Starts a console's keeper. cpu: the seconds of computing that its processes may take without a pause."""
    environment = {
        **os.environ,
        "MAKEREADY_CONSOLE_URL": "http://localhost:1",
        "MAKEREADY_API_URL": "https://api.makeready.example/api/v1",
        "MAKEREADY_DATABASE_URL": jobs.database.url,
        "MAKEREADY_IDENTITY_KEY_FILE": str(identity_keys / "console.jwk"),
        "MAKEREADY_FILES_URL": (tmp_path / "store").as_uri(),
        "TMPDIR": str(folder),
        **{f"MAKEREADY_{name}_ADDRESS": "localhost:1" for name in SERVICES},
    }
    started: list[subprocess.Popen[bytes]] = []

    def starting(at_once: int, cpu: int = 300) -> psutil.Process:
        worker = (sys.executable, "-P", "-c", WORKER.format(cpu=cpu))
        words = (sys.executable, "-P", "-c", CONSOLE, str(at_once), *worker)
        started.append(subprocess.Popen(words, env=environment))
        return psutil.Process(started[-1].pid)

    yield starting
    for process in started:
        process.kill()
        process.wait()


PROPERTY = b"P1,Elm House,1 Elm St\n"


async def add(jobs: Jobs, tmp_path: Path, company_id: int, name: str, rows: bytes = PROPERTY) -> int:
    """A job of a file that lies in the store."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"external_id,name,address\n" + rows

    stored_as = f"imports/{company_id}/{name}"
    await files.at((tmp_path / "store").as_uri()).save(stored_as, parts())
    return await jobs.add(
        company_id=company_id, act=name, person="Dana", file_name=name, file_bytes=48, stored_as=stored_as, reading="{}"
    )


async def job(jobs: Jobs, company_id: int, job_id: int) -> Job:
    row = await jobs.find(company_id, job_id)
    assert row is not None
    return row


async def comes_to(jobs: Jobs, company_id: int, job_id: int, state: str) -> Job:
    async def is_there() -> bool:
        return (await job(jobs, company_id, job_id)).state == state

    await eventually(is_there, f"job {job_id} did not come to {state}")
    return await job(jobs, company_id, job_id)


def held(folder: Path) -> list[Path]:
    """The folders with copies."""
    return list(folder.iterdir())


def alive(process: psutil.Process) -> bool:
    """Whether it still runs; one that nobody has waited for has ended too."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def workers(console: psutil.Process, count: int) -> list[psutil.Process]:
    """The processes of a console once they are so many and have copied their files."""
    processes: list[psutil.Process] = []

    def are_there() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, IndexError):  # it has just begun, or ended
            processes[:] = [process for process in console.children() if alive(process)]
            return len(processes) == count and all(any(Path(process.cmdline()[-1]).iterdir()) for process in processes)
        return False

    await comes_true(are_there)
    return processes


async def test_no_process_outlives_a_console_that_was_killed(
    jobs: Jobs, start: Start, tmp_path: Path, folder: Path
) -> None:
    stuck = [await add(jobs, tmp_path, company, f"stuck-{company}.csv") for company in (1, 2)]
    console = start(2)
    running = await workers(console, 2)
    console.kill()
    await comes_true(lambda: not any(map(alive, running)), "a process went on without its console")
    assert len(held(folder)) == 2

    # The next console deletes the copies, and the jobs go on, here until somebody cancels them.
    start(2)
    for company, job_id in zip((1, 2), stuck, strict=True):
        assert await jobs.cancel(company, job_id)
        await comes_to(jobs, company, job_id, states.CANCELLED)
    await comes_true(lambda: not held(folder), "a copy is left")


async def test_a_process_that_is_stuck_ends_when_its_task_is_cancelled(
    jobs: Jobs, start: Start, tmp_path: Path
) -> None:
    stuck = await add(jobs, tmp_path, 1, "stuck.csv")
    console = start(1)
    (process,) = await workers(console, 1)
    after = await add(jobs, tmp_path, 2, "plain.csv")
    assert await jobs.cancel(1, stuck)
    cancelled = await comes_to(jobs, 1, stuck, states.CANCELLED)
    assert (cancelled.stopped_in, cancelled.permit, cancelled.cancels) == (states.READING, "", False)
    await comes_true(lambda: not alive(process))
    assert (await comes_to(jobs, 2, after, states.MAPPING)).facts != "{}"


async def test_a_task_that_waits_is_cancelled_without_a_process(jobs: Jobs, start: Start, tmp_path: Path) -> None:
    running = await add(jobs, tmp_path, 1, "long.csv")
    console = start(1)
    await workers(console, 1)
    waiting = await add(jobs, tmp_path, 1, "plain.csv")
    assert await jobs.cancel(1, waiting)
    assert (await comes_to(jobs, 1, waiting, states.CANCELLED)).attempts == 0
    assert (await job(jobs, 1, running)).state == states.READING


async def test_a_process_without_a_lease_ends_and_leaves_its_place(jobs: Jobs, start: Start, tmp_path: Path) -> None:
    stuck = await add(jobs, tmp_path, 1, "stuck.csv")
    console = start(1)
    (process,) = await workers(console, 1)
    async with jobs.database.transaction() as connection:
        taken = "UPDATE job SET runner = 'elsewhere', lease_until = clock_timestamp() + interval '1 hour' WHERE id = $1"
        await connection.raw.execute(taken, stuck)
    after = await add(jobs, tmp_path, 1, "plain.csv")
    await comes_true(lambda: not alive(process))
    await comes_to(jobs, 1, after, states.MAPPING)
    assert (await job(jobs, 1, stuck)).runner == "elsewhere"


async def test_a_task_that_computes_without_end_stops_and_says_so(jobs: Jobs, start: Start, tmp_path: Path) -> None:
    stuck = await add(jobs, tmp_path, 1, "stuck.csv")
    start(1, cpu=1)
    stopped = await comes_to(jobs, 1, stuck, states.STOPPED)
    assert (stopped.fault, stopped.stopped_in, stopped.runner) == (TOO_COSTLY, states.READING, "")


async def test_a_file_that_takes_too_much_memory_stops_and_says_so(jobs: Jobs, start: Start, tmp_path: Path) -> None:
    large = await add(jobs, tmp_path, 1, "large.csv")
    start(1)
    stopped = await comes_to(jobs, 1, large, states.STOPPED)
    assert (stopped.fault, stopped.stopped_in, stopped.runner) == (TOO_LARGE, states.READING, "")


async def test_rejected_rows_do_not_fill_the_database(jobs: Jobs, start: Start, tmp_path: Path) -> None:
    rows = 8000
    bad = await add(jobs, tmp_path, 1, "bad.csv", (b"x" * 1000 + b"\n") * rows)
    start(1)
    await comes_to(jobs, 1, bad, states.MAPPING)
    assert await jobs.check(1, bad, kind="properties", mapping="", permit="")
    checked = await comes_to(jobs, 1, bad, states.CHECKED)
    assert (checked.fault, checked.result.counts.rejected) == ("", rows)
    assert await jobs.run(1, bad, events=False, permit="")
    stopped = await comes_to(jobs, 1, bad, states.STOPPED)
    assert (stopped.fault, stopped.stopped_in) == (TOO_MANY_REJECTS, states.RUNNING)
    assert 1000 <= stopped.result.counts.rejected < rows


def test_a_dry_run_holds_no_rejected_rows(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(b"external_id,name,address\n" + (b"x" * 1000 + b"\n") * 2000)
    with opened(file) as opened_file:
        sink = Rejects(opened_file.source, "", None, set())
        tracemalloc.start()
        for row in opened_file.source.rows():
            assert row.fault is not None
            sink.add(row, row.fault)
            sink.flush()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert held < 200_000


async def test_imports_go_on_after_whatever_befell_the_database(jobs: Jobs, start: Start, tmp_path: Path) -> None:
    first = await add(jobs, tmp_path, 1, "first.csv")
    start(1)
    await comes_to(jobs, 1, first, states.MAPPING)
    async with jobs.database.connection() as connection:
        await connection.raw.execute("ALTER TABLE job RENAME TO job_away")
        await asyncio.sleep(1.0)  # the keeper looks five times
        await connection.raw.execute("ALTER TABLE job_away RENAME TO job")
    second = await add(jobs, tmp_path, 1, "second.csv")
    await comes_to(jobs, 1, second, states.MAPPING)


async def test_imports_are_kept_for_thirty_days_of_the_databases_clock(jobs: Jobs, tmp_path: Path) -> None:
    """A console whose clock is ahead deletes no file before: it cannot be had again."""
    first, second = [await add(jobs, tmp_path, 1, f"{days}.csv") for days in (29, 31)]
    async with jobs.database.connection() as connection:
        for job_id, days in ((first, 29), (second, 31)):
            changes = "state = 'mapping', uploaded_at = clock_timestamp() - make_interval(days => $2)"
            await connection.raw.execute(f"UPDATE job SET {changes} WHERE id = $1", job_id, days)
    assert [old.id for old in await jobs.old()] == [second]


async def test_a_company_has_one_place_while_another_waits(jobs: Jobs, start: Start, tmp_path: Path) -> None:
    first, second, third = [await add(jobs, tmp_path, 1, f"long-{number}.csv") for number in range(3)]
    console = start(2)
    await workers(console, 2)

    async def under_way() -> set[int]:
        rows = await jobs.page(1, before=2**63 - 1, state="") + await jobs.page(2, before=2**63 - 1, state="")
        return {row.id for row in rows if row.lease_until is not None}

    assert await under_way() == {first, second}
    other = await add(jobs, tmp_path, 2, "long-other.csv")

    async def both_have_one() -> bool:
        return await under_way() == {first, other}

    await eventually(both_have_one, "company 2 waits for both tasks of company 1")
    made_room = await job(jobs, 1, second)
    assert (made_room.state, made_room.attempts) == (states.READING, 0)
    more = await add(jobs, tmp_path, 2, "long-more.csv")
    await workers(console, 2)
    assert await under_way() == {first, other} and third and more
