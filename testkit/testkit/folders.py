"""Folders of a test run, deleted at its end, or by the next run if this one is killed."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER_PREFIX = "makeready-test-"


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that other users may enter (PostgreSQL's user, if the tests run as root); deleted at the end.

    First it deletes the folders of killed sessions: no process holds their lock.
    """
    for old in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        try:
            with (old / "lock").open() as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
        except OSError:
            continue
    made = Path(tempfile.mkdtemp(prefix=f"new-{FOLDER_PREFIX}"))
    made.chmod(0o711)
    with (made / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        folder = made.rename(made.with_name(made.name.removeprefix("new-")))  # locked before it is visible
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
