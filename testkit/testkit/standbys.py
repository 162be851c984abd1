"""A PostgreSQL server with a synchronous standby, for tests of a failover."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from makeready_local.children import LOOPBACK
from makeready_local.postgres import Postgres, give, unprivileged_account
from testkit.plugin import PostgresServer
from testkit.prepared import PASSWORD, UNSAFE, copy, prepare_cluster

ATTACHED_SECONDS = 60.0
SYNCHRONOUS = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')"
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'"
REPLAYED = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn"


class Pair:
    """Two servers: `first` is the primary until `fail_over`."""

    def __init__(self, first: Postgres, second: Postgres) -> None:
        self.first, self.second = first, second
        self._commits = 0

    def both(self, url: str, target: str = "read-write") -> str:
        """The URL of a database of the first, with both servers as its hosts."""
        parts = urlsplit(url)
        user = parts.netloc.partition("@")[0]
        hosts = ",".join(f"{LOOPBACK}:{server.port}" for server in (self.first, self.second))
        return parts._replace(netloc=f"{user}@{hosts}", query=f"target_session_attrs={target}").geturl()

    def create_database(self, name: str) -> str:
        """As `PostgresServer.create_database`, before `attach`: without its standby no commit would end."""
        return PostgresServer(self.first).create_database(name)

    async def attach(self) -> None:
        """From now on a commit is answered when the standby has it. What was committed before can be read there."""
        administrator = await asyncpg.connect(self.first.url)
        # The checkpointer, when it comes to it, tells all processes that commits have to wait; no view shows whether it
        # has. So none of the standbys counts until a commit waits.
        await administrator.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        await administrator.execute("SELECT pg_reload_conf()")
        committing = asyncio.create_task(self._commit_for_ever())
        await self.waiting_commit()
        await administrator.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        await administrator.execute("SELECT pg_reload_conf()")
        async with asyncio.timeout(ATTACHED_SECONDS):
            while not await administrator.fetchval(SYNCHRONOUS):  # noqa: ASYNC110 - the server sends no notice
                await asyncio.sleep(0.02)
            before = self._commits
            while self._commits == before:  # noqa: ASYNC110 - the one that waited has ended, too
                await asyncio.sleep(0.02)
            committing.cancel()
            await asyncio.wait({committing})
            # The standby has it all, but it may not have replayed it: a new database is unknown to it until then.
            written = await administrator.fetchval("SELECT pg_current_wal_lsn()::text")
            standby = await asyncpg.connect(self.second.url)
            while not await standby.fetchval(REPLAYED, written):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        await standby.close()
        await administrator.close()

    async def _commit_for_ever(self) -> None:
        """Until it is cancelled."""
        connection = await asyncpg.connect(self.first.url)
        try:
            while True:
                await connection.execute("SELECT pg_logical_emit_message(true, '', '')")
                self._commits += 1
        finally:
            connection.terminate()

    async def waiting_commit(self) -> int:
        """The process of a commit that waits for the standby, as soon as there is one."""
        administrator = await asyncpg.connect(self.first.url)
        async with asyncio.timeout(ATTACHED_SECONDS):
            while (process := await administrator.fetchval(WAITING)) is None:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        await administrator.close()
        return int(process)

    async def interrupt(self, process: int) -> None:
        """Ends the connection of such a commit. Everyone sees on the first server what it wrote, and the standby does
        not have it."""
        administrator = await asyncpg.connect(self.first.url)
        assert await administrator.fetchval("SELECT pg_terminate_backend($1, 10000)", process)
        await administrator.close()

    async def promote(self) -> None:
        """The standby takes writes from now on, whatever the first server does."""
        administrator = await asyncpg.connect(self.second.url)
        await administrator.execute("ALTER SYSTEM RESET synchronous_standby_names")
        assert await administrator.fetchval("SELECT pg_promote(wait => true)")
        await administrator.close()


@contextmanager
def primary_and_standby(folder: Path) -> Iterator[Pair]:
    """Both run; folder: one that PostgreSQL's account may enter."""
    first = prepare_cluster(folder)
    copy(folder / "postgres", folder / "standby")
    mark = folder / "standby" / "data" / "standby.signal"
    mark.touch()
    give(mark, unprivileged_account())
    first.start()
    source = f"host={LOOPBACK} port={first.port} user=postgres password={PASSWORD}"
    second = Postgres(
        folder / "standby", PASSWORD, log=folder / "standby.log", settings=UNSAFE | {"primary_conninfo": source}
    )
    try:
        second.start()
        yield Pair(first, second)
    finally:
        second.stop()
        first.stop()
