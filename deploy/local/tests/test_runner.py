"""The runner with the real services: started, stopped, interrupted, killed; then checked for remains."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import asyncpg
import pytest

from makeready_local import config, runner
from makeready_local.children import LocalError
from testkit.plugin import server_folder
from testkit.prepared import prepare_cluster
from testkit.processes import free_port

from .installation import WARM_RUNNER, System, wait_for

CONTEXTS = ("gateway", "catalog", "tickets", "occupancy", "webhooks")


def test_a_service_that_dies_is_named_and_everything_stops(stopped: System) -> None:
    stopped.started(MAKEREADY_DEMO="0")
    os.kill(stopped.read("runtime.json")["processes"]["svc-tickets"]["pid"], signal.SIGKILL)
    assert stopped.runner is not None
    assert stopped.runner.wait(60) == 1
    assert "svc-tickets stopped (killed by SIGKILL); see " in stopped.one_line()
    assert stopped.remains() == []


def test_a_killed_runner_leaves_nothing_and_the_next_start_works(stopped: System) -> None:
    stopped.started(MAKEREADY_DEMO="0")
    stopped.stop(signal.SIGKILL)
    stopped.started(MAKEREADY_DEMO="0")
    assert stopped.stop() == 0
    assert stopped.remains() == []


def test_a_port_that_is_free_a_moment_later_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway of a killed runner holds its port until the kernel has ended it."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        settings = config.read(
            {
                "MAKEREADY_STATE_DIR": str(tmp_path),
                "MAKEREADY_API_PORT": str(port),
                "MAKEREADY_ADMIN_PORT": str(free_port()),
            }
        )
        releasing = threading.Timer(0.3, holder.close)
        releasing.start()
        runner.wait_for_ports(settings)
        releasing.join()
    monkeypatch.setattr(runner, "PORTS_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", port)), pytest.raises(LocalError, match=f"port {port} on .* is in use"):
        runner.wait_for_ports(settings)


def test_a_ctrl_c_while_modules_are_imported_shows_no_stack_trace() -> None:
    for module, imported in (
        ("makeready_local", "makeready_local.runner"),
        ("makeready_cli", "makeready_cli.commands.companies"),
    ):
        code = f"""
import os, runpy, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {imported!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["makeready", "company", "list"]
runpy.run_module({module!r}, run_name="__main__")
"""
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, timeout=30, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_an_absent_nats_is_reported(stopped: System) -> None:
    stopped.started(MAKEREADY_DEMO="0", MAKEREADY_NATS_URL=f"nats://127.0.0.1:{free_port()}")
    assert "MAKEREADY_NATS_URL does not answer" in stopped.terminal.read_text()
    assert stopped.stop() == 0


def test_two_installations_share_a_server_by_their_prefixes(system: System) -> None:
    """Each with its own databases, roles and companies; and the services' roles may not change the audit log."""
    with server_folder() as folder:
        server = prepare_cluster(folder)
        server.start()
        other = System(folder / "south", runner=WARM_RUNNER)
        try:
            for installation, prefix in ((system, "north_"), (other, "south_")):
                installation.started(
                    MAKEREADY_DEMO="0", MAKEREADY_DATABASE_URL=server.url, MAKEREADY_DATABASE_PREFIX=prefix
                )
            assert system.makeready("company", "create", "Maple Homes")["company_id"] == 1
            assert other.makeready("company", "create", "Cedar Homes")["company_id"] == 1
            for installation, name in ((system, "Maple Homes"), (other, "Cedar Homes")):
                assert [company["name"] for company in installation.makeready("company", "list")["companies"]] == [name]
            names, limits = asyncio.run(databases_and_limits(server.url))
            assert names == {f"{prefix}{name}" for prefix in ("north_", "south_") for name in (*CONTEXTS, "console")}
            assert {limits[name] for name in names} == {40}
            assert {limits[f"{name}_owner"] for name in names} == {10}
            for installation in (system, other):
                assert installation.stop() == 0
        finally:
            if other.runner is not None:
                other.runner.kill()
                wait_for(lambda: other.remains() == [], 30)
            server.stop()


async def databases_and_limits(url: str) -> tuple[set[str], dict[str, int]]:
    """The databases in addition to the server's own, and the connection limit of each role."""
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch("SELECT datname FROM pg_database WHERE datname !~ '^(postgres|template.)$'")
        roles = await connection.fetch("SELECT rolname, rolconnlimit FROM pg_roles")
    finally:
        await connection.close()
    return {row[0] for row in names}, dict(map(tuple, roles))


def test_a_second_runner_is_refused(stopped: System) -> None:
    stopped.started(MAKEREADY_DEMO="0")
    second = System(stopped.folder)
    terminal = stopped.terminal.read_text()
    assert second.start().wait(30) == 1
    assert f"another Makeready (process {stopped.runner.pid})" in second.one_line()  # type: ignore[union-attr]
    stopped.terminal.write_text(terminal)
    with urllib.request.urlopen(f"http://127.0.0.1:{stopped.ports[0]}/readyz", timeout=60) as response:
        assert response.status == 200
    assert stopped.stop() == 0


@pytest.mark.parametrize("port", [0, 1])
def test_a_port_in_use_is_named(stopped: System, port: int) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # free_port() reserves it otherwise
        taken.bind(("127.0.0.1", stopped.ports[port]))
        taken.listen()
        assert stopped.start().wait(30) == 1
    assert f"port {stopped.ports[port]}" in stopped.one_line()
    assert stopped.remains() == []


@pytest.mark.parametrize(
    ("settings", "status", "words"),
    [
        ({"MAKEREADY_API_PORT": "no"}, 2, "MAKEREADY_API_PORT"),
        ({"MAKEREADY_API_PORT": "9" * 5000}, 2, "MAKEREADY_API_PORT"),
        ({"MAKEREADY_API_HOST": "nowhere.invalid"}, 2, "MAKEREADY_API_HOST"),
        ({"MAKEREADY_API_HOST": "x" * 70}, 2, "MAKEREADY_API_HOST"),
        ({"MAKEREADY_API_URL": "http://here/api/v1?x=1"}, 2, "MAKEREADY_API_URL"),
        ({"MAKEREADY_LINKS_URL": "https://he re/"}, 2, "MAKEREADY_LINKS_URL"),
        ({"MAKEREADY_STATE_DIR": "~nobody-of-that-name/state"}, 2, "MAKEREADY_STATE_DIR"),
        ({"MAKEREADY_DEMO": "yes"}, 2, "MAKEREADY_DEMO"),
        ({"MAKEREADY_NATS_URL": "http://here"}, 2, "MAKEREADY_NATS_URL"),
        ({"MAKEREADY_LOG_LEVEL": "loud"}, 2, "MAKEREADY_LOG_LEVEL"),
        ({"WEBHOOKS_SWEEP_SECONDS": "never"}, 2, "WEBHOOKS_SWEEP_SECONDS"),
        ({"MAKEREADY_STATE_DIR": "/proc/nothing"}, 1, "/proc/nothing"),
        ({"MAKEREADY_DATABASE_URL": "postgresql://a:b@127.0.0.1:1/c"}, 1, "127.0.0.1:1"),
        ({"MAKEREADY_DATABASE_PREFIX": "North-"}, 2, "MAKEREADY_DATABASE_PREFIX must be"),
        ({"MAKEREADY_DATABASE_ROLE_CONNECTIONS": "1"}, 2, "MAKEREADY_DATABASE_ROLE_CONNECTIONS must be"),
    ],
)
def test_an_error_is_reported_in_one_line(stopped: System, settings: dict[str, str], status: int, words: str) -> None:
    assert stopped.start(**settings).wait(60) == status
    assert words in stopped.one_line()
    assert stopped.remains() == []
