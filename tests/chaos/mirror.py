"""`make soak-copies`: copies of a company's records stay equal to the lists, to the byte, whatever is killed.

Writers change records of all nine kinds over the API, by files and as people do, with renames, old instants and
inspections that leave and come back. One copy follows `/changes` from the beginning; the others are the guide's program
(docs/sync/copy.py) and the Mirror of the TypeScript client, which are killed too. Stops by itself; ends with 1 where a
record differs.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import server_folder

from .harness import Harness, running_harness
from .mirror_copies import KINDS, Follower, Program, Reader, Records, TypeScriptProgram, differences, equal_at_last
from .mirror_writers import Writers
from .soak_endpoints import listening
from .soak_kills import Killer
from .writes import Caller, connections

API_KEYS = 30
PROGRAM_KEYS = 5
WRITERS = 6
PAUSE_SECONDS = 0.6
PRODUCERS = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy")
CONSUMERS = ("svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


@dataclass
class Result:
    """One run."""

    seed: int
    lists: Records
    differences: dict[str, list[str]]
    """By copy."""
    gone: dict[str, set[int]]
    """The ids that came as gone last, by kind."""
    written: Counter[str]
    kills: Counter[str]
    program_kills: dict[str, int]
    pages: int
    changes: int
    expired: int
    """How often a cursor had expired."""
    rebuilds: int
    """How often the rebuild that ends cursors was sent: again where its answer was lost."""

    def __str__(self) -> str:
        records = ", ".join(f"{len(self.lists[kind])} {kind}" for kind in KINDS)
        lines = [
            f"seed {self.seed}; {records}; {self.changes} changes in {self.pages} pages, {self.expired} expired cursors"
        ]
        lines.append("kills: " + ", ".join(f"{count} {who}" for who, count in sorted(self.kills.items())))
        lines += [f"kills of {name}: {count}" for name, count in self.program_kills.items()]
        lines += [f"{count:8} {activity}" for activity, count in sorted(self.written.items())]
        for name, differing in self.differences.items():
            lines += [f"{len(differing)} records of {name} differ", *differing[:10]]
        return "\n".join(lines) + "\n"


async def mirrored(
    harness: Harness,
    folder: Path,
    *,
    seed: int,
    kills: int,
    apart_seconds: tuple[float, float],
    settle_seconds: float = 90,
    seconds: float = float("inf"),
) -> Result:
    """One run: writers write until so many kills are done, or the seconds are over."""
    chance = random.Random(seed)
    async with connections() as session:
        caller = Caller(harness, await harness.company("Mirror"), session)
        await caller.mint(API_KEYS)
        reader = Reader(harness, session, [caller.api_key() for _ in range(API_KEYS)])
        writers = Writers(harness, caller, random.Random(seed + 1))
        killer = Killer(harness, random.Random(seed + 2), apart_seconds)
        follower = Follower(reader, random.Random(seed + 3))
        programs = [
            kind(folder, harness.system.base_url, [await harness.key(caller.company) for _ in range(keys)])
            for kind, keys in ((Program, 1), (TypeScriptProgram, PROGRAM_KEYS))
        ]
        copying = []
        try:
            await writers.found()
            copying = [asyncio.create_task(follower.run())]
            running = []
            for program in programs:
                program.start()
                running.append(asyncio.create_task(program.run(chance, (apart_seconds[0] * 3, apart_seconds[1] * 5))))
            killing = asyncio.create_task(killer.run(kills))
            copying += [*running, killing]
            ended = asyncio.Event()
            writing = asyncio.create_task(writers.run(WRITERS, PAUSE_SECONDS, ended))
            copying.append(writing)
            await asyncio.wait({killing, writing}, timeout=1.5 * apart_seconds[1])
            await asyncio.wait_for(follower.begun["tickets"].wait(), PATIENCE_SECONDS)
            await writers.rebuild_replicas()
            await asyncio.wait({killing, writing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            killing.cancel()
            ended.set()
            await writing
            await killer.rest()
            await harness.mend()
            for task in running:
                task.cancel()  # the programs run on
            for name in PRODUCERS:
                await harness.relay_rests(name)
            for name in CONSUMERS:
                await harness._catch_up(name)
            lists, differing = await equal_at_last(reader.listed, follower, programs, settle_seconds)
            await harness.clear_documents()
            differing["the lists rendered anew"] = differences(await reader.listed(), lists)
            for task in copying:
                assert not task.done() or task.cancelled() or task.exception() is None, task.exception()
        finally:
            for task in copying:
                task.cancel()
            await asyncio.gather(*copying, return_exceptions=True)
            for program in programs:
                program.kill()
            await writers.close()
    return Result(
        seed,
        lists,
        differing,
        follower.gone,
        writers.answers,
        killer.by_process(),
        {program.name: program.kills for program in programs},
        follower.pages,
        follower.changes,
        follower.expired,
        writers.asked["RebuildReplicas"] - 1,
    )


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="make soak-copies", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800, help="the writers end after so many")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say: Callable[[str], object] = sys.stdout.write
    with (
        server_folder() as folder,
        listening(folder / "endpoints") as endpoints,
        running_harness(folder, endpoints, fsync=True) as harness,
    ):
        run = mirrored(
            harness,
            folder,
            seed=options.seed,
            kills=sys.maxsize,
            apart_seconds=(2, 6),
            settle_seconds=300,
            seconds=options.seconds,
        )
        result = asyncio.run(run)
    say(str(result))
    return 1 if any(result.differences.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
