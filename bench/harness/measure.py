"""One block of requests and its cost; pairs of blocks, Makeready's and the peer's in turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from harness.cpu import spent, used
from harness.load import Client
from harness.seed import Seeded
from harness.sides import Side
from harness.workloads import Workload, greetings


@dataclass(frozen=True)
class Block:
    """The cost of one block: seconds of CPU a request, by process, and requests a second."""

    cpu: dict[str, float]
    requests_a_second: float

    @property
    def total(self) -> float:
        return sum(self.cpu.values())


@dataclass(frozen=True)
class Result:
    """A workload's blocks; ours[n] and peers[n] ran one after the other."""

    workload: Workload
    ours: list[Block]
    peers: list[Block]

    @property
    def ratios(self) -> list[float]:
        return [peer.total / mine.total for mine, peer in zip(self.ours, self.peers, strict=True)]

    @property
    def ratio(self) -> float:
        return median(self.ratios)


async def block(side: Side, workload: Workload, seeded: Seeded, connections: int, requests: int) -> Block:
    """Warms up until every key is cached and every pooled connection has its statements prepared; then measures."""
    company_id = seeded.measured if workload.scope == "read" else seeded.written
    own = seeded.of(company_id, workload.scope)
    keys: Iterator[str] = itertools.cycle(own)
    async with Client(side.base_url, connections) as client:
        await client.run(lambda: greetings(client, side, seeded, keys), len(own), 200)
        await client.run(lambda: workload.script(client, side, seeded, keys), 2 * connections, workload.status)
        await side.settled()
        before = used(side.roots)
        seconds = await client.run(lambda: workload.script(client, side, seeded, keys), requests, workload.status)
        await side.settled()
        cost = spent(before, used(side.roots))
    return Block({name: value / requests for name, value in cost.items()}, requests / seconds)


async def pairs(
    sides: tuple[Side, Side],
    workloads: tuple[Workload, ...],
    seeded: Seeded,
    connections: int,
    go_on: Callable[[int], bool],
    share: float = 1.0,
) -> list[Result]:
    """Runs A B A B … over all workloads while `go_on(pairs done)` is true. share: of each workload's requests.

    One small extra pair comes first and is discarded: PostgreSQL plans a statement anew the first five times on each
    connection.
    """
    results = [Result(workload, [], []) for workload in workloads]
    for workload in workloads:
        for side in sides:
            await block(side, workload, seeded, connections, 5 * connections)
    done = 0
    while go_on(done):
        for result in results:
            requests = max(connections, int(result.workload.requests * share))
            for side, blocks in zip(sides, (result.ours, result.peers), strict=True):
                blocks.append(await block(side, result.workload, seeded, connections, requests))
        done += 1
    return results
