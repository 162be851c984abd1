"""One block of requests and its cost; rounds of blocks, those of all sides in turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.cpu import spent, used
from harness.load import Client
from harness.seed import Seeded
from harness.sides import Side
from harness.workloads import Workload, greetings

# By the number of connections, the share of a workload's requests in a block. One request after the other takes longer.
SHARES = {16: 1.0, 1: 0.5}


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
    """A workload's blocks over a number of connections, by side; those of one round ran one after the other."""

    workload: Workload
    connections: int
    blocks: dict[str, list[Block]]

    def ratios(self, name: str, baseline: str) -> list[float]:
        """How many times less CPU the side takes than another one, in each round."""
        return [more.total / less.total for less, more in zip(self.blocks[name], self.blocks[baseline], strict=True)]

    def ratio(self, name: str, baseline: str) -> float:
        return median(self.ratios(name, baseline))

    def milliseconds(self, name: str) -> float:
        """CPU of a request."""
        return 1000 * median(block.total for block in self.blocks[name])

    def rate(self, name: str) -> float:
        """Requests a second."""
        return median(block.requests_a_second for block in self.blocks[name])


async def block(side: Side, workload: Workload, seeded: Seeded, connections: int, requests: int) -> Block:
    """Warms up until every key is cached and every pooled connection has its statements prepared; then measures."""
    company_id = seeded.measured if workload.scope == "read" else seeded.written
    company_keys = seeded.of(company_id, workload.scope)
    keys: Iterator[str] = itertools.cycle(company_keys)
    async with Client(side.base_url, connections) as client:
        await client.run(lambda: greetings(client, side, seeded, keys), len(company_keys), 200)
        await client.run(lambda: workload.script(client, side, seeded, keys), 2 * connections, workload.status)
        await side.settled()
        before = used(side.roots)
        seconds = await client.run(lambda: workload.script(client, side, seeded, keys), requests, workload.status)
        await side.settled()
        cost = spent(before, used(side.roots))
    return Block({name: value / requests for name, value in cost.items()}, requests / seconds)


async def rounds(
    sides: Sequence[Side],
    workloads: Sequence[Workload],
    seeded: Seeded,
    go_on: Callable[[int], bool],
    shares: Mapping[int, float] = SHARES,
) -> list[Result]:
    """Runs A B C … A B C … over all workloads while `go_on(rounds done)` is true. shares: by the number of connections,
    the share of each workload's requests.

    One small extra round comes first and is discarded: PostgreSQL plans a statement anew the first five times on each
    connection.
    """
    results = [
        Result(workload, connections, {side.name: [] for side in sides})
        for connections in shares
        for workload in workloads
    ]
    most = max(shares)
    for workload in workloads:
        for side in sides:
            await block(side, workload, seeded, most, 5 * most)
    done = 0
    while go_on(done):
        for result in results:
            requests = max(result.connections, int(result.workload.requests * shares[result.connections]))
            for side in sides:
                measured = await block(side, result.workload, seeded, result.connections, requests)
                result.blocks[side.name].append(measured)
        done += 1
    return results
