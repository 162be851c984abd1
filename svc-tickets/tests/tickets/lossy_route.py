"""A proxy to PostgreSQL that loses a connection around a commit: before the server receives it, or before its response
arrives."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from testkit.patience import PATIENCE_SECONDS

BEGIN, COMMIT = b"BEGIN", b"COMMIT\0"


class LossyRoute:
    """Copies bytes between a client and PostgreSQL, in a thread of its own. lose: "before" or "after", for the next
    commit of a transaction that sends `of`; it becomes "" once that connection is lost."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None and parts.port is not None
        self._server = (parts.hostname, parts.port)
        self._parts = parts
        self._loop = asyncio.new_event_loop()
        self._port = 0
        self.lose = ""
        self.of = b""

    @property
    def url(self) -> str:
        user = self._parts.netloc.rpartition("@")[0]
        return urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    @contextlib.contextmanager
    def open(self) -> Iterator[LossyRoute]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        listening = asyncio.start_server(self._pass, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(PATIENCE_SECONDS)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._close(server), self._loop).result(PATIENCE_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(PATIENCE_SECONDS)
            self._loop.close()

    async def _close(self, server: asyncio.Server) -> None:
        """Ends the connections that are open, so that no socket is left."""
        server.close()
        passing = asyncio.all_tasks() - {asyncio.current_task()}
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        lost = asyncio.Event()

        async def ask() -> None:
            is_meant = False  # others commit, too: what the service does beside its RPCs
            while sent := await reader.read(65536):
                is_meant = self.of in sent or (is_meant and BEGIN not in sent)
                if self.lose and is_meant and COMMIT in sent:
                    how, self.lose = self.lose, ""
                    if how == "before":
                        break
                    lost.set()
                server_writer.write(sent)
            server_writer.close()
            writer.close()

        async def answer() -> None:
            while got := await server_reader.read(65536):
                if lost.is_set():
                    break
                writer.write(got)
            writer.close()

        try:
            with contextlib.suppress(OSError):
                await asyncio.gather(ask(), answer())
        finally:
            server_writer.close()
            writer.close()
