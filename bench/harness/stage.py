"""Both sides running on the same rows, found to answer alike, and stopped at the end whatever happens."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.alike import Both
from harness.load import Client
from harness.rest import Rest, start_twice
from harness.seed import Seeded, Sizes, fill_ours, fill_peer
from harness.sides import Ours, Peer, Side


@dataclass(frozen=True)
class Stage:
    """sides: ours first. compared: how many tickets were the same on both."""

    ours: Ours
    sides: tuple[Side, Side]
    seeded: Seeded
    compared: int
    rest: Rest


@asynccontextmanager
async def stage(folder: Path, sizes: Sizes, say: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Raises LocalError where a side does not start, DifferentError where they do not answer alike."""
    ours, peer = Ours(folder), Peer(folder)
    with ExitStack() as stopping:
        say("Starting Makeready and the peer, each with its own PostgreSQL ...")
        stopping.callback(ours.stop)
        our_side, rest = await start_twice(ours)
        stopping.callback(peer.stop)
        peer.start_database()
        peer_side = await peer.start(ours.links_url)
        say("Importing, and copying the rows to the peer ...")
        seeded = await fill_ours(ours, sizes, folder)
        await fill_peer(ours, peer.database_url, seeded)
        async with Client(our_side.base_url, 1) as mine, Client(peer_side.base_url, 1) as other:
            compared = await Both(mine, other, seeded).check()
        say(f"Both answer alike: {compared} tickets, a create, changes, replays, refusals.")
        yield Stage(ours, (our_side, peer_side), seeded, compared, rest)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the run, gone after it; others may enter, for PostgreSQL is another user where we are root."""
    folder = Path(tempfile.mkdtemp(prefix="makeready-bench-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
