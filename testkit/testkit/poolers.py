"""Debian's servers as platforms have them: PostgreSQL with TLS, and PgBouncer before a server. On loopback alone."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from makeready_local import certificates
from makeready_local.children import LOOPBACK, Child, free_port
from makeready_local.postgres import ENVIRONMENT, SETTINGS, give, is_ready, unprivileged_account
from testkit.requirements import lacks

PASSWORD = "test"
HOST = "localhost"  # the name in the certificate; its address is not
DEBIAN = Path("/usr/lib/postgresql")
START_SECONDS = 60.0
MODES = ("session", "transaction")


class TlsPostgres:
    """Debian's PostgreSQL, which takes connections over TLS alone, with a certificate for HOST."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        """folder: an empty one, which its account may reach."""
        self._folder, self._binaries = folder, binaries
        self._account = unprivileged_account()
        self._port = free_port()
        self._child: Child | None = None
        self.certificates = certificates.made(folder, HOST)
        for path in (folder, self.certificates.key):
            give(path, self._account)
        (folder / "password").write_text(PASSWORD)
        program = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "postgres", "--no-sync"]
        program += [f"--pwfile={folder / 'password'}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
        initdb = Child("initdb", program, log=folder / "log", environment=ENVIRONMENT, account=self._account)
        assert initdb.wait(START_SECONDS) and initdb.exit_code == 0, (folder / "log").read_text()
        rules = "".join(f"hostssl {database} all all scram-sha-256\n" for database in ("all", "replication"))
        (folder / "data" / "pg_hba.conf").write_text(rules)

    @property
    def url(self) -> str:
        """The administrative URL."""
        return f"postgresql://postgres:{PASSWORD}@{HOST}:{self._port}/postgres{self.parameters}"

    @property
    def parameters(self) -> str:
        """Those of its URLs: the certificate is verified, and the name in it."""
        return f"?sslmode=verify-full&sslrootcert={self.certificates.authority}"

    def start(self) -> None:
        files = self.certificates
        settings = SETTINGS | {"port": str(self._port), "fsync": "off", "ssl": "on", "log_timezone": "UTC"}
        settings |= {"ssl_cert_file": str(files.certificate), "ssl_key_file": str(files.key)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        data = self._folder / "data"
        (data / "postmaster.pid").unlink(missing_ok=True)
        program = [str(self._binaries / "postgres"), "-D", str(data), *options]
        log = self._folder / "log"
        self._child = child = Child("postgres", program, log=log, environment=ENVIRONMENT, account=self._account)
        _wait(child, lambda: is_ready(data, child.pid))

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(signal.SIGINT, 30)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()


class PgBouncer:
    """PgBouncer before a server, for every database and role of it. Its clients use TLS if the server's do."""

    def __init__(self, folder: Path, server_url: str, mode: str, *, files: certificates.Files | None = None) -> None:
        """server_url: of the superuser. mode: one of MODES. files: the server's certificate, if it uses TLS."""
        self.mode, self._files = mode, files
        self._account = unprivileged_account()
        self._port = free_port()
        self._folder = folder
        server = urlsplit(server_url)
        self._server = f"{HOST if files else server.hostname}:{server.port}"
        self.settings = {
            "listen_addr": LOOPBACK,
            "listen_port": str(self._port),
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": str(folder / "users.txt"),
            "auth_user": "postgres",
            "pool_mode": mode,
            "default_pool_size": "60",
            "max_client_conn": "400",
            # Without a server a statement fails after this many seconds, and not when its caller has given up.
            "query_wait_timeout": "5",
            "server_login_retry": "1",
        }
        if files is not None:
            self.settings |= {
                "server_tls_sslmode": "verify-full",
                "server_tls_ca_file": str(files.authority),
                "client_tls_sslmode": "require",
                "client_tls_cert_file": str(files.certificate),
                "client_tls_key_file": str(files.key),
            }
        (folder / "users.txt").write_text(f'"postgres" "{server.password}"\n')
        self._databases = f"[databases]\n* = host={self._server.replace(':', ' port=')}\n"
        self._child: Child | None = None

    def start(self) -> None:
        lines = "".join(f"{name} = {value}\n" for name, value in self.settings.items())
        (self._folder / "pgbouncer.ini").write_text(f"{self._databases}[pgbouncer]\n{lines}")
        program = [_pgbouncer(), str(self._folder / "pgbouncer.ini")]
        log = self._folder / "pgbouncer.log"
        self._child = Child("pgbouncer", program, log=log, environment=ENVIRONMENT, account=self._account)
        _wait(self._child, self._answers)

    def stop(self) -> None:
        if self._child is not None:
            # It stores nothing, so it is killed. Newer releases wait for clients after SIGTERM. One that a script
            # started in the background ignores SIGQUIT, and took 20 s until it was killed after it.
            self._child.kill()

    def set_itself(self, statement: str) -> None:
        """From its next start on it runs the statement on each new connection of the server."""
        self._databases = f"{self._databases.rstrip()} connect_query='{statement}'\n"

    def url(self, direct_url: str) -> str:
        """The same role and database through the pooler."""
        return _at(direct_url, f"{HOST if self._files else LOOPBACK}:{self._port}")

    def direct_url(self, url: str) -> str:
        """The same role and database at the server itself."""
        return _at(url, self._server)

    def environment(self, direct_url: str) -> dict[str, str]:
        """The settings of a process that goes through the pooler."""
        return {
            "MAKEREADY_DATABASE_URL": self.url(direct_url),
            "MAKEREADY_DATABASE_DIRECT_URL": direct_url,
            "MAKEREADY_DATABASE_POOLER": self.mode,
        }

    def _answers(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self._port), timeout=1).close()
        except OSError:
            return False
        return True


@contextmanager
def tls_postgres(folder: Path) -> Iterator[TlsPostgres]:
    """The server, running, in a new folder below `folder`; skips the test without Debian's package."""
    programs = sorted(DEBIAN.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not programs:
        lacks("postgresql-tls", "Debian's package postgresql, which has TLS, is not installed")
    place = folder / "tls-postgres"
    place.mkdir()
    server = TlsPostgres(place, programs[-1].parent)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def pgbouncer(
    folder: Path, server_url: str, mode: str, *, files: certificates.Files | None = None
) -> Iterator[PgBouncer]:
    """See `PgBouncer`; running, in a new folder below `folder`."""
    place = folder / f"pgbouncer-{mode}"
    place.mkdir()
    pooler = PgBouncer(place, server_url, mode, files=files)
    pooler.start()
    try:
        yield pooler
    finally:
        pooler.stop()


def _at(url: str, place: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.partition('@')[0]}@{place}").geturl()


def version() -> tuple[int, int]:
    """PgBouncer's. Skips the test if there is none."""
    output = subprocess.run([_pgbouncer(), "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    major, minor = output.split()[1].split(".")[:2]
    return int(major), int(minor)


def _pgbouncer() -> str:
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    return program or lacks("pgbouncer", "the program pgbouncer is not installed")


def _wait(child: Child, is_ready_now: object) -> None:
    assert callable(is_ready_now)
    deadline = time.monotonic() + START_SECONDS
    while not is_ready_now():
        assert child.alive and time.monotonic() < deadline, child.last_words()
        time.sleep(0.02)
