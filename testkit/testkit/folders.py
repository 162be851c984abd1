"""Folders of a test run, deleted at its end, or by the next run if this one is killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER_PREFIX = "makeready-test-"
MEMORY = Path("/dev/shm")
MEMORY_ROOM_BYTES = 6 * 1024**3  # of which the shards of a run use less than two


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that other users may enter (PostgreSQL's user, if the tests run as root); deleted at the end.

    First it deletes the folders of killed sessions: no process holds their lock.
    """
    root = folder_root()
    for old in root.glob(f"{FOLDER_PREFIX}*"):
        try:
            with (old / "lock").open() as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
        except OSError:
            continue
    new_folder = Path(tempfile.mkdtemp(prefix=f"new-{FOLDER_PREFIX}", dir=root))
    new_folder.chmod(0o711)
    with (new_folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # It is locked before it is visible.
        folder = new_folder.rename(new_folder.with_name(new_folder.name.removeprefix("new-")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def folder_root() -> Path:
    """Where the folders are: in memory where there is room, unless TMPDIR names a place.

    A database cluster has thousands of files. To copy one costs 2 s of CPU on a disk, a tenth of that in memory.
    """
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and memory_room_bytes() >= MEMORY_ROOM_BYTES:
        return MEMORY
    return Path(tempfile.gettempdir())


def memory_room_bytes() -> int:
    """What may be written to MEMORY: the least of its own room, the machine's and the control group's."""
    rooms = [shutil.disk_usage(MEMORY).free]
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        rooms.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")))
    with suppress(OSError, ValueError):  # no control group, or one without a limit
        group = Path("/sys/fs/cgroup")
        rooms.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return min(rooms)
