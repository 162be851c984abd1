"""`make bench`: starts both sides, checks that they answer alike, measures, writes docs/performance.md."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from gateway.cli.failures import Failed
from harness import report
from harness.alike import Both, DifferentError
from harness.load import Client, LoadError
from harness.measure import Result, pairs
from harness.seed import Sizes, fill_ours, fill_peer
from harness.sides import Ours, Peer, Side
from harness.workloads import WORKLOADS
from makeready_local.children import LocalError

CONNECTIONS = 16
PAIRS_MIN = 3
DOCS = Path(__file__).parents[2] / "docs" / "performance.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of blocks a workload (default 5, at least 3)")
    parser.add_argument("--seconds", type=float, default=200, help="start no further pair after so long (default 200)")
    parser.add_argument("--only", choices=[one.name for one in WORKLOADS], help="one workload; writes no page")
    parser.add_argument("--no-page", action="store_true", help="print the tables, write nothing")
    return parser.parse_args()


async def run(given: argparse.Namespace, folder: Path) -> None:
    """The whole run, in a folder of its own."""
    # A kill is a Ctrl-C: what was started is stopped.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: os.kill(os.getpid(), signal.SIGINT))
    started = time.monotonic()
    sizes = Sizes()
    ours, peer = Ours(folder), Peer(folder)
    with ExitStack() as stopping:
        say("Starting Makeready and the peer, each with its own PostgreSQL ...")
        stopping.callback(ours.stop)
        our_side = await ours.start()
        stopping.callback(peer.stop)
        peer.start_database()
        peer_side = await peer.start(ours.links_url)
        say("Importing, and copying the rows to the peer ...")
        seeded = await fill_ours(ours, sizes, folder)
        await fill_peer(ours, peer.database_url, seeded)
        sides: tuple[Side, Side] = (our_side, peer_side)
        async with Client(our_side.base_url, 1) as mine, Client(peer_side.base_url, 1) as other:
            compared = await Both(mine, other, seeded).check()
        say(f"Both answer alike: {compared} tickets, a create, its replay, refusals.")

        measuring = time.monotonic()

        def go_on(done: int) -> bool:
            late = time.monotonic() - measuring > given.seconds
            say(f"Pairs measured: {done}") if done else None
            return done < max(given.pairs, PAIRS_MIN) and (done < PAIRS_MIN or not late)

        chosen = tuple(one for one in WORKLOADS if given.only in (None, one.name))
        results = await pairs(sides, chosen, seeded, CONNECTIONS, go_on)
        tell(results, report.Run(sizes, CONNECTIONS, compared, time.monotonic() - started), given)


def tell(results: list[Result], about: report.Run, given: argparse.Namespace) -> None:
    say(f"\n{report.machine()}\n\n{report.table(results)}\n\n{report.by_process(results)}")
    if given.only is None and not given.no_page:
        DOCS.parent.mkdir(exist_ok=True)
        DOCS.write_text(report.page(results, about))
        say("\nWrote docs/performance.md.")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    given = arguments()
    folder = Path(tempfile.mkdtemp(prefix="makeready-bench-"))
    folder.chmod(0o711)  # PostgreSQL runs as another user where we are root
    try:
        asyncio.run(run(given, folder))
    except KeyboardInterrupt:
        say("Stopped.")
        return 130
    except (LocalError, LoadError, DifferentError, Failed, OSError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
