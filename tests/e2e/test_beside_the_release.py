"""Services of the release before beside this one's, both ways round, as during a rollout. `make platform` runs it.

The release before also serves under load while this one's migrations change its databases. Its code comes from git;
`deploy/settings/released.json` names the commit. It runs with today's dependencies.
"""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testkit.patience import took, until
from testkit.prepared import prepare_state
from testkit.requirements import ALL, lacks, required

from .receiver import Receiver
from .system import System

ROOT = Path(__file__).parents[2]
BEHIND = "svc-catalog,svc-tickets,svc-occupancy,svc-webhooks"
SERVICES = ("gateway", *BEHIND.split(","))
READERS, WRITERS, KEYS_A_COMPANY, REQUESTS_MIN = 6, 2, 40, 300
PAUSE_SECONDS = 0.02  # of each of them after a request: the machine is not to be busy with them alone


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the release before."""
    if not required() & {"release-before", ALL}:
        lacks("release-before", "`make platform` runs it, for a minute")
    commit = json.loads((ROOT / "deploy/settings/released.json").read_text())["commit"]
    done = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        lacks("release-before", f"git has no commit {commit} here")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        packed.extractall(folder)
    if (folder / "proto/generate.py").exists():  # its repository has no code of contracts: the installation makes it
        subprocess.run([sys.executable, "-P", "proto/generate.py"], cwd=folder, check=True)
    if (folder / "openapi/reference/served.py").exists():  # nor has it pages
        command = [sys.executable, "-P", "-m", "reference.served"]
        subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": "openapi"}, check=True)
    return folder


@pytest.fixture(params=[BEHIND, "gateway", "svc-webhooks", "svc-tickets"])
def mixed(request: pytest.FixtureRequest, tree: Path, states: Path, receiver: Receiver) -> Iterator[System]:
    """A system in which these services are of the release before."""
    system = System(
        states / f"beside {request.param[:12]}",
        MAKEREADY_DEMO="0",
        WEBHOOKS_EGRESS_HOSTS=f"receiver.test=127.0.0.1:{receiver.port}",
        WEBHOOKS_EGRESS_CA_FILE=str(receiver.authority_file),
    )
    system.run_as([sys.executable, "-P", "-m", "testkit.beside_runner", request.param, str(tree)])
    prepare_state(system.state)
    try:
        system.launch()
        system.wait_until(system._answers)
        system.wait_until(system._has_written_runtime)
        for name in request.param.split(","):
            pid = system.runtime["processes"][name]["pid"]
            assert str(tree).encode() in Path(f"/proc/{pid}/environ").read_bytes(), name
        yield system
    finally:
        system.stop()


def test_a_ticket_and_its_event_cross_both_releases(mixed: System, receiver: Receiver) -> None:
    """No contract is checked: the release's answers lack what was added since."""
    company = mixed.company("Beside")
    for kind, row in (
        ("properties", {"external_id": "P", "name": "Elm", "address": "1 Elm St"}),
        ("units", {"external_id": "U", "property": "P", "name": "1"}),
    ):
        assert company.import_rows(kind, [row])["created"] == 1
    (unit,) = mixed.get("/units", company.keys["read"]).json["data"]
    path = f"/beside-{company.company_id}-{len(receiver.deliveries)}"
    hook = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created", "ticket.status_changed"]}
    subscribed = mixed.post("/webhooks", company.keys["write"], hook, "hook")
    assert subscribed.status == 201, subscribed
    opened = company.create_ticket(unit["entity_id"], "Leak", "one")
    assert opened.status == 201, opened
    replayed = company.create_ticket(unit["entity_id"], "Leak", "one")
    assert (replayed.json["entity_id"], replayed.headers["X-Idempotent-Replay"]) == (opened.json["entity_id"], "1")
    ticket = f"/tickets/{opened.json['entity_id']}"
    move = {"status": "In Progress"}
    moved = mixed.call("PATCH", ticket, company.keys["write"], move, {"Idempotency-Key": "two"})
    assert (moved.status, moved.json["status"]) == (200, "In Progress")
    leaves = {"move_out_date": "2026-12-31", "provider": "entrata"}
    refused = mixed.post(f"/units/{unit['entity_id']}/notice", company.keys["write"], leaves, "three")
    assert (refused.status, refused.code) == (422, "invalid_request"), "nobody lives there"
    swept = mixed.makeready("sweep", "webhooks")
    assert swept["succeeded"] == 2, swept
    arrived = receiver.at(path)
    assert sorted(delivery.json["event"] for delivery in arrived) == ["ticket.created", "ticket.status_changed"]
    assert all(delivery.is_signed_with(subscribed.json["secret"]) for delivery in arrived)
    assert arrived[-1].json["data"]["entity_id"] == opened.json["entity_id"]
    assert mixed.get(ticket, company.keys["read"]).json["status"] == "In Progress"


@pytest.fixture
def released(tree: Path, states: Path) -> Iterator[System]:
    """A system of the release before, on databases that its own migrations made."""
    projects = [str(path.parent) for path in sorted(tree.glob("**/pyproject.toml"))]
    path = os.pathsep.join([*projects, str(tree / "proto" / "gen")])
    system = System(states / "released", MAKEREADY_DEMO="0", PYTHONPATH=path)
    system.run_as([sys.executable, "-P", "-m", "makeready_local"])
    try:
        system.launch()
        system.wait_until(system._answers)
        system.wait_until(system._has_written_runtime)
        yield system
    finally:
        system.stop()


class Load:
    """Requests with many keys, some of which create tickets, until it is left."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.answers: collections.Counter[int] = collections.Counter()
        self.refused: list[str] = []
        self._ends = threading.Event()
        self._pool = ThreadPoolExecutor(READERS + WRITERS)
        self._companies = [system.company(f"Load {number}") for number in range(2)]
        self._units: list[int] = []
        self._keys: list[list[str]] = []
        for company in self._companies:
            company.import_rows("properties", [{"external_id": "P", "name": "Elm", "address": "1 Elm St"}])
            company.import_rows("units", [{"external_id": "U", "property": "P", "name": "1"}])
            keys = [system.mint(company.company_id, "write", company.email) for _ in range(KEYS_A_COMPANY)]
            self._keys.append(keys)
            (unit,) = system.get("/units", company.keys["read"]).json["data"]
            self._units.append(unit["entity_id"])

    def __enter__(self) -> Load:
        self._running = [self._pool.submit(self._read, number) for number in range(READERS)]
        self._running += [self._pool.submit(self._write, number) for number in range(WRITERS)]
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        self._pool.shutdown()
        for thread in self._running:
            thread.result()

    def _answered(self, action: str, status: int, body: bytes) -> None:
        time.sleep(PAUSE_SECONDS)
        self.answers[status] += 1
        if status not in (200, 201, 429):
            self.refused.append(f"{action}: {status} {body[:300]!r}")

    def _read(self, number: int) -> None:
        count = number
        while not self._ends.is_set():
            count += 1
            key = self._keys[count % 2][count // 2 % KEYS_A_COMPANY]
            path = ("/whoami", "/tickets", "/units", "/vendors", "/inspections")[count % 5]
            answer = self._system.get(path, key)
            self._answered(path, answer.status, answer.body)

    def _write(self, number: int) -> None:
        count = 0
        while not self._ends.is_set():
            count += 1
            side = (number + count) % 2
            body = {"unit_id": self._units[side], "title": "Leak", "category": "Plumbing"}
            key = self._keys[side][count % KEYS_A_COMPANY]
            answer = self._system.post("/tickets", key, body, f"{number}-{count}")
            self._answered("POST /tickets", answer.status, answer.body)


def test_the_release_before_serves_while_its_databases_are_migrated(released: System) -> None:
    """Every answer is the one that the request deserves, and each migration ends at its first start."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKEREADY_")}
    secrets = json.loads((released.state / "secrets.json").read_text())
    server = urlsplit(released.runtime["database_url"])
    with Load(released) as load:
        until(lambda: load.answers.total() > REQUESTS_MIN)
        output = ""
        for name in SERVICES:
            context = name.removeprefix("svc-")
            role = f"{context}:{secrets[f'database_{context}']}@{server.hostname}:{server.port}"
            url = server._replace(netloc=role, path=f"/{context}").geturl()
            words = [sys.executable, "-P", "-m", name.replace("-", "_"), "migrate"]
            settings = {**environment, "MAKEREADY_DATABASE_URL": url}
            done = subprocess.run(
                words, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            assert done.returncode == 0, done.stdout
            output += done.stdout
        before = load.answers.total()
        until(lambda: load.answers.total() > before + REQUESTS_MIN)
    longest = max(float(seconds) for seconds in re.findall(r'"seconds": ([0-9.]+)', output))
    waits = output.count("migration_gives_way")
    took(f"the longest migration was through, beside {dict(load.answers)}; {waits} gave way", longest)
    assert load.refused == [], _errors(released)


def _errors(system: System) -> str:
    """What the services say about failures."""
    logs = [line for path in sorted(system.state.glob("**/*.log")) for line in path.read_text().splitlines()]
    return "\n".join(line[-1500:] for line in logs if "rror" in line)[:20_000]


ANA = {"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}


def test_the_release_before_writes_nothing_wrong_to_a_unit_that_is_let_ahead(tree: Path, states: Path) -> None:
    """Its svc-occupancy does not know that a unit can have two active turns."""
    system = System(states / "beside let ahead", MAKEREADY_DEMO="0")
    prepare_state(system.state)
    of_today = list(system._command)

    def launch(command: list[str]) -> None:
        system.run_as(command)
        system.launch()
        system.wait_until(system._answers)
        system.wait_until(system._has_written_runtime)

    def turns() -> list[tuple[int, str, str | None, str | None]]:
        names = ("entity_id", "status", "move_in_date", "move_out_date")
        turns = system.get("/turns", company.keys["read"])
        assert turns.status == 200, turns
        return [tuple(turn[name] for name in names) for turn in turns.json["data"]]

    def write(path: str, key: str, body: dict[str, object]) -> int:
        return system.post(f"/units/{unit_id}/{path}", company.keys["write"], {"provider": "feed"} | body, key).status

    try:
        launch(of_today)
        company = system.company("Let ahead")
        company.import_rows("properties", [{"external_id": "P", "name": "Elm", "address": "1 Elm St"}])
        company.import_rows("units", [{"external_id": "U", "property": "P", "name": "1"}])
        (unit,) = system.get("/units", company.keys["read"]).json["data"]
        unit_id = unit["entity_id"]
        lease = {"lease_start_date": "2026-01-01", "parties": [ANA]}
        assert write("move-in", "1", {"move_in_date": "2026-01-01", **lease}) == 201
        ((first, *_),) = turns()
        assert write("notice", "2", {"move_out_date": "2980-12-28"}) == 201
        ahead = {"move_in_date": "2981-01-10", "predecessor_transition_id": first, **lease}
        assert write("move-in", "3", ahead) == 201
        (_, (second, *_)) = before = turns()
        assert before == [
            (first, "Active", "2026-01-01", "2980-12-28"),
            (second, "Active", "2981-01-10", None),
        ]
        assert system.stop() == 0
        launch([sys.executable, "-P", "-m", "testkit.beside_runner", BEHIND, str(tree)])
        assert turns() == before
        # It meets either turn: what it writes is right, or it is refused, or it fails whole.
        assert write("notice", "4", {"move_out_date": "2981-01-03"}) in (201, 500)
        assert write("move-in", "5", {"move_in_date": "2026-02-01", **lease}) == 422
        assert (
            write("move-in", "6", {"move_in_date": "2026-02-01", "predecessor_transition_id": second, **lease}) == 422
        )
        system.makeready("sweep", "stale")
        after = turns()
        assert after[1] == before[1] and after[0][:3] == before[0][:3]
        assert after[0][3] in ("2980-12-28", "2981-01-03")
        assert system.stop() == 0
        launch(of_today)
        assert turns() == after
        system.makeready("sweep", "stale", "--now", "2981-01-10T12:00:00Z", "--yes-for-all-companies")
        assert [(turn[0], turn[1]) for turn in turns()] == [(first, "Completed"), (second, "Active")]
    finally:
        system.stop()
