"""Deliveries: the sender's cost compared with a bare aiohttp client's, and its memory with a million of them due."""

from __future__ import annotations

import asyncio
import datetime
import json
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg
import psutil

from chassis.db.database import Connection
from harness.cpu import Used, spent, used
from harness.load import Client
from harness.receiver import HOST, Receiver
from harness.seed import Seeded
from harness.sides import PEER_FOLDER, Ours, Side
from makeready_local.children import LocalError
from svc_webhooks.days import DAY, KEPT_DAYS
from svc_webhooks.events.queries.partitions import DAYS

GOAL_A_SECOND = 6000  # for each core
SUBSCRIPTIONS = 16
EVENTS = 600  # in a block, each delivered to every subscription
WARMING = 40
CONNECTIONS = 256  # of the bare client; svc-webhooks has at most 16 for each subscription
MILLION = 1_000_000
BACKLOG_SECONDS = 20.0  # of the sweep of the million
SERVERS = ("svc-webhooks", "postgres")

# Rows as one company's events are stored, due since they happened.
_FILL = """
WITH made AS MATERIALIZED (SELECT uuidv7() AS event_id FROM generate_series(1, $1::int)),
  stored AS (
    INSERT INTO event (event_id, company_id, event, entity_id, occurred_at, request_id, body)
    SELECT event_id, $2::bigint, 'ticket.created', 1, now(), 'bench',
      convert_to(replace($3::text, '$event_id', event_id::text), 'UTF8')
    FROM made
  )
INSERT INTO delivery (event_id, subscription_id, due_at)
SELECT event_id, id, now() - interval '1 minute' FROM made, subscription WHERE company_id = $2
"""
_PAUSE = "UPDATE subscription SET health = 'paused', paused_at = now(), failures_in_a_row = 0"
_ATTEMPTED = "SELECT count(*) FROM delivery WHERE state <> 'waiting'"


@dataclass(frozen=True)
class Pair:
    """Two blocks, one after the other. ours: CPU seconds a delivery, by process; bare: those of the client, a post."""

    ours: Used
    bare: float
    deliveries_a_second: float

    @property
    def total(self) -> float:
        return sum(self.ours.values())


@dataclass(frozen=True)
class Backlog:
    """A sweep with `due` deliveries due, stopped after a while. megabytes: resident memory of svc-webhooks before it,
    at its peak, and after it; cpu: seconds a delivery."""

    due: int
    attempted: int
    megabytes: tuple[float, float, float]
    cpu: Used


@dataclass(frozen=True)
class Delivered:
    pairs: list[Pair]
    backlog: Backlog

    @property
    def a_second(self) -> float:
        """Deliveries a second and core: the inverse of one delivery's CPU seconds."""
        return 1 / median(pair.total for pair in self.pairs)


async def measure(
    ours: Ours,
    side: Side,
    seeded: Seeded,
    folder: Path,
    go_on: Callable[[int], bool],
    *,
    events: int = EVENTS,
    due: int = MILLION,
    seconds: float = BACKLOG_SECONDS,
) -> Delivered:
    """Measures pairs of blocks while `go_on(pairs done)` is true, then the backlog. Raises LocalError."""
    roots = {name: side.roots[name] for name in SERVERS}
    async with _database(ours) as connection:
        await _age(connection)
        company_id, body = await _subscribe(ours, side, seeded)
        bodies = folder / "bodies"
        bodies.write_text("\n".join(body.replace("$event_id", secrets.token_hex(18)) for _ in range(events)))
        pairs: list[Pair] = []
        while go_on(len(pairs)):
            await connection.execute(_FILL, min(WARMING, events), company_id, body)
            await ours.command("sweep", "webhooks")
            await connection.execute(_FILL, events, company_id, body)
            before, started = used(roots), asyncio.get_running_loop().time()
            swept = await ours.command("sweep", "webhooks")
            elapsed, cost = asyncio.get_running_loop().time() - started, spent(before, used(roots))
            if swept["succeeded"] != events * SUBSCRIPTIONS:
                raise LocalError(f"a sweep of {events * SUBSCRIPTIONS} deliveries reported {swept}")
            posts = events * SUBSCRIPTIONS
            bare = await _bare(ours.receiver, bodies, posts)
            pairs.append(Pair({name: cpu / posts for name, cpu in cost.items()}, bare / posts, posts / elapsed))
        await connection.execute(_FILL, due // SUBSCRIPTIONS, company_id, body)
        return Delivered(
            pairs, await _sweep_part(ours, connection, roots, due // SUBSCRIPTIONS * SUBSCRIPTIONS, seconds)
        )


@asynccontextmanager
async def _database(ours: Ours) -> AsyncIterator[Any]:
    """The database of svc-webhooks, as administrator."""
    connection = await asyncpg.connect(ours.database_url.rpartition("/")[0] + "/webhooks")
    try:
        yield connection
    finally:
        await connection.close()


async def _age(connection: Any) -> None:
    """Makes the daily partitions that an older installation has: statements look into all of them."""
    await connection.execute("SET ROLE webhooks_partitions")
    today = datetime.datetime.now(datetime.UTC).date()
    for ago in range(1, KEPT_DAYS + 1):
        await DAYS.make(Connection(connection), today - ago * DAY)
    await connection.execute("RESET ROLE")


async def _subscribe(ours: Ours, side: Side, seeded: Seeded) -> tuple[int, str]:
    """Makes subscriptions over the API; returns the company's id and the body of a real ticket's event."""
    company_id = (await ours.command("company", "create", "Delivered"))["company_id"]
    await ours.command("administrator", "create", str(company_id), "deliveries@bench.example")
    words = ("key", "mint", str(company_id), "--scope", "write", "--administrator", "deliveries@bench.example")
    key = (await ours.command(*words))["key"]
    async with Client(side.base_url, 1) as client:
        for number in range(SUBSCRIPTIONS):
            body = {"destination_url": f"https://{HOST}/{number}", "events": ["ticket.created"]}
            more = f"Idempotency-Key: {number}\r\n"
            answer = await client.ask(client.request("POST", "/webhooks", key, json.dumps(body).encode(), more))
            if answer.status != 201:
                raise LocalError(f"a subscription was answered with {answer.status}: {answer.body[:300]!r}")
        page = await client.ask(client.request("GET", "/tickets?limit=1", seeded.of(seeded.measured, "read")[0]))
    (ticket,) = json.loads(page.body)["data"]
    envelope = {
        "schema_version": 1,
        "event_id": "$event_id",
        "event": "ticket.created",
        "occurred_at": ticket["created_at"],
        "company_id": company_id,
        "data": ticket,
        "change": None,
    }
    return company_id, json.dumps(envelope, separators=(",", ":"), ensure_ascii=False)


async def _bare(receiver: Receiver, bodies: Path, posts: int) -> float:
    """The bare client's CPU seconds for this number of posts."""
    words = (str(bodies), str(receiver.port), str(receiver.authority), str(posts), str(CONNECTIONS))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "harness.bare", *words,
        env={"PYTHONPATH": str(PEER_FOLDER)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate()
    if process.returncode:
        raise LocalError(f"the bare client failed: {errors.decode().strip()[-300:]}")
    seconds: float = json.loads(output)["seconds"]
    return seconds


async def _sweep_part(ours: Ours, connection: Any, roots: dict[str, int], due: int, seconds: float) -> Backlog:
    """Sweeps for `seconds`, then pauses the subscriptions, which leaves the sweep nothing to do."""
    process = psutil.Process(roots["svc-webhooks"])
    already = await connection.fetchval(_ATTEMPTED)
    before, began = process.memory_info().rss, used(roots)
    sweep = asyncio.create_task(ours.command("sweep", "webhooks"))
    most = before
    give_up = asyncio.get_running_loop().time() + seconds
    while not sweep.done() and asyncio.get_running_loop().time() < give_up:
        await asyncio.wait({sweep}, timeout=0.25)
        most = max(most, process.memory_info().rss)
    await connection.execute(_PAUSE)
    await sweep
    cost = spent(began, used(roots))
    attempted = await connection.fetchval(_ATTEMPTED) - already
    megabytes = (before / 1e6, most / 1e6, process.memory_info().rss / 1e6)
    return Backlog(due, attempted, megabytes, {name: cpu / max(1, attempted) for name, cpu in cost.items()})


def table(delivered: Delivered) -> str:
    """Markdown: the cost of a delivery, and of a backlog."""
    pairs, backlog = delivered.pairs, delivered.backlog
    ratios = [pair.bare / pair.total for pair in pairs]
    reached = "reached" if delivered.a_second >= GOAL_A_SECOND else "not reached"
    parts = ", ".join(f"{name} {1e6 * median(pair.ours[name] for pair in pairs):.0f}" for name in SERVERS)
    at_depth = sum(backlog.cpu.values())
    before, most, after = backlog.megabytes
    return "\n".join(
        (
            "| deliveries | µs CPU each | bare aiohttp client, µs CPU | times less (each pair) | a second and core "
            "| goal | a second |",
            "|---|---:|---:|---:|---:|---:|---:|",
            f"| claimed, signed, sent, recorded | {1e6 * median(pair.total for pair in pairs):.0f} ({parts}) "
            f"| {1e6 * median(pair.bare for pair in pairs):.0f} "
            f"| **{median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f}) | **{delivered.a_second:.0f}** "
            f"| {GOAL_A_SECOND} {reached} | {median(pair.deliveries_a_second for pair in pairs):.0f} |",
            "",
            "| a backlog | attempted | µs CPU each | svc-webhooks before, MB | at most | after |",
            "|---|---:|---:|---:|---:|---:|",
            f"| {backlog.due:,} due | {backlog.attempted:,} | {1e6 * at_depth:.0f} | {before:.0f} | {most:.0f} "
            f"| {after:.0f} |",
        )
    )
