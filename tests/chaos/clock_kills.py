"""`make soak-clock`: a sandbox's clock is advanced day by day while every process is killed.

What time makes happen is known beforehand: when each ticket and each inspection becomes stale. Each of these events
must be there once, at its instant, stored and delivered. Stops by itself; ends with 1 where one is missing or doubled.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import random
import secrets
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import server_folder

from ..e2e.receiver import Receiver
from ..e2e.system import Answer, Company
from .harness import Harness, running_harness
from .soak_kills import Killer

KILLS, APART_SECONDS = 200, (0.3, 1.5)
TICKETS, INSPECTIONS, DAYS_MIN = 24, 40, 4
THRESHOLD, DAY = datetime.timedelta(hours=72), datetime.timedelta(days=1)
# An event has the instant that the clock says when it fires: the due one, and what a restart takes.
RESTART = datetime.timedelta(minutes=30)
HOOK, FAILS = "/clock", "/clock-fails"
POLL_SECONDS = 1.0

Due = tuple[str, int, datetime.datetime]
"""An event that is to come: its key, its record, its instant."""


@dataclass
class Result:
    """One run."""

    seed: int
    days: int
    expected: list[Due]
    faults: list[str]
    kills: Counter[str]

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {who}" for who, count in sorted(self.kills.items()))
        return (
            f"seed {self.seed}; {self.days} advances of a day; {len(self.expected)} events expected; kills: {kills}\n"
            + "".join(f"{fault}\n" for fault in self.faults)
        )


class Clock:
    """The clock of one sandbox, over the API. Every request is repeated until it is answered."""

    def __init__(self, harness: Harness, keys: list[str]) -> None:
        self._harness, self._keys, self._requests = harness, keys, 0

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        for _ in range(int(PATIENCE_SECONDS)):
            self._requests += 1
            key = self._keys[self._requests % len(self._keys)]
            if body is not None:  # an Idempotency-Key belongs to its API key
                key = self._keys[0]
            try:
                answer: Answer = await asyncio.to_thread(self._harness.system.call, method, path, key, body, headers)
            except OSError:
                answer = Answer(0, None, b"")  # type: ignore[arg-type]
            if answer.status in (200, 201, 202):
                return answer.json
            assert answer.status in (0, 409, 429, 500, 503), answer
            await asyncio.sleep(POLL_SECONDS)
        raise AssertionError(f"{method} {path} got no answer")

    async def now(self) -> datetime.datetime:
        return datetime.datetime.fromisoformat((await self.call("GET", "/sandbox/clock"))["now"])

    async def advance(self, number: int) -> None:
        """Advances by a day, and waits until everything is done."""
        await self.call("POST", "/sandbox/clock", {"advance_by": "P1D"}, **{"Idempotency-Key": f"day {number}"})
        while (await self.call("GET", "/sandbox/clock"))["status"] != "ready":  # noqa: ASYNC110 - asks processes
            await asyncio.sleep(POLL_SECONDS)


async def advanced(harness: Harness, *, seed: int, kills: int, apart_seconds: tuple[float, float]) -> Result:
    """One run: as many advances as it takes until so many processes have been killed."""
    company = await harness.sandbox("Advances under kills")
    clock = Clock(harness, [await harness.key(company) for _ in range(4)])
    for path in (HOOK, FAILS):
        body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.stale", "inspection.stale"]}
        await clock.call("POST", "/webhooks", body, **{"Idempotency-Key": path})
    assert isinstance(harness.receiver, Receiver)
    harness.receiver.answers[FAILS] = [500] * 100_000
    start = await clock.now()
    created, scheduled = await asyncio.to_thread(_records, company, start, random.Random(seed))
    killer = Killer(harness, random.Random(seed + 1), apart_seconds)
    killing = asyncio.create_task(killer.run(kills))
    days = 0
    try:
        while days < DAYS_MIN or not killing.done():
            days += 1
            await clock.advance(days)
        await killing
    finally:
        killing.cancel()
        await killer.rest()
    days += 1
    await clock.advance(days)
    await harness.all_events_arrived()
    now = await clock.now()
    expected = _expected(created, scheduled, now)
    return Result(seed, days, expected, await _faults(harness, company, expected, now), killer.by_process())


def _records(
    company: Company, now: datetime.datetime, chance: random.Random
) -> tuple[dict[int, datetime.datetime], dict[int, datetime.date]]:
    """When each ticket was created, and for which day each inspection is scheduled, by id. None is due yet."""
    created = [now - chance.random() * (THRESHOLD - datetime.timedelta(hours=2)) for _ in range(TICKETS)]
    days = [now.date() + chance.randrange(1, 60) * DAY for _ in range(INSPECTIONS)]
    company.import_rows("properties", [{"external_id": "P", "name": "Elm Court", "address": "1 Elm St"}])
    resident = {"property": "P", "category": "HVAC", "source": "resident_portal"}
    tickets = [
        resident | {"external_id": f"T{number}", "title": f"Cold {number}", "created_at": instant.isoformat()}
        for number, instant in enumerate(created)
    ]
    inspections = [
        {"external_id": f"I{number}", "property": "P", "title": f"Roof {number}", "scheduled_date": f"{day}"}
        for number, day in enumerate(days)
    ]
    for kind, rows in (("tickets", tickets), ("inspections", inspections)):
        assert company.import_rows(kind, rows)["created"] == len(rows)
    return (
        {ticket["entity_id"]: created[int(ticket["external_id"][1:])] for ticket in company.walk("/tickets")},
        {entry["entity_id"]: days[int(entry["external_id"][1:])] for entry in company.walk("/inspections")},
    )


def _expected(
    created: dict[int, datetime.datetime], scheduled: dict[int, datetime.date], now: datetime.datetime
) -> list[Due]:
    """In the order of time. The company's timezone is UTC."""
    stale = [
        ("ticket.stale", ticket_id, instant + times * THRESHOLD)
        for ticket_id, instant in created.items()
        for times in range(1, (now - instant) // THRESHOLD + 1)
    ]
    mornings = {
        entity_id: datetime.datetime.combine(day + DAY, datetime.time(6), datetime.UTC)
        for entity_id, day in scheduled.items()
    }
    stale += [("inspection.stale", entity_id, morning) for entity_id, morning in mornings.items() if morning <= now]
    return sorted(stale, key=lambda due: due[2])


async def _faults(harness: Harness, company: Company, expected: list[Due], now: datetime.datetime) -> list[str]:
    """Sentences about events that are missing, doubled, early or late, or have not been delivered."""
    sql = "SELECT event, entity_id, occurred_at, event_id::text FROM event WHERE company_id = $1 ORDER BY occurred_at"
    fired = [tuple(row) for row in await harness.query("svc-webhooks", sql, company.company_id)]
    faults = []
    not_expected = list(fired)
    for key, entity_id, due in expected:
        match = next(
            (event for event in not_expected if event[:2] == (key, entity_id) and due <= event[2] < due + RESTART), None
        )
        if match is None:
            faults.append(f"{key} of {entity_id}, due at {due}, did not fire")
        else:
            not_expected.remove(match)
    faults += [
        f"{key} of {entity_id} fired at {instant} without being due" for key, entity_id, instant, _ in not_expected
    ]
    assert isinstance(harness.receiver, Receiver)
    arrived = {delivery.json["event_id"] for delivery in harness.receiver.at(HOOK)}
    # A delivery waits for the next slot of sweeps, which are a day apart where tests ask for each sweep.
    faults += [
        f"event {event_id} has not arrived"
        for _, _, instant, event_id in fired
        if instant < now - DAY - RESTART and event_id not in arrived
    ]
    return faults


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="make soak-clock", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        server_folder() as folder,
        Receiver(folder) as receiver,
        running_harness(Path(folder), receiver, fsync=True) as harness,
    ):
        run = advanced(harness, seed=options.seed, kills=options.kills, apart_seconds=APART_SECONDS)
        result = asyncio.run(run)
    sys.stdout.write(str(result))
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
