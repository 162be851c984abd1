"""All sides running on the same rows, checked to answer alike, and stopped at the end in any case."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.alike import Alike
from harness.idle import Idle, start_twice
from harness.load import Client
from harness.seed import Seeded, Sizes, fill_ours, fill_peer
from harness.sides import PEERS, LeftOutError, Ours, Peer, PeerKind, Side


@dataclass(frozen=True)
class Stage:
    """sides: Makeready first, then the usual peer. compared: the number of tickets that were equal on all of them.
    left_out: by name, why a peer is not among them."""

    ours: Ours
    sides: list[Side]
    seeded: Seeded
    compared: int
    idle: Idle
    left_out: Mapping[str, str]


@asynccontextmanager
async def stage(
    folder: Path, sizes: Sizes, say: Callable[[str], None], kinds: Sequence[PeerKind] = PEERS
) -> AsyncIterator[Stage]:
    """Starts, seeds and compares all sides. Raises LocalError if one does not start, DifferentError if they differ."""
    ours = Ours(folder)
    peers: list[Peer] = []
    left_out: dict[str, str] = {}
    async with AsyncExitStack() as stopping:
        say("Starting Makeready and its peers, each with its own PostgreSQL ...")
        stopping.callback(ours.stop)
        our_side, idle = await start_twice(ours)
        sides = [our_side]
        for kind in kinds:
            peer = Peer(folder, kind)
            stopping.callback(peer.stop)
            try:
                sides.append(await peer.start(ours.links_url))
                peers.append(peer)
            except LeftOutError as reason:
                left_out[kind.name] = str(reason)
                say(f"The peer on {kind.name} is left out: {reason}.")
        say("Importing, and copying the rows to the peers ...")
        seeded = await fill_ours(ours, sizes, folder)
        for peer in peers:
            await fill_peer(ours, peer.database_url, seeded)
        async with AsyncExitStack() as clients:
            compared = await Alike(
                [await clients.enter_async_context(Client(side.base_url, 1)) for side in sides], seeded
            ).check()
        say(f"All answer alike: {compared} tickets, a create, changes, replays, refusals.")
        yield Stage(ours, sides, seeded, compared, idle, left_out)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the run, deleted after it; others may enter it, because as root PostgreSQL runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix="makeready-bench-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
