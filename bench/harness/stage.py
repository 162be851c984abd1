"""Both sides running on the same rows, checked to answer alike, and stopped at the end in any case."""

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
    """sides: Makeready first. compared: the number of tickets that were equal on both."""

    ours: Ours
    sides: tuple[Side, Side]
    seeded: Seeded
    compared: int
    rest: Rest


@asynccontextmanager
async def stage(folder: Path, sizes: Sizes, say: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Starts, seeds and compares both sides. Raises LocalError if one does not start, DifferentError if they differ."""
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
    """A folder for the run, deleted after it; others may enter it, because as root PostgreSQL runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix="makeready-bench-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
