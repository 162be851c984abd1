"""The embedded servers: started, stopped, killed, started again on the same port with their data."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import nats
import pytest

from makeready_local import children, config
from makeready_local.children import Child, LocalError, free_port, port_is_free, processes_bearing
from makeready_local.databases import close_own_databases, make_database
from makeready_local.nats import Nats
from makeready_local.postgres import Postgres, unprivileged_account
from makeready_local.runner import Runner
from testkit import containers
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer, Server, server_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    with server_folder() as path:
        inner = path / "a folder"
        inner.mkdir(mode=0o755)
        yield inner


@pytest.fixture
def postgres(folder: Path) -> Iterator[Postgres]:
    server = Postgres(folder / "postgres", "p w/@:%", log=folder / "postgres.log", settings={"fsync": "off"})
    server.start()
    yield server
    server.stop()


async def fetch(url: str, query: str) -> object:
    connection = await asyncpg.connect(url, timeout=PATIENCE_SECONDS)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url, timeout=PATIENCE_SECONDS)
    await connection.execute(statement)
    await connection.close()


async def test_postgres_logs_what_failed_without_the_values_of_the_row(postgres: Postgres) -> None:
    await execute(postgres.url, "CREATE TABLE party (phone text CONSTRAINT short CHECK (length(phone) < 5))")
    connection = await asyncpg.connect(postgres.url, timeout=PATIENCE_SECONDS)
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute("INSERT INTO party VALUES ($1)", "hunter2")
    await connection.close()
    log = postgres.log.read_text()
    assert "short" in log and "hunter2" not in log


async def test_postgres_keeps_port_and_rows_over_stop_and_kill(postgres: Postgres) -> None:
    url = make_database(postgres.url, "tickets", "pass/word")
    port = postgres.port
    await execute(url, "CREATE TABLE kept AS SELECT 7 AS number")
    for end in (postgres.stop, postgres.kill):
        end()
        with pytest.raises(OSError):
            await fetch(url, "SELECT 1")
        postgres.start()
        assert postgres.port == port
        assert await fetch(url, "SELECT number FROM kept") == 7


async def test_postgres_sorts_by_code_point_and_speaks_utf8_and_utc(postgres: Postgres) -> None:
    assert await fetch(postgres.url, "SHOW server_encoding") == "UTF8"
    assert await fetch(postgres.url, "SELECT 'Z' < 'a' AND upper('é') = 'É'") is True
    assert await fetch(postgres.url, "SHOW timezone") == "UTC"


async def test_a_role_enters_its_own_database_alone(postgres: Postgres) -> None:
    close_own_databases(postgres.url)
    tickets = make_database(postgres.url, "tickets", "one")
    catalog = make_database(postgres.url, "catalog", "two")
    assert await fetch(tickets, "SELECT current_user") == "tickets"
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await fetch(tickets.removesuffix("tickets") + "catalog", "SELECT 1")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await fetch(tickets.removesuffix("tickets") + "postgres", "SELECT 1")
    assert make_database(postgres.url, "catalog", "three") != catalog
    with pytest.raises(asyncpg.InvalidPasswordError):
        await fetch(catalog, "SELECT 1")


def test_a_port_taken_before_the_first_start_is_exchanged(folder: Path, postgres: Postgres) -> None:
    second = Postgres(folder / "second", "x", log=folder / "second.log")
    second.port = postgres.port
    second.start()
    try:
        assert second.port != postgres.port
    finally:
        second.stop()


def test_a_port_that_is_taken_for_a_moment_only_does_not_stop_the_start(folder: Path, postgres: Postgres) -> None:
    postgres.stop()
    taken = socket.create_server(("127.0.0.1", postgres.port))
    before = postgres.log.read_text()

    def let_go() -> None:
        while "Address already in use" not in postgres.log.read_text().removeprefix(before):
            time.sleep(0.001)
        taken.close()

    letting = threading.Thread(target=let_go)
    letting.start()
    postgres.start()
    letting.join()
    assert asyncio.run(fetch(postgres.url, "SELECT 1")) == 1


def test_a_server_that_can_not_start_says_what_was_fatal(folder: Path) -> None:
    broken = Postgres(folder / "broken", "x", log=folder / "broken.log", settings={"max_connections": "none"})
    with pytest.raises(LocalError, match=r"FATAL.*max_connections"):
        broken.start()


def test_a_port_is_kept_for_the_child_that_it_is_meant_for() -> None:
    port = free_port()
    assert port_is_free(port)
    with socket.socket() as stranger, pytest.raises(OSError):
        stranger.bind(("127.0.0.1", port))
    assert len({free_port() for _ in range(200)} | {port}) == 201


def test_a_note_of_a_dead_server_with_our_own_pid_does_not_stop_the_start(postgres: Postgres, folder: Path) -> None:
    postgres.kill()
    note = postgres.directory / "data" / "postmaster.pid"
    lines = note.read_text().split("\n")
    # The pid of another live process of the same user, as after a restart of the machine.
    other = Child("other", ["/bin/sleep", "60"], log=folder / "other.log", account=unprivileged_account())
    try:
        note.write_text("\n".join([str(other.pid), *lines[1:]]))
        postgres.start()
    finally:
        other.kill()


CHATTY = "import time\nfor number in range(5000):\n    print(f'{number:099}', flush=True)\n    time.sleep(0.0002)"


def test_the_log_of_a_child_that_writes_without_end_stays_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LOG_BYTES_MAX", 20_000)
    child = Child("chatty", [sys.executable, "-c", CHATTY], log=folder / "chatty.log")
    begun_anew, last = 0, 0
    while child.alive:
        child.bound_log()
        size = child.log.stat().st_size
        begun_anew, last = begun_anew + (size < last), size
    child.bound_log()
    assert child.exit_code == 0 and begun_anew > 0
    assert child.log.stat().st_size <= 20_000
    kept = child.log.read_text() + (folder / "chatty.log.1").read_text()
    assert f"{4999:099}" in kept and f"{0:099}" not in kept
    child.log.unlink()
    child.bound_log()


def test_the_runner_bounds_the_logs_of_its_children(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LOG_BYTES_MAX", 5)
    settings = config.read({"MAKEREADY_STATE_DIR": str(folder), "MAKEREADY_API_PORT": str(free_port())})
    runner = Runner(settings)
    child = Child("one", ["/bin/sh", "-c", "echo many words; exec sleep 60"], log=folder / "one.log")
    runner._children.append(child)
    try:
        while not (folder / "one.log.1").exists():
            runner._watch()
            time.sleep(0.02)
        assert child.log.read_bytes() == b"" and (folder / "one.log.1").read_text() == "many words\n"
    finally:
        child.kill()


def test_a_half_made_cluster_is_made_anew(folder: Path) -> None:
    (folder / "postgres" / "new-left").mkdir(parents=True)
    if account := unprivileged_account():
        os.chown(folder / "postgres", account.uid, account.gid)
    server = Postgres(folder / "postgres", "x", log=folder / "postgres.log")
    server.start()
    server.stop()


STARTER = """
import signal, sys
from pathlib import Path
from makeready_local.nats import Nats
from makeready_local.postgres import Postgres
folder = Path(sys.argv[1])
log = folder / "log"
servers = Postgres(folder / "postgres", "x", log=log), Nats(folder / "nats", "x", log=log)
for server in servers:
    server.start()
print(*(server.child.pid for server in servers), flush=True)
signal.pause()
"""


def test_servers_die_with_a_killed_parent_and_start_again_at_once(folder: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", STARTER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    postgres = Postgres(folder / "postgres", "x", log=folder / "p.log")
    nats_server = Nats(folder / "nats", "x", log=folder / "n.log")
    postgres.start()
    nats_server.start()
    try:
        assert all(str(folder) not in command_line(pid) for pid in pids)
    finally:
        nats_server.stop()
        postgres.stop()
    assert processes_bearing(str(folder)) == []


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


async def test_nats_keeps_port_and_messages_over_stop_and_kill(folder: Path) -> None:
    server = Nats(folder / "nats", "secret", log=folder / "nats.log")
    server.start()
    try:
        url = server.url
        client = await nats.connect(url)
        stream = client.jetstream()
        await stream.add_stream(name="kept", subjects=["kept.>"])
        await stream.publish("kept.one", b"1")
        await client.close()
        for end in (server.stop, server.kill):
            end()
            server.start()
            assert server.url == url
            client = await nats.connect(url)
            assert (await client.jetstream().stream_info("kept")).state.messages == 1
            await client.close()
    finally:
        server.stop()


async def test_nats_refuses_strangers(nats_server: Server) -> None:
    with pytest.raises(nats.errors.Error):
        await nats.connect(nats_server.url.replace("makeready:", "makeready:not-"), allow_reconnect=False)


def test_the_reason_why_a_server_stopped_is_reported_in_one_line(folder: Path) -> None:
    server = Postgres(folder / "postgres", "x", log=folder / "p.log", settings={"shared_buffers": "no"})
    with pytest.raises(LocalError, match=r"^PostgreSQL did not start: .*shared_buffers.*$"):
        server.start()


async def test_the_sessions_server_gives_empty_databases(postgres_server: PostgresServer) -> None:
    url = await asyncio.to_thread(postgres_server.create_database, "local_tests")
    assert await fetch(url, "SELECT current_database()") == "local_tests"
    await execute(url, "CREATE TABLE gone (n int)")
    url = postgres_server.create_database("local_tests")
    assert await fetch(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0


def test_the_same_servers_come_from_containers_where_an_engine_answers() -> None:
    with containers.postgres() as database, containers.nats() as streams:
        for server in (database, streams):
            server.stop()
            server.start()
            server.kill()
            started = time.monotonic()
            server.start()
            assert time.monotonic() - started < containers.START_SECONDS
