"""The runner with the real services: started, stopped, interrupted, killed; what it leaves behind is looked at."""

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from makeready_local.children import free_port
from makeready_local.postgres import Postgres
from makeready_local.testing import server_folder

READY_SECONDS = 120
SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


class System:
    """One STATE_DIR and the runners on it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.ports = free_port(), free_port()
        given = ("MAKEREADY_", "WEBHOOKS_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(given)}
        self.environment |= {
            "MAKEREADY_STATE_DIR": str(folder),
            "MAKEREADY_API_PORT": str(self.ports[0]),
            "MAKEREADY_ADMIN_PORT": str(self.ports[1]),
            **settings,
        }
        self.runner: subprocess.Popen[str] | None = None

    def start(self, **settings: str) -> subprocess.Popen[str]:
        """Starts a runner; its output lies in `terminal`."""
        with self.terminal.open("w") as output:
            self.runner = subprocess.Popen(
                [sys.executable, "-P", "-m", "makeready_local"],
                env={**self.environment, **settings},
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        return self.runner

    @property
    def terminal(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.terminal")

    def started(self, **settings: str) -> "System":
        """Starts a runner and returns when it has greeted."""
        runner = self.start(**settings)
        wait_for(lambda: "Ctrl-C stops everything" in self.terminal.read_text() or runner.poll() is not None)
        assert runner.poll() is None, self.terminal.read_text()
        return self

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Signals the runner; its exit status."""
        assert self.runner is not None
        self.runner.send_signal(number)
        return self.runner.wait(60)

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def get(self, path: str, key: str) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[0]}/api/v1{path}", headers={"Authorization": f"Bearer {key}"}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)

    def makeready(self, *words: str) -> Any:
        """What `makeready --json WORDS…` answers."""
        command = [sys.executable, "-P", "-m", "gateway.cli", "--json", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True, timeout=30)
        return json.loads(done.stdout)

    def remains(self) -> list[str]:
        """The command lines of the processes that belong to this STATE_DIR."""
        mark = os.fsencode(self.folder)
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes() or mark in (process / "cmdline").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def one_line(self) -> str:
        """The runner's last word, without any progress before it."""
        text = self.terminal.read_text()
        assert "Traceback" not in text
        complaints = [line for line in text.splitlines() if line.startswith("makeready: ")]
        assert len(complaints) == 1, text
        return complaints[0]


def wait_for(condition: Any, seconds: float = READY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


@pytest.fixture
def system() -> Iterator[System]:
    with server_folder() as folder:
        made = System(folder / 'état 台所 "$x')
        yield made
        if made.runner is not None and made.runner.poll() is None:
            made.runner.kill()
            made.runner.wait()
        wait_for(lambda: made.remains() == [], 30)


def test_the_first_start_loads_the_demo_and_a_stop_keeps_it(system: System) -> None:
    system.started()
    demo, runtime = system.read("demo.json"), system.read("runtime.json")
    assert set(demo) == {"base_url", "admin_url", "company_id", "keys", "administrator"}
    assert set(demo["keys"]) == {"read", "write", "webhook_only"}
    assert demo["base_url"] == runtime["base_url"] == f"http://127.0.0.1:{system.ports[0]}/api/v1"
    assert runtime["pid"] == system.runner.pid  # type: ignore[union-attr]
    assert set(runtime["processes"]) == {"postgres", "nats", *SERVICES}
    for name in ("demo.json", "runtime.json", "secrets.json"):
        assert stat.S_IMODE((system.folder / name).stat().st_mode) == 0o600
    line = next(line for line in system.terminal.read_text().splitlines() if line.startswith("  curl "))
    shown = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True, timeout=20)
    assert len(json.loads(shown.stdout)["data"]) == 3
    titles = {ticket["title"] for ticket in system.get("/tickets?limit=200", demo["keys"]["read"])["data"]}
    assert {"Kitchen faucet drips", "台所の蛇口から水漏れ", "المكيف لا يعمل في غرفة النوم"} <= titles
    first = system.get("/tickets?limit=200", demo["keys"]["read"])["data"]
    told = system.read("demo-story.json")

    assert system.stop() == 0
    assert system.remains() == []
    assert not (system.folder / "runtime.json").exists()
    with pytest.raises(urllib.error.URLError):
        system.get("/whoami", demo["keys"]["read"])

    began = time.monotonic()
    system.start()

    def answers() -> bool:
        try:
            return bool(system.get("/tickets?limit=200", demo["keys"]["read"])["data"] == first)
        except OSError:
            return False

    wait_for(answers)
    # The promise is 5 s on an idle machine; the tests of others may run beside this one.
    assert time.monotonic() - began < 15
    wait_for((system.folder / "runtime.json").exists)
    assert system.read("demo.json") == demo and system.read("demo-story.json") == told
    assert "demo company" not in system.terminal.read_text()
    assert system.stop(signal.SIGTERM) == 0
    assert system.remains() == []


def test_a_demo_of_an_earlier_version_gets_what_it_lacks_and_keeps_the_rest(system: System) -> None:
    folder = system.folder.with_name("rows")
    folder.mkdir()
    alder_court = {"external_id": "P-100", "name": "Alder Court", "address": "1420 Alder Street", "city": "Portland"}
    own = {"external_id": "Own", "name": "Somebody's own", "address": "1 Own Street"}
    system.started(MAKEREADY_DEMO="0")
    company = system.makeready("company", "create", "Makeready Demo")["company_id"]
    email = "old@example.com"
    system.makeready("administrator", "create", str(company), email)
    keys = {
        scope: system.makeready("key", "mint", str(company), "--scope", scope, "--administrator", email)["key"]
        for scope in ("read", "write", "webhook_only")
    }
    # A unit of the demo, by its external_id, in another property: there the demo's own cannot come any more.
    in_the_way = {"external_id": "P-100-101", "property": "Own", "name": "Somebody's own unit"}
    for kind, rows in (("properties", (alder_court, own)), ("units", (in_the_way,))):
        (folder / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        system.makeready("import", str(company), kind, str(folder / f"{kind}.jsonl"))
    assert system.stop() == 0
    demo = {"company_id": company, "keys": keys, "administrator": {"email": email, "password": "secret"}}
    (system.folder / "demo.json").write_text(json.dumps(demo))

    system.started()
    assert "Bringing the demo company up to date" in system.terminal.read_text()
    assert system.read("demo.json").items() >= demo.items()
    properties = system.get("/properties?limit=200", keys["read"])["data"]
    assert [record["external_id"] for record in properties[:2]] == ["P-100", "Own"]
    assert properties[0]["building_type"] == "Mid-rise" and len(properties) > 5
    assert system.get("/tickets", keys["read"])["data"]
    units = {unit["external_id"]: unit["name"] for unit in system.get("/units?limit=200", keys["read"])["data"]}
    assert units["P-100-101"] == "Somebody's own unit" and units["P-100-102"] == "Alder Court 102"
    assert "Left as it is in the demo company: 1 of 130 units were rejected, see " in system.terminal.read_text()
    assert system.stop() == 0
    system.started()
    assert "demo company" not in system.terminal.read_text()
    assert system.stop() == 0


def test_a_service_that_dies_is_named_and_everything_stops(system: System) -> None:
    system.started(MAKEREADY_DEMO="0")
    os.kill(system.read("runtime.json")["processes"]["svc-tickets"]["pid"], signal.SIGKILL)
    assert system.runner is not None
    assert system.runner.wait(60) == 1
    assert "svc-tickets stopped (killed by SIGKILL); see " in system.one_line()
    assert system.remains() == []


def test_a_killed_runner_leaves_nothing_and_the_next_start_works(system: System) -> None:
    system.started(MAKEREADY_DEMO="0")
    system.stop(signal.SIGKILL)
    system.started(MAKEREADY_DEMO="0")
    assert system.stop() == 0
    assert system.remains() == []


def test_a_ctrl_c_while_modules_are_imported_shows_no_stack_trace() -> None:
    for module, imported in (("makeready_local", "makeready_local.runner"), ("gateway.cli", "gateway.cli.companies")):
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


def test_a_demo_of_another_database_is_loaded_anew(system: System) -> None:
    first = system.started().read("demo.json")
    assert system.stop() == 0
    with server_folder() as folder:
        server = Postgres(folder / "postgres", "other", log=folder / "postgres.log")
        server.start()
        try:
            second = system.started(MAKEREADY_DATABASE_URL=server.url).read("demo.json")
            assert second["keys"] != first["keys"]
            assert system.get("/whoami", second["keys"]["read"])["company"]["name"] == "Makeready Demo"
            assert system.stop() == 0
            # Neither does a lost file keep the next one from being made beside what it told of.
            (system.folder / "demo.json").unlink()
            third = system.started(MAKEREADY_DATABASE_URL=server.url).read("demo.json")
            assert third["administrator"]["email"] != second["administrator"]["email"]
            for demo in (second, third):
                assert system.get("/whoami", demo["keys"]["write"])["company"]["id"] == demo["company_id"]
            assert system.stop() == 0
        finally:
            server.stop()


def test_a_nats_that_is_not_there_is_told(system: System) -> None:
    system.started(MAKEREADY_DEMO="0", MAKEREADY_NATS_URL=f"nats://127.0.0.1:{free_port()}")
    assert "Nobody answers at MAKEREADY_NATS_URL" in system.terminal.read_text()
    assert system.stop() == 0


def test_a_second_runner_is_refused(system: System) -> None:
    system.started(MAKEREADY_DEMO="0")
    second = System(system.folder)
    terminal = system.terminal.read_text()
    assert second.start().wait(30) == 1
    assert f"another Makeready (process {system.runner.pid})" in second.one_line()  # type: ignore[union-attr]
    system.terminal.write_text(terminal)
    with urllib.request.urlopen(f"http://127.0.0.1:{system.ports[0]}/readyz", timeout=10) as response:
        assert response.status == 200
    assert system.stop() == 0


def test_an_interrupted_demo_load_is_finished_at_the_next_start(system: System) -> None:
    runner = system.start()
    progress = system.folder / "demo-progress.json"
    wait_for(lambda: progress.exists() and "keys" in progress.read_text())
    runner.kill()
    runner.wait()
    assert not (system.folder / "demo.json").exists()
    system.started()
    demo = system.read("demo.json")
    assert not progress.exists()
    for key in demo["keys"].values():
        assert system.get("/whoami", key)["company"]["id"] == demo["company_id"]
    titles = [ticket["title"] for ticket in system.get("/tickets?limit=200", demo["keys"]["read"])["data"]]
    assert len(titles) > 100 and len(titles) == len(set(titles))
    assert len(system.makeready("company", "list")["companies"]) == 1
    assert system.stop() == 0


@pytest.mark.parametrize("port", [0, 1])
def test_a_port_in_use_is_named(system: System, port: int) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # free_port() keeps it for those who ask so
        taken.bind(("127.0.0.1", system.ports[port]))
        taken.listen()
        assert system.start().wait(30) == 1
    assert f"port {system.ports[port]}" in system.one_line()
    assert system.remains() == []


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
    ],
)
def test_what_is_wrong_is_told_in_one_line(system: System, settings: dict[str, str], status: int, words: str) -> None:
    assert system.start(**settings).wait(60) == status
    assert words in system.one_line()
    assert system.remains() == []
