"""docs/restore.md, done: six databases go back to one moment, and what clients, receivers and readers then see."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from makeready_local.postgres import Postgres, give, reachable_binaries, unprivileged_account
from testkit.prepared import prepare_state

from .receiver import Receiver
from .system import Company, System

PAGE = (Path(__file__).parents[2] / "docs" / "restore.md").read_text()
SECONDS = 120.0
ID_JUMP = 1_000_000


def block(kind: str, number: int) -> str:
    """A block of code of the page."""
    blocks = re.findall(rf"^( *)```{kind}\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
    return "".join(line.strip() + "\n" for line in blocks[number][1].splitlines())


class Cluster:
    """The cluster of a system's STATE_DIR, with the page's archive and copy."""

    def __init__(self, system: System, folder: Path) -> None:
        self.system = system
        self.data = (system.state / "postgres").resolve() / "data"
        self.backup = folder / "backup"
        self.url = ""
        self.programs = reachable_binaries(unprivileged_account())
        (self.backup / "wal").mkdir(parents=True)
        give(self.backup / "wal", unprivileged_account())
        self.configure(block("ini", 0))

    def configure(self, settings: str) -> None:
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(settings.replace("/backup/", f"{self.backup}/"))

    def run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [str(self.programs / program), *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def query(self, sql: str, database: str = "postgres") -> str:
        url = urlsplit(self.url)._replace(path=f"/{database}").geturl()
        return self.run("psql", url, "-XAtqc", sql)

    def databases(self) -> list[str]:
        return self.query("SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'").split()

    def mark(self, number: int) -> None:
        """Leaves a row in each database."""
        for name in self.databases():
            self.query(f"CREATE TABLE IF NOT EXISTS mark (n int); INSERT INTO mark VALUES ({number})", name)

    def copy(self) -> None:
        words = re.findall(r"^pg_basebackup (.*)$", PAGE, re.MULTILINE)[0].replace('"', "").split()
        places = {"$ADMIN_URL": self.url, "/backup/base": str(self.backup / "base")}
        self.run("pg_basebackup", *(places.get(word, word) for word in words))

    def archived(self) -> None:
        """Returns when all of the log is in the archive."""
        segment = self.query("SELECT pg_walfile_name(pg_switch_wal())")
        deadline = time.monotonic() + SECONDS
        while not (self.backup / "wal" / segment).exists():
            assert time.monotonic() < deadline, list((self.backup / "wal").iterdir())
            time.sleep(0.05)

    def go_back(self, moment: str) -> None:
        """Puts the copy in the place of the data, and runs the server alone until it has reached the moment and the ids
        are moved on."""
        shutil.rmtree(self.data)
        shutil.copytree(self.backup / "base", self.data)
        (self.data / "recovery.signal").touch()
        self.configure(re.sub(r"(?<=recovery_target_time = ').*(?=')", moment, block("ini", 1)))
        for path in (self.data, *self.data.rglob("*")):
            give(path, unprivileged_account())
        self.data.chmod(0o700)
        password = urlsplit(self.url).password or ""
        server = Postgres(self.system.state / "postgres", password, log=self.backup / "postgres.log")
        server.start()
        self.url = server.url
        deadline = time.monotonic() + SECONDS
        while self.query("SELECT pg_is_in_recovery()") == "t":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for name in self.databases():
            marks = self.query("SELECT string_agg(n::text, ' ' ORDER BY n) FROM mark", name)
            assert marks == "1 2", f"{name} is at another moment"
            self.query(block("sql", 0), name)
        server.stop()


@pytest.fixture
def system(receiver: Receiver, states: Path) -> Iterator[System]:
    """A system of its own, not started."""
    system = System(
        states / "restored",
        MAKEREADY_DEMO="0",
        WEBHOOKS_EGRESS_HOSTS=f"receiver.test=127.0.0.1:{receiver.port}",
        WEBHOOKS_EGRESS_CA_FILE=str(receiver.authority_file),
    )
    prepare_state(system.state)
    yield system
    system.stop()


def delivered(receiver: Receiver) -> list[tuple[str, str]]:
    """The id of each event that arrived, and the title of its ticket, in their order."""
    events = [delivery.json for delivery in receiver.at("/restored")]
    return [(event["event_id"], event["data"]["title"]) for event in events]


def created(company: Company, unit_id: int, title: str) -> int:
    answer = company.create_ticket(unit_id, title, f"key of {title}")
    assert (answer.status, answer.headers["X-Idempotent-Replay"]) == (201, None)
    number: int = answer.json["entity_id"]
    return number


def test_six_databases_go_back_to_one_moment_and_everything_is_accounted_for(
    system: System, receiver: Receiver, states: Path
) -> None:
    cluster = Cluster(system, states)
    system.start()
    cluster.url = system.runtime["database_url"]
    assert len(cluster.databases()) == 6
    company = system.company("Restored")
    company.import_rows("properties", [{"external_id": "P", "name": "Elm", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U", "property": "P", "name": "1"}])
    (unit,) = company.walk("/units")
    hook = {"destination_url": "https://receiver.test/restored", "events": ["ticket.created"]}
    assert system.post("/webhooks", company.keys["write"], hook, "hook").status == 201
    key = company.keys["write"]

    cluster.mark(1)
    cluster.copy()
    before = created(company, unit["entity_id"], "before")
    system.makeready("sweep", "webhooks")
    created(company, unit["entity_id"], "waiting")
    system.makeready("wait")
    cursors = positions(system, key)
    cluster.mark(2)
    moment = cluster.query("SELECT clock_timestamp()")
    cluster.mark(3)
    lost = created(company, unit["entity_id"], "lost")
    late_key = company.system.mint(company.company_id, "read")
    revoked = next(key for key in key_list(company) if key["scope"] == "read")
    system.makeready("key", "revoke", str(revoked["key_id"]))
    system.makeready("unit", "update", str(company.company_id), str(unit["entity_id"]), "--name", "renamed")
    system.makeready("wait")
    system.makeready("sweep", "webhooks")
    cursors += positions(system, key)
    delivered_before = delivered(receiver)
    assert sorted(title for _, title in delivered_before) == ["before", "lost", "waiting"]
    acts = cluster.query(block("sql", 1).replace("2026-11-23 02:15:00+00", moment), "gateway")
    assert re.findall(r"key\.\w+", acts) == ["key.minted", "key.revoked"]
    cluster.archived()
    assert system.stop() == 0

    cluster.go_back(moment)
    shutil.rmtree((system.state / "nats").resolve())
    system.start()
    rebuilt = system.makeready("replicas", "rebuild", "--overwrite")
    assert {replica["rows"] for replica in rebuilt["replicas"] if replica["kind"] == "units"} == {1}
    system.makeready("wait")
    assert system.run("status").returncode == 0

    check_writes(company, unit["entity_id"], before, lost)
    for path, cursor in cursors:
        answer = system.get(path, key, cursor=cursor)
        assert (answer.status, answer.code) == (410, "cursor_expired"), path
    assert system.get("/whoami", late_key).status == 401
    assert next(key for key in key_list(company) if key["key_id"] == revoked["key_id"])["revoked_at"] is None
    system.makeready("wait")
    system.makeready("sweep", "webhooks")
    check_events(company, receiver, delivered_before)


def check_writes(company: Company, unit_id: int, before: int, lost: int) -> None:
    titles = {ticket["entity_id"]: ticket["title"] for ticket in company.walk("/tickets")}
    assert sorted(titles.values()) == ["before", "waiting"]
    assert {ticket["unit"]["name"] for ticket in company.walk("/tickets")} == {"1"}
    replay = company.create_ticket(unit_id, "before", "key of before")
    assert (replay.json["entity_id"], replay.headers["X-Idempotent-Replay"]) == (before, "1")
    again = created(company, unit_id, "lost")
    assert again > lost + ID_JUMP // 2, "an id is never given twice"
    assert company.system.get(f"/tickets/{lost}", company.key_for()).status == 404


def check_events(company: Company, receiver: Receiver, delivered_before: list[tuple[str, str]]) -> None:
    """known: what had arrived when the data were lost."""
    ids = {title: event_id for event_id, title in delivered_before}
    now = delivered(receiver)[len(delivered_before) :]
    assert (ids["waiting"], "waiting") in now, "its delivery was recorded after the moment"
    assert [title for event_id, title in now if event_id not in ids.values()] == ["lost"], "the retry's own event"
    assert len(now) == 2
    feed = company.system.get("/events", company.key_for(), limit=200).json["data"]
    ours = {event["event_id"] for event in feed}
    theirs = {event_id for event_id, _ in delivered(receiver)}
    assert theirs - ours == {ids["lost"]} and ours <= theirs


def key_list(company: Company) -> list[dict[str, object]]:
    keys: list[dict[str, object]] = company.system.makeready("key", "list", str(company.company_id))["keys"]
    return keys


def positions(system: System, key: str) -> list[tuple[str, str]]:
    """Each feed, with a cursor at its end."""
    answers = [(path, system.get(path, key)) for path in ("/changes/tickets", "/changes/units", "/events")]
    assert {answer.status for _, answer in answers} == {200}
    return [(path, answer.json["resume_cursor"]) for path, answer in answers]
