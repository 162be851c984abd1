"""Files that take seconds of CPU to make, made once in a run of the suite and copied: a database cluster, a STATE_DIR.

The runs of pytest that `make test` starts share `MAKEREADY_TEST_CACHE`; any other run has a folder of its own.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from makeready_local.databases import close_own_databases, execute
from makeready_local.postgres import Postgres
from testkit.folders import server_folder
from testkit.processes import Process, free_port
from testkit.warm import SOCKET, warm_parent

PASSWORD = "test"
# Killed processes lose no written data without fsync; only a machine that stops does. More iterations make a stolen
# verifier of a password slow to guess; they took a quarter of the CPU of each connection that a test makes.
UNSAFE = {"fsync": "off", "scram_iterations": "1"}
GREETING = "Ctrl-C stops everything"
START_SECONDS = 240.0
CACHE = "MAKEREADY_TEST_CACHE"
_until_exit = ExitStack()
atexit.register(_until_exit.close)


def cache() -> Path:
    """The folder of this run; other users may enter it, as PostgreSQL's must."""
    if CACHE not in os.environ:
        os.environ[CACHE] = str(_until_exit.enter_context(server_folder()))
    return Path(os.environ[CACHE])


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The cache's folder of this name. `make` fills it where it is missing; another run waits meanwhile."""
    folder = cache() / name
    with locked(cache() / f"{name}.lock"):
        if not folder.exists():
            partial = cache() / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
            make(partial)
            partial.rename(folder)
    return folder


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def copy(source: Path, target: Path) -> None:
    """Copies a folder with its owners and modes; `cp` shares the blocks where the file system can."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(target)], check=True)


def prepare_cluster(folder: Path) -> Postgres:
    """A PostgreSQL server on data of its own in the folder, not started; initdb has run once for all of them."""
    if not (folder / "postgres").exists():
        copy(made_once("cluster", _make_cluster), folder / "postgres")
    return Postgres(folder / "postgres", PASSWORD, log=folder / "postgres.log", settings=UNSAFE)


def _make_cluster(folder: Path) -> None:
    server = Postgres(folder, PASSWORD, log=folder.with_name("cluster.log"), settings=UNSAFE)
    server.start()
    close_own_databases(server.url)
    execute(server.url, f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")  # initdb's has all iterations
    server.stop()


def prepare_state(folder: Path, *, demo: bool = False) -> None:
    """Makes `folder` a STATE_DIR as a first `make run` leaves it after a stop; demo: with the demo company.

    Each copy has the same keys, passwords and ids. The folders above must be open to PostgreSQL's user, see
    `testkit.plugin.server_folder`. A test of the first start itself does not use this.
    """
    copy(made_once("state-demo", _make_demo) if demo else made_once("state", _make_state), folder)


def _make_state(folder: Path) -> None:
    _run_once(folder, MAKEREADY_DEMO="0")


def _make_demo(folder: Path) -> None:
    prepare_state(folder)
    _run_once(folder)


def _run_once(folder: Path, **settings: str) -> None:
    """Starts `makeready_local` on the folder and stops it as soon as it is ready."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKEREADY_", "WEBHOOKS_"))
    }
    environment |= {
        "MAKEREADY_STATE_DIR": str(folder),
        "MAKEREADY_API_PORT": str(free_port()),
        "MAKEREADY_ADMIN_PORT": str(free_port()),
        SOCKET: warm_parent().address,
        **settings,
    }
    command = [sys.executable, "-P", "-m", "testkit.warm_runner"]
    runner = Process(command, folder.with_name(f"{folder.name}.output"), environment, own_session=True, warm=True)
    runner.launch()
    runner.wait_until(lambda: GREETING in runner.log_tail(), START_SECONDS)
    assert runner.end(signal.SIGINT, 60) == 0, runner.log_tail()
