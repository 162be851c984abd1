"""Several servers in one URL: connections go to the one that can write, before, during and after a failover."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
import sqlalchemy as sa

from chassis.db.database import Database, DatabaseUnavailable
from chassis.db.servers import UNACKNOWLEDGED_SECONDS, Servers
from chassis.db.statements import Statement, param
from chassis.writes.idempotency import Claim, IdempotentInsert, ledger
from makeready_local.postgres import Postgres
from testkit.folders import server_folder
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer
from testkit.processes import free_port
from testkit.standbys import Pair, primary_and_standby

from ..databases import make_tables

metadata = sa.MetaData()
claims = ledger(metadata)
crate = sa.Table("thing", metadata, sa.Column("id", sa.BigInteger, primary_key=True))
ADD_ONCE = IdempotentInsert(claims, crate)
ADD = Statement(sa.insert(crate).values(id=param("id", sa.BigInteger)))
IDS = Statement(sa.select(crate.c.id))


@pytest.fixture
def pair() -> Iterator[Pair]:
    with server_folder() as folder, primary_and_standby(folder) as running:
        yield running


@pytest.fixture
async def database(pair: Pair) -> AsyncIterator[Database]:
    """Through a URL of both servers."""
    url = pair.create_database("failing_over")
    database = Database(pair.both(url), application="tests", connections=4)
    await database.open()
    await make_tables(database, metadata)
    await pair.attach()
    yield database
    await database.close()


async def make_read_only(server: Postgres) -> None:
    """As a pod that lost its leadership, or a managed server without disk space."""
    administrator = await asyncpg.connect(server.url)
    await administrator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    await administrator.execute("SELECT pg_reload_conf()")
    await administrator.close()


class Writer:
    """Writes rows one after the other. A write whose outcome is unknown is sent again, with its key."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.acknowledged: set[int] = set()

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            await self.write(number)
            self.acknowledged.add(number)
            await asyncio.sleep(0)

    async def write(self, number: int) -> None:
        while True:
            try:
                await ADD_ONCE.write(self.database, Claim(1, 1, f"{number}", b""), 201, b"", {crate: {"id": number}})
                return
            except DatabaseUnavailable:
                await asyncio.sleep(0.02)

    async def wait_for(self, more: int) -> None:
        """Until this many more writes are acknowledged."""
        enough = len(self.acknowledged) + more
        async with asyncio.timeout(60):
            while len(self.acknowledged) < enough:  # noqa: ASYNC110 - an event would be set by each write
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("way", ["the first is killed", "the first becomes read-only"])
async def test_writes_go_on_at_the_other_server_and_every_acknowledged_one_is_there(
    way: str, pair: Pair, database: Database
) -> None:
    writer = Writer(database)
    writing = asyncio.create_task(writer.run())
    await writer.wait_for(50)
    if way == "the first is killed":
        pair.first.kill()
    else:
        await make_read_only(pair.first)
    await pair.promote()
    await writer.wait_for(100)
    writing.cancel()
    await asyncio.wait({writing})
    stored = {row["id"] for row in await database.rows(IDS)}
    last = max(writer.acknowledged)
    assert stored - {last + 1} == writer.acknowledged == set(range(1, last + 1))
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT inet_server_port()") == pair.second.port


async def test_a_write_that_only_the_first_server_has_is_made_at_the_second(pair: Pair, database: Database) -> None:
    """As when a primary is cut off from its standby, and does not know yet that another one has been promoted."""
    await pair.promote()
    writer = Writer(database)
    writing = asyncio.create_task(writer.write(1))
    await pair.interrupt(await pair.waiting_commit())
    replay = asyncio.create_task(pair.waiting_commit())
    await asyncio.wait({writing, replay}, return_when=asyncio.FIRST_COMPLETED)
    assert not writing.done(), "it was acknowledged, and the second server does not have it"
    await make_read_only(pair.first)
    await pair.interrupt(await replay)
    await writing
    second = await asyncpg.connect(pair.second.url, database="failing_over")
    assert [row["id"] for row in await second.fetch("SELECT id FROM thing")] == [1]
    await second.close()


async def test_without_a_server_that_can_write_reads_and_writes_are_unavailable(pair: Pair, database: Database) -> None:
    pair.first.kill()
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            await database.execute(ADD, id=1)
    with pytest.raises(ConnectionError, match=f":{pair.first.port}: .*; .*:{pair.second.port}: .*read-write"):
        await Servers(database.url).connect()


@pytest.fixture
async def url(postgres_server: PostgresServer) -> str:
    return postgres_server.create_database("chassis_servers")


def after(host: str, url: str) -> str:
    """The URL with another host before its own."""
    return url.replace("@", f"@{host},", 1) + "?target_session_attrs=read-write"


async def test_a_first_server_that_says_nothing_leaves_time_for_the_others(url: str) -> None:
    """As one whose machine is gone; asyncpg alone would spend the whole timeout on it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        both = after(f"127.0.0.1:{silent.getsockname()[1]}", url)
        with pytest.raises(TimeoutError):
            await asyncpg.connect(both, timeout=1)  # short: nothing answers
        servers = Servers(both)
        await (await servers.connect(timeout=8)).close()  # short: the silent server costs half of it
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(20):  # the one that answered is asked first
                await (await servers.connect(timeout=PATIENCE_SECONDS)).close()


async def test_a_wrong_password_is_not_tried_elsewhere(url: str) -> None:
    wrong = after(f"127.0.0.1:{free_port()}", url).replace("@", "x@", 1)
    with pytest.raises(asyncpg.InvalidPasswordError):
        await Servers(wrong).connect()


def options_of_sockets_to(port: int) -> list[tuple[int, ...]]:
    """Keep-alive, its seconds of rest, and milliseconds without acknowledgement, of each connection of this process."""
    options = []
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_socket()]
    for link in links:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(link.name))) as plug:
            if plug.family == socket.AF_INET and plug.getpeername()[1] == port:
                alive = plug.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                tcp = [plug.getsockopt(socket.IPPROTO_TCP, o) for o in (socket.TCP_KEEPIDLE, socket.TCP_USER_TIMEOUT)]
                options.append((alive, *tcp))
    return options


@pytest.mark.parametrize("several", [False, True])
async def test_a_connection_notices_that_its_peer_is_gone(url: str, several: bool) -> None:
    """Nothing is lost on loopback, so this looks at what both kernels were told."""
    port = urlsplit(url).port
    assert port is not None
    others = options_of_sockets_to(port)  # of tests before this one
    database = Database(after(f"127.0.0.1:{free_port()}", url) if several else url, application="tests")
    await database.open()
    async with database.connection() as connection, database.session("own") as session:
        opened = [(1, 10, UNACKNOWLEDGED_SECONDS * 1000)] * 3
        assert sorted(options_of_sockets_to(port)) == sorted([*others, *opened])
        for raw in (connection.raw, session):
            names = "tcp_keepalives_idle", "client_connection_check_interval"
            assert [await raw.fetchval(f"SHOW {name}") for name in names] == ["30", "10s"]
    await database.close()


async def test_a_server_that_does_not_answer_is_named() -> None:
    seconds = 0.1
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(TimeoutError, match=f"^127.0.0.1:{port} did not answer within 0.1 s$"):
            await Servers(f"postgresql://nobody:p@127.0.0.1:{port}/none").connect(timeout=seconds)
