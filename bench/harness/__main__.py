"""`make bench`: starts all sides, checks that they answer alike, measures, writes the pages of docs that say so."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from harness import capacity, deliveries, depth, idle, picture, readings, report
from harness.alike import DifferentError
from harness.cpu import Machine
from harness.load import LoadError
from harness.measure import SHARES, Result, rounds
from harness.seed import Sizes
from harness.stage import scratch, stage
from harness.workloads import WORKLOADS
from makeready_cli.errors import CommandError
from makeready_local.children import LocalError

ROUNDS_MIN = 3
DELIVERY_PAIRS = 5
READINGS, DELIVERIES, DEPTH = "readings", "deliveries", "depth"
DOCS = Path(__file__).parents[2] / "docs"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of blocks a workload (default 7, at least 3)")
    parser.add_argument("--seconds", type=float, default=420, help="start no further round after so long (default 420)")
    names = [*(workload.name for workload in WORKLOADS), READINGS, DELIVERIES, DEPTH]
    parser.add_argument(
        "--only", choices=names, help="one workload, the imports, the deliveries, or the depth with docs/plans.md"
    )
    parser.add_argument("--no-page", action="store_true", help="print the tables, write nothing")
    return parser.parse_args()


async def run(options: argparse.Namespace, folder: Path) -> None:
    """The whole run, in a folder of its own."""
    # SIGTERM acts like a Ctrl-C: everything that was started is stopped.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: os.kill(os.getpid(), signal.SIGINT))
    started = time.monotonic()
    sizes = Sizes()
    async with stage(folder, sizes, say) as ready:
        measuring = time.monotonic()
        machine = Machine([pid for side in ready.sides for pid in side.roots.values()])

        def go_on(done: int) -> bool:
            seconds = time.monotonic() - measuring
            if done:
                say(f"{done} rounds measured in {seconds:.0f} s")
            return done < max(options.rounds, ROUNDS_MIN) and (done < ROUNDS_MIN or seconds < options.seconds)

        chosen = tuple(workload for workload in WORKLOADS if options.only in (None, workload.name))
        results = await rounds(ready.sides, chosen, ready.seeded, go_on) if chosen else []
        busy = machine.share_of_others()
        with_readings = options.only in (None, READINGS)
        imports = await readings.measure(ready.ours, ready.sides[0].roots, folder) if with_readings else []
        sent = None
        if options.only in (None, DELIVERIES):
            say("Delivering ...")
            sent = await deliveries.measure(
                ready.ours, ready.sides[0], ready.seeded, folder, lambda done: done < DELIVERY_PAIRS
            )
        deep = depth.Deep(0, [], "")
        if options.only in (None, DEPTH):
            say("Adding a million tickets ...")
            deep = await depth.measure(ready.ours, ready.sides[0], ready.seeded)
    seconds = time.monotonic() - started
    about = report.Run(sizes, SHARES, ready.left_out, ready.compared, seconds, busy, ready.idle, deep)
    tell(results, imports, sent, about, options)


def tell(
    results: list[Result],
    imports: list[readings.Imported],
    sent: deliveries.Delivered | None,
    about: report.Run,
    options: argparse.Namespace,
) -> None:
    say(f"\n{report.machine()}; {report.others(about.busy)}")
    if results:
        for connections in about.shares:
            say(f"\n{report.table(results, connections)}")
        say(f"\n{report.rates(results)}\n\n{report.by_process(results)}")
    if imports:
        say(f"\n{readings.table(imports)}")
    if sent:
        say(f"\n{deliveries.table(sent)}")
    if about.deep.pages:
        say(f"\n{depth.table(about.deep)}")
    first, second = about.idle.seconds
    say(f"\n{idle.table(about.idle)}\n\nFirst start {first:.1f} s, second {second:.1f} s.")
    pages = {}
    if about.deep.pages:
        pages["plans.md"] = report.plans(about)
    if sent and options.only is None:
        pages["performance.md"] = report.page(results, about, imports, sent)
        pages["performance.svg"] = picture.draw(results)
        pages["capacity.md"] = capacity.filled((DOCS / "capacity.md").read_text(), results, imports, sent)
    if not options.no_page:
        for name, text in pages.items():
            (DOCS / name).write_text(text)
            say(f"\nWrote docs/{name}.")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    options = arguments()
    try:
        with scratch() as folder:
            asyncio.run(run(options, folder))
    except KeyboardInterrupt:
        say("Stopped.")
        return 130
    except (LocalError, LoadError, DifferentError, CommandError, OSError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
