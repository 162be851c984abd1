"""`make bench-companies`: many companies at once on one machine, as docs/capacity.md works them out.

Each company has 100 units, an API key that reads and one that writes. The figures are CPU by process, bytes and
seconds. Nothing is written but what is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from harness.cpu import Used, spent, used
from harness.idle import memory
from harness.load import Client, LoadError, Script
from harness.sides import Ours, Side
from harness.stage import scratch
from makeready.catalog.v1 import places_pb2
from makeready.common.v1.documents_pb2 import IMPORT_OUTCOME_CREATED, ImportRow
from makeready.identity.v1 import identity_pb2 as pb
from makeready_cli.calls import Operator
from makeready_cli.errors import CommandError
from makeready_local.children import LocalError

UNITS = 100
CALLS_AT_ONCE = 8
CONNECTIONS = 16
OPENED_AT_ONCE = 50
KINDS = ("tickets", "properties", "units", "assets", "vendors", "inspections", "turns", "meters", "readings")
IDLE_SECONDS = 30
WAIT_SECONDS = 25


@dataclass
class Company:
    company_id: int
    read: str
    write: str
    unit_id: int = 0
    positions: dict[str, str] = field(default_factory=dict)
    """By kind, where its reader of changes goes on."""


class Played:
    """The system under the load of all companies, and what each step took."""

    def __init__(self, ours: Ours, side: Side) -> None:
        self.ours, self.side = ours, side
        self.companies: list[Company] = []

    @asynccontextmanager
    async def step(self, activity: str, times: int, *, settle: bool = True) -> AsyncIterator[None]:
        """Prints the seconds and the CPU of the block, a time, by process."""
        began, before = time.monotonic(), used(self.side.roots)
        yield
        seconds = time.monotonic() - began
        if settle:
            await self.ours.command("wait", "--timeout", "1800")
        more = f", settled after {time.monotonic() - began - seconds:.0f} s" if settle else ""
        cpu = spent(before, used(self.side.roots))
        say(f"{activity}: {times} in {seconds:.0f} s{more}; {_each(cpu, times)}")


def _each(cpu: Used, times: int) -> str:
    parts = ", ".join(
        f"{name} {1000 * seconds / times:.3f}" for name, seconds in cpu.items() if seconds / times > 0.00001
    )
    return f"{1000 * sum(cpu.values()) / times:.3f} ms CPU each ({parts})"


async def run(companies: int, waiting: int, folder: Path) -> None:
    """The whole play. waiting: requests that wait for changes at once."""
    ours = Ours(folder)
    try:
        played = Played(ours, await ours.start())
        await _found(played, companies)
        await _build(played)
        await _size(played)
        await _poll(played, first=True)
        await _poll(played, first=False)
        await _create(played)
        await _poll(played, first=False)
        await _wait(played, waiting)
        async with played.step(f"idle, {IDLE_SECONDS} s", IDLE_SECONDS, settle=False):
            await asyncio.sleep(IDLE_SECONDS)
        for sweep in (("stale",), ("webhooks",), ("retention",)):
            async with played.step(f"sweep {sweep[0]}", 1, settle=False):
                await ours.command("sweep", *sweep)
        await _size(played)
        began = time.monotonic()
        ours.stop()
        stopped = time.monotonic()
        await ours.start()
        say(f"stopped in {stopped - began:.1f} s, started again in {ours.start_seconds:.1f} s")
    finally:
        ours.stop()


async def _all(work: Callable[[Any], Awaitable[None]], items: Iterable[Any]) -> None:
    """Does the work for all items, a few at a time."""
    waiting = iter(items)

    async def lane() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(CALLS_AT_ONCE):
            group.create_task(lane())


async def _found(played: Played, many: int) -> None:
    """Companies, each with an administrator and two keys."""
    async with Operator(played.ours.runtime) as operator:

        async def found(number: int) -> None:
            request = pb.CreateCompanyRequest(name=f"Company {number}", external_id=f"company-{number}")
            company_id = (await operator.call("gateway", request, pb.CreateCompanyResponse)).company.id
            email = f"ada@company-{number}.test"
            person = pb.CreateAdministratorRequest(company_id=company_id, email=email)
            await operator.call("gateway", person, pb.CreateAdministratorResponse)
            reads = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ, administrator_email=email)
            writes = pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_WRITE, administrator_email=email)
            read, write = [
                (await operator.call("gateway", request, pb.MintKeyResponse)).key for request in (reads, writes)
            ]
            played.companies.append(Company(company_id, read, write))

        async with played.step("companies with an administrator and two keys", many):
            await _all(found, range(1, many + 1))


async def _build(played: Played) -> None:
    """A property and its units for each company."""
    async with Operator(played.ours.runtime) as operator:
        a_house = [ImportRow(line=1, json=_json(external_id="P", name="Elm Court", address="1 Elm St"))]
        rooms = [
            ImportRow(line=number, json=_json(external_id=f"U{number}", property="P", name=f"Unit {number}"))
            for number in range(1, UNITS + 1)
        ]

        async def build(company: Company) -> None:
            company_id = company.company_id
            house = places_pb2.ImportPropertiesRequest(rows=a_house)
            units = places_pb2.ImportUnitsRequest(rows=rooms)
            first = await operator.call(
                "svc-catalog", house, places_pb2.ImportPropertiesResponse, company_id=company_id
            )
            then = await operator.call("svc-catalog", units, places_pb2.ImportUnitsResponse, company_id=company_id)
            assert {result.outcome for result in (*first.results, *then.results)} == {IMPORT_OUTCOME_CREATED}

        async with played.step(f"files of a property and {UNITS} units", len(played.companies)):
            await _all(build, played.companies)


def _json(**values: str | int) -> bytes:
    return json.dumps(values).encode()


async def _poll(played: Played, *, first: bool) -> None:
    """Each company's integration asks once for the changes of all nine kinds."""
    polls = ((company, kind) for company in played.companies for kind in KINDS)
    async with Client(played.side.base_url, CONNECTIONS) as client:

        def script() -> Script:
            for company, kind in polls:
                cursor = company.positions.get(kind)
                path = f"/changes/{kind}?limit=50" + (f"&cursor={cursor}" if cursor else "")
                answer = json.loads((yield client.request("GET", path, company.read)))
                company.positions[kind] = answer["resume_cursor"]
                if kind == "units" and answer["data"] and not company.unit_id:
                    company.unit_id = answer["data"][0]["entity_id"]
            yield client.request("GET", "/whoami", played.companies[0].read)

        many = len(played.companies) * len(KINDS)
        async with played.step("first pages of changes" if first else "polls of changes", many, settle=False):
            await client.run(script, many, 200)


async def _create(played: Played) -> None:
    """One ticket in each company, so that no two share rows or locks."""
    companies = iter(played.companies)
    async with Client(played.side.base_url, CONNECTIONS) as client:

        def script() -> Script:
            for company in companies:
                body = _json(
                    unit_id=company.unit_id, title="Tap drips", category="Leak", description="In the kitchen. " * 12
                )
                more = f"Idempotency-Key: played-{company.company_id}\r\n"
                yield client.request("POST", "/tickets", company.write, body, more)
            yield client.request("GET", "/whoami", played.companies[0].read)

        async with played.step("creates, one in each company", len(played.companies)):
            await client.run(script, len(played.companies), 201)


async def _wait(played: Played, many: int) -> None:
    """Integrations that wait for changes of tickets at the same time: what a second of that costs."""
    chosen = played.companies[:many]

    async def wait(waiting: list[Company]) -> None:
        companies = iter(waiting)
        async with Client(played.side.base_url, len(waiting)) as client:

            def script() -> Script:
                company = next(companies)
                path = f"/changes/tickets?cursor={company.positions['tickets']}&wait={WAIT_SECONDS}"
                while True:
                    yield client.request("GET", path, company.read)

            await client.run(script, len(waiting), 200)

    async with (
        played.step(f"seconds of {len(chosen)} requests that wait", WAIT_SECONDS, settle=False),
        asyncio.TaskGroup() as group,
    ):
        # A few at a time, so that each has sent its key soon. One client address may have 1,000 connections.
        for first in range(0, len(chosen), OPENED_AT_ONCE):
            group.create_task(wait(chosen[first : first + OPENED_AT_ONCE]))
            await asyncio.sleep(0.05)


async def _size(played: Played) -> None:
    """Bytes of each database, and of the memory of each program."""
    connection = await asyncpg.connect(played.ours.database_url)
    try:
        sizes = await connection.fetch(
            "SELECT datname, pg_database_size(datname) AS size FROM pg_database WHERE NOT datistemplate ORDER BY 1"
        )
    finally:
        await connection.close()
    say("disk, MB: " + ", ".join(f"{row['datname']} {row['size'] / 1e6:.0f}" for row in sizes))
    proportional = {name: memory(name, pid).proportional for name, pid in played.side.roots.items()}
    say("memory, MB: " + ", ".join(f"{name} {megabytes:.0f}" for name, megabytes in proportional.items()))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-companies", description=__doc__)
    parser.add_argument("--companies", type=int, default=10_000, help="default 10,000")
    parser.add_argument("--waiting", type=int, default=900, help="requests that wait at once (default 900)")
    options = parser.parse_args()
    try:
        with scratch() as folder:
            asyncio.run(run(options.companies, options.waiting, folder))
    except KeyboardInterrupt:
        say("Stopped.")
        return 130
    except (LocalError, LoadError, CommandError, OSError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
