"""`make soak`: many events over many subscriptions, bad endpoints among them, and a kill -9 every few seconds.

Each (event, subscription) must have been delivered at least once, or be shown as parked or waiting with its attempts.
Stops by itself; prints a report as Markdown; ends with 1 where anything is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import asyncpg

from makeready.webhooks.v1 import webhooks_pb2 as pb
from testkit.plugin import server_folder

from .harness import Harness, running_harness
from .soak_causes import Causes
from .soak_endpoints import Endpoints, listening
from .soak_kills import Killer
from .soak_plan import BAD, Plan, Subscription, planned
from .soak_report import Run, report
from .soak_verdict import Listed, judged

PROGRESS_SECONDS = 10.0
LOOK_SECONDS = 0.5
PAGE = 200
KILLING_SHARE = 0.7  # of the run's time, at most; deliveries settle in the rest
UNDER_WAY_SECONDS = 10.0  # longer than an interrupted write can still run
CHECK_SECONDS = 40.0  # reserved for the count at the end
STATES = {pb.DELIVERY_STATE_WAITING: "waiting", pb.DELIVERY_STATE_PARKED: "parked"}

Say = Callable[[str], None]


class Soak:
    """One run on a running Makeready."""

    def __init__(
        self, harness: Harness, endpoints: Endpoints, plan: Plan, *, seed: int, seconds: float, say: Say
    ) -> None:
        self.harness = harness
        self.endpoints = endpoints
        self.plan = plan
        self.seed = seed
        self.seconds = seconds
        self.began = time.monotonic()
        self._say = say
        self._ids: dict[Subscription, int] = {}
        self._told_at = 0.0
        self._events = plan.events

    async def run(self, *, kills_max: int | None, apart_seconds: tuple[float, float]) -> Run:
        """The whole run: founds companies, starts the causes, kills, waits until deliveries settle, counts.

        kills_max: the run goes on until that many kills are done. None: it kills until no healthy subscription waits.
        """
        timeout = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
            causes = Causes(self.harness, self.plan, random.Random(self.seed), session)
            created = await causes.found()
            self._ids = {subscription: sub_id for subscription, (sub_id, _) in created.items()}
            self.endpoints.tell_secrets({subscription.path: secret for subscription, (_, secret) in created.items()})
            self._say(f"{self._elapsed():4.0f} s: {len(created)} subscriptions of {len(causes.companies)} companies")
            killer = Killer(self.harness, random.Random(self.seed + 1), apart_seconds)
            started_at = time.monotonic()
            happening = asyncio.create_task(causes.run())
            killing = asyncio.create_task(killer.run(kills_max))
            try:
                whole = await self._while_killing(happening, killing, causes, killer, until_settled=kills_max is None)
            finally:
                for task in (happening, killing):
                    task.cancel()
                await asyncio.wait({happening, killing})
            await killer.rest()
            killing_seconds = time.monotonic() - started_at
            if not whole:
                await asyncio.sleep(UNDER_WAY_SECONDS)
            truth = await causes.truth(whole=whole)
            self._events = len(truth)
            await self._come_to_rest(causes, killer)
            rest_seconds = time.monotonic() - started_at - killing_seconds
            self._say("counting")
            listed = await self._listed()
            verdict = judged(truth, self.plan.subscriptions, self.endpoints.arrivals(), listed, killer.kills)
        return Run(
            self.seed, self.plan, len(truth), verdict, killer.kills, causes.answers, killing_seconds, rest_seconds
        )

    async def _while_killing(
        self,
        happening: asyncio.Task[None],
        killing: asyncio.Task[None],
        causes: Causes,
        killer: Killer,
        *,
        until_settled: bool,
    ) -> bool:
        """Returns once all causes have happened and all kills are done, or the time is over. True: all causes happened.

        until_settled: also returns before the kills are done, once no healthy subscription waits for a delivery.
        """
        while self._elapsed() < KILLING_SHARE * self.seconds:
            if killing.done():
                killing.result()  # raises the error of a kill or a restart
            if happening.done():
                happening.result()
                if killing.done() or (until_settled and await self._is_settled("healthy")):
                    break
            await self._progress(causes, killer)
            await asyncio.sleep(LOOK_SECONDS)
        if happening.done():
            happening.result()
        return happening.done()

    async def _come_to_rest(self, causes: Causes, killer: Killer) -> None:
        """Waits until no delivery waits, or the time is over."""
        while self._elapsed() < self.seconds - CHECK_SECONDS and not await self._is_settled():
            await self._progress(causes, killer)
            await asyncio.sleep(LOOK_SECONDS)

    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    async def _is_settled(self, health: str = "") -> bool:
        """Whether all events are stored and no delivery waits. health: considers only subscriptions of this health."""
        ids = list(self._ids.values())
        which = "AND s.health = $2 " if health else ""
        rows = await self._query(
            "SELECT (SELECT count(*) FROM event WHERE company_id IN (SELECT company_id FROM subscription"
            " WHERE id = ANY($1))) AS stored, EXISTS (SELECT 1 FROM subscription s JOIN delivery d ON"
            f" d.subscription_id = s.id WHERE s.id = ANY($1) {which}AND d.state = 'waiting') AS waits",
            ids,
            *([health] if health else []),
        )
        return bool(rows) and rows[0]["stored"] >= self._events and not rows[0]["waits"]

    async def _progress(self, causes: Causes, killer: Killer) -> None:
        if time.monotonic() - self._told_at < PROGRESS_SECONDS:
            return
        self._told_at = time.monotonic()
        sql = "SELECT state, count(*) AS count FROM delivery WHERE subscription_id = ANY($1) GROUP BY state"
        counts = {row["state"]: row["count"] for row in await self._query(sql, list(self._ids.values()))}
        totals = ", ".join(f"{counts.get(state, 0)} {state}" for state in ("succeeded", "waiting", "parked"))
        self._say(
            f"{self._elapsed():4.0f} s: {causes.done} of {self.plan.events} events, {len(killer.kills)} kills; "
            + (totals if counts else "PostgreSQL is away")
        )

    async def _query(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        """Returns [] while PostgreSQL is down."""
        try:
            return await self.harness.query("svc-webhooks", sql, *values)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError):
            return []

    async def _listed(self) -> dict[Subscription, dict[str, Listed]]:
        """The waiting and parked deliveries of every subscription, as the operator's list has them, by event id."""
        by_subscription = {}
        for subscription, sub_id in self._ids.items():
            undelivered: dict[str, Listed] = {}
            for state, name in STATES.items():
                request = pb.ListDeliveriesRequest(sub_id=sub_id, limit=PAGE, state=state)
                while True:
                    page = await self.harness.operator("svc-webhooks", request)
                    undelivered |= {
                        each.event_id: Listed(name, len(each.attempts))
                        for each in page.deliveries
                        if each.state == state
                    }
                    if len(page.deliveries) < PAGE or page.deliveries[-1].event_id == request.before_event_id:
                        break
                    request.before_event_id = page.deliveries[-1].event_id
            by_subscription[subscription] = undelivered
        return by_subscription


def say(text: str) -> None:
    """Prints a line of progress."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--subscriptions", type=int, default=200)
    parser.add_argument("--bad", type=int, default=len(BAD), help="bad endpoints")
    parser.add_argument("--seconds", type=float, default=600, help="it ends by then")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--calm", action="store_true", help="kill nobody")
    options = parser.parse_args()
    try:
        plan = planned(options.events, options.subscriptions, options.bad)
    except ValueError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    try:
        with server_folder() as folder, listening(folder / "endpoints") as endpoints:
            say(
                f"{plan.events} events, {len(plan.subscriptions)} subscriptions, {options.bad} bad; seed {options.seed}"
            )
            with running_harness(
                folder, endpoints, dispatchers=2, fsync=True, webhooks=settings(endpoints, 5)
            ) as harness:
                say(f"{time.monotonic() - began:4.0f} s: Makeready stands")
                soak = Soak(harness, endpoints, plan, seed=options.seed, seconds=options.seconds, say=say)
                soak.began = began
                run = asyncio.run(soak.run(kills_max=0 if options.calm else None, apart_seconds=(2.0, 5.0)))
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    sys.stdout.write(report(run))
    return 0 if run.is_good else 1


def settings(endpoints: Endpoints, sweep_seconds: int) -> dict[str, str]:
    """Settings of the dispatchers: the ladder retries about 1, 2, 3, 5 and 8 sweeps after the first attempt."""
    ladder = ",".join(f"{0.9 * slots * sweep_seconds / 3600:.6f}" for slots in (1, 2, 3, 5, 8))
    return {
        "WEBHOOKS_EGRESS_HOSTS": endpoints.hosts,
        "WEBHOOKS_SWEEP_SECONDS": str(sweep_seconds),
        "WEBHOOKS_RETRY_LADDER_HOURS": ladder,
    }


if __name__ == "__main__":
    sys.exit(main())
