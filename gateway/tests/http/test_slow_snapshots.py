"""Snapshots whose clients are slow, over real sockets: no company keeps others out."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chassis.http import replies
from chassis.http.connection_limits import ConnectionLimits, Sizes
from chassis.http.port import Listening, Port
from chassis.http.replies import ErrorReplies, Reply
from chassis.http.requests import Request
from gateway.http import snapshots
from gateway.http.replies import ApiError, of_refusal
from gateway.http.shared_limits import SharedLimits
from gateway.http.snapshots import Snapshots, lines
from gateway.http.store import Store
from makeready.common.v1.documents_pb2 import Page
from testkit.patience import PATIENCE_SECONDS, comes_true
from testkit.processes import free_port
from testkit.raw_http import Api, RawConnection

# A page is more than the kernel holds for a client that reads nothing.
PAGES, RECORD = 2, {"entity_id": 1, "text": "x" * 5_000_000}
ERRORS = ErrorReplies(lambda reason: replies.json(reason.encode(), 400), replies.json(b"{}", 500))


class Answer:
    def __init__(self, number: int) -> None:
        self.number = number
        self.page = Page(data=json.dumps([RECORD]).encode())


async def following(answer: Any) -> Any:
    return Answer(answer.number + 1) if answer.number + 1 < PAGES else None


class Served:
    """Snapshots at a port: of company 7 and kind `a` at `/7/a`."""

    def __init__(self) -> None:
        self.snapshots = Snapshots(SharedLimits(Store("memory://")))
        self.ends: dict[str, str] = {}
        limits = ConnectionLimits(sizes=Sizes(unread=100_000_000))  # no budget of bytes decides here
        port = free_port()
        self.port = Port(Listening("TEST_PORT", "127.0.0.1", port), self._answer, limits, ERRORS)
        self.api = Api(port)

    async def _answer(self, request: Request) -> Reply:
        path, _ = request.target()
        company = int(path.split("/")[1])
        try:
            async with self.snapshots.begin(company, path) as snapshot:
                await snapshot.stream(request, Reply(200, b""), lines(Answer(0), following, is_compressed=False))
        except ApiError as error:
            return of_refusal(error)
        except ConnectionError as error:
            self.ends[path] = str(error)
        else:
            self.ends[path] = "whole"
        return Reply(200, b"")

    async def ask(self, path: str) -> RawConnection:
        """A client that reads nothing yet; returns once its snapshot is under way."""
        client = await self.api.connect()
        client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        assert isinstance(client.writer.transport, asyncio.ReadTransport)
        client.writer.transport.pause_reading()
        await client.send(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        await comes_true(lambda: any(snapshot.unread_since < float("inf") for snapshot in self._of(path)))
        return client

    def _of(self, path: str) -> list[snapshots.Snapshot]:
        return [snapshot for (_, its_path), snapshot in self.snapshots._under_way.items() if its_path == path]

    def holders(self) -> list[str]:
        return [path for _, path in self.snapshots._under_way]


async def whole(client: RawConnection) -> int:
    """Reads a snapshot to its end; returns how many records it has."""
    assert isinstance(client.writer.transport, asyncio.ReadTransport)
    client.writer.transport.resume_reading()
    async with asyncio.timeout(PATIENCE_SECONDS):
        response = await client.receive()
    assert response.status == 200
    return len(response.body.splitlines())


async def is_broken_off(client: RawConnection) -> bool:
    try:
        await whole(client)
    except (asyncio.IncompleteReadError, ConnectionError):
        return True
    return False


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(snapshots, "SNAPSHOTS_MAX", 4)
    monkeypatch.setattr(snapshots, "STALLED_SECONDS", 2 * PATIENCE_SECONDS)  # nobody stalls, unless a test says so
    serving = Served()
    await serving.port.open()
    yield serving
    await serving.port.close()
    assert serving.holders() == []


async def test_a_company_with_many_slow_snapshots_loses_one_to_a_company_with_fewer(served: Served) -> None:
    clients = {path: await served.ask(path) for path in ("/1/a", "/1/b", "/1/c", "/2/a")}
    clients["/3/a"] = await served.ask("/3/a")
    assert served.holders() == ["/1/b", "/1/c", "/2/a", "/3/a"]
    await comes_true(lambda: served.ends == {"/1/a": "another company had fewer snapshots"})
    assert await is_broken_off(clients.pop("/1/a"))
    # One fewer is no reason: they would evict each other in turns.
    for path in ("/1/a", "/2/b", "/3/b"):
        refused = await served.api.get(f"/{path}")
        assert refused.status == 429
    assert {path: await whole(client) for path, client in clients.items()} == dict.fromkeys(clients, PAGES)
    assert [served.ends[path] for path in clients] == ["whole"] * 4


async def test_a_client_that_takes_nothing_loses_its_place_while_others_wait(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = {path: await served.ask(path) for path in ("/1/a", "/2/a", "/3/a", "/4/a")}
    assert (await served.api.get("//5/a")).status == 429
    monkeypatch.setattr(snapshots, "STALLED_SECONDS", 0.0)
    clients["/5/a"] = await served.ask("/5/a")
    assert served.holders() == ["/2/a", "/3/a", "/4/a", "/5/a"], "who has taken nothing for longest"
    assert await is_broken_off(clients.pop("/1/a"))
    monkeypatch.undo()
    for client in clients.values():
        assert await whole(client) == PAGES
