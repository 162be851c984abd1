"""The Python client against a running system, over HTTP alone."""

from __future__ import annotations

import csv
import http.server
import importlib.metadata
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from packaging.requirements import Requirement

from makeready_client import AsyncMakeready, Batch, Makeready, Mirror, errors, models, webhooks
from testkit.patience import PATIENCE_SECONDS, took
from testkit.processes import free_port

from .receiver import Receiver
from .system import Company, System

# `make soak-sdk` walks 10,000.
TICKETS = int(os.environ.get("MAKEREADY_SDK_TICKETS", "300"))
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "sdk" / "python" / "examples"
# `makeready-client`, but a Ctrl-C comes just after httpcore has taken a lock for the nth time; n is the first argument.
INTERRUPTED_AT_A_LOCK = """
import os, signal, sys, threading

nth, taken, allocate = int(sys.argv.pop(1)), 0, threading.Lock

class Lock:
    def __init__(self):
        self._lock = allocate()

    def __getattr__(self, name):
        return getattr(self._lock, name)

    def acquire(self, *words):
        global taken
        got = self._lock.acquire(*words)
        if sys._getframe(1).f_globals["__name__"].startswith("httpcore"):
            taken += 1
            if taken == nth:
                os.kill(os.getpid(), signal.SIGINT)
        return got

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()

threading.Lock = Lock
from makeready_client.cli import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command line of the built wheel, in an environment that has the wheel and what it requires, and no more."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-P", str(ROOT / "sdk/build.py"), str(folder / "dist")], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    (wheel,) = (folder / "dist").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "-q", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    for name in required("makeready-client") - {"makeready-client"}:
        for file in {
            file_path.parts[0] for file_path in importlib.metadata.files(name) or () if file_path.parts[0] != ".."
        }:
            (site / file).symlink_to(str(importlib.metadata.distribution(name).locate_file(file)))
    subprocess.run([*pip, "check"], check=True)
    return python.with_name("makeready-client")


def required(name: str) -> set[str]:
    """A distribution and everything that it requires here."""
    names = {name}
    for requirement in map(Requirement, importlib.metadata.requires(name) or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            names |= required(requirement.name)
    return names


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Client")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in range(3)])
    rows = [{"external_id": f"T{n}", "property": "P1", "title": f"Tap {n}", "category": "Leak"} for n in range(TICKETS)]
    company.import_rows("tickets", rows)
    return company


@pytest.fixture
def key(company: Company) -> str:
    """A fresh key of scope write."""
    return company.system.mint(company.company_id, "write", company.email)


@pytest.fixture
def client(company: Company, key: str) -> Iterator[Makeready]:
    with Makeready(key, base_url=company.system.base_url) as opened:
        yield opened


@dataclass
class Shell:
    """Runs programs as an integrator would."""

    program: Path
    environment: dict[str, str]

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """The command line, to its end. more: variables of the environment."""
        return self._to_end([str(self.program), *words], more)

    def example(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """An example, to its end."""
        return self._to_end([str(self.program.with_name("python")), str(EXAMPLES / name), *words], {})

    def _to_end(self, command: list[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment | more, capture_output=True, text=True, timeout=120, check=False
        )

    @contextmanager
    def listening(self, *words: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
        """A program that goes on, and its output; killed at the end."""
        with subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield process, process.stdout
            finally:
                process.kill()


@pytest.fixture
def shell(program: Path, company: Company, key: str) -> Shell:
    # Nothing of this environment's packages may be found.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAKEREADY_"))}
    return Shell(program, inherited | {"MAKEREADY_API_KEY": key, "MAKEREADY_BASE_URL": company.system.base_url})


def test_a_walk_has_every_record_once_and_no_refusal(client: Makeready, company: Company) -> None:
    walked = [ticket.entity_id for ticket in client.tickets.list(limit=50)]
    assert len(walked) == len(set(walked)) == TICKETS
    assert walked == sorted(walked)


def test_a_write_that_comes_again_has_one_effect(client: Makeready) -> None:
    (unit, *_) = client.units.list()
    first = client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak", idempotency_key="one")
    again = client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak", idempotency_key="one")
    assert (first.replayed, again.replayed, again.entity_id) == (False, True, first.entity_id)
    assert first.request_id and first.request_id != again.request_id
    with pytest.raises(errors.IdempotencyMismatch) as refused:
        client.tickets.create(unit_id=unit.entity_id, title="Sink", category="Leak", idempotency_key="one")
    assert (refused.value.status, refused.value.code) == (409, "idempotency_mismatch")
    with pytest.raises(errors.NotFound):
        client.tickets.get(2**40)


async def test_both_clients_have_the_same_answers(client: Makeready, company: Company, key: str) -> None:
    async with AsyncMakeready(key, base_url=company.system.base_url) as other:
        assert (await other.whoami()).key == client.whoami().key
        assert [unit async for unit in other.units.list()] == list(client.units.list())
        assert [line async for line in other.snapshots.units().lines()] == list(client.snapshots.units().lines())
        changes = await other.changes.units().page()
        assert [change.record for change in changes.data] == list(client.snapshots.units())


def test_followed_events_go_on_where_they_were_left(client: Makeready) -> None:
    (unit, *_) = client.units.list()
    ids = [client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak").entity_id for _ in range(3)]
    seen: list[int] = []
    cursor: str | None = None
    while seen[-3:] != ids:
        events = client.events.follow(cursor)
        for event in events:
            assert isinstance(event, models.TicketCreatedEvent)
            assert json.loads(event.raw)["event_id"] == event.event_id
            if event.data.entity_id not in seen:  # a page that was not handed out whole comes again
                seen.append(event.data.entity_id)
                break
        cursor = events.cursor
    assert len(seen) == len(set(seen))


class Application(http.server.ThreadingHTTPServer):
    """A server of an integrator, with the library's own judgement of deliveries."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Delivery)
        self.secret = ""
        self.refused = 0
        """How many of the next deliveries are refused."""
        self.arrived: list[tuple[float, models.Event]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Delivery(http.server.BaseHTTPRequestHandler):
    server: Application

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event = webhooks.verify(body, self.headers["Service-Signature"], self.server.secret)
        if self.server.refused:
            self.server.refused -= 1
            self.send_response(503)
        else:
            self.server.arrived.append((time.monotonic(), event))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def application() -> Iterator[Application]:
    listening = Application()
    yield listening
    listening.shutdown()
    listening.server_close()


def test_an_event_arrives_verified_at_a_server_on_this_machine(
    client: Makeready, shell: Shell, application: Application
) -> None:
    (unit, *_) = client.units.list()
    url = f"http://127.0.0.1:{application.server_port}/hooks"
    with shell.listening(str(shell.program), "listen", "--forward-to", url) as (process, output):
        match = re.search(r"signing secret: (whsec_\S+)", output.readline())
        assert match
        application.secret = match[1]
        began = time.monotonic()
        ticket = client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak")
        line = output.readline()
        ((arrived, event),) = application.arrived
        assert isinstance(event, models.TicketCreatedEvent) and event.data == ticket
        assert "ticket.created" in line and "204" in line
        took("an event is forwarded to this machine", arrived - began)
        process.send_signal(signal.SIGINT)
        match = re.search(r"--from (\S+)", output.read())
        assert match and process.wait(30) == 0
    client.tickets.change_status(ticket.entity_id, status="In Progress")
    again = [str(shell.program), "listen", "--forward-to", url, "--secret", application.secret, "--from", match[1]]
    with shell.listening(*again) as (_, output):
        output.readline()
        assert "ticket.status_changed" in output.readline()
    assert len(application.arrived) == 2


@pytest.mark.parametrize("nth", range(1, 13))
def test_a_ctrl_c_ends_it_whatever_it_does(shell: Shell, application: Application, nth: int) -> None:
    python, application.secret = str(shell.program.with_name("python")), webhooks.new_secret()
    words = ["--forward-to", f"http://127.0.0.1:{application.server_port}", "--secret", application.secret]
    interrupted = [python, "-c", INTERRUPTED_AT_A_LOCK, str(nth), "listen", *words, "--backfill", "1h"]
    with shell.listening(*interrupted) as (process, _):
        assert process.wait(PATIENCE_SECONDS) in (0, 130)  # before it forwards, and then


def test_a_backfill_brings_what_the_feed_holds_in_order_and_once(
    client: Makeready, company: Company, shell: Shell, application: Application
) -> None:
    company.system.makeready("wait")  # an event that is on its way would come too
    held = [event.event_id for event in client.events.list(event="ticket.created")]
    application.secret = webhooks.new_secret()
    words = ["--forward-to", f"http://127.0.0.1:{application.server_port}", "--secret", application.secret]
    words += ["--backfill", "1h", "--events", "ticket.created"]
    with shell.listening(str(shell.program), "listen", *words) as (_, output):
        for _ in range(1 + len(held)):
            output.readline()
    assert [event.event_id for _, event in application.arrived] == held


def test_a_copy_is_brought_in_step_once(client: Makeready, company: Company, shell: Shell, tmp_path: Path) -> None:
    (unit, *_) = client.units.list()
    company.system.makeready("wait")
    first = shell.run("sync", str(tmp_path), "--jsonl")
    assert first.returncode == 0, first.stderr
    came = {kind: int(count) for kind, count in re.findall(r"^(\w+) +(\d+) came", first.stdout, re.MULTILINE)}
    assert came["tickets"] >= TICKETS and came["units"] == 3 and set(came) == set(models.KINDS)
    # What the import has caused elsewhere may still arrive, but then there is nothing.
    synced = (shell.run("sync", str(tmp_path), "--sqlite").stdout for _ in range(10))
    assert any(set(re.findall(r"(\d+) came", line)) == {"0"} for line in synced)
    client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak")
    third = shell.run("sync", str(tmp_path), "--jsonl")
    assert re.findall(r"^(\w+) +(?!0 )\d+ came", third.stdout, re.MULTILINE) == ["tickets"]
    with closing(sqlite3.connect(tmp_path / "makeready.sqlite")) as copy:
        stored = [record.encode() for (record,) in copy.execute("SELECT record FROM tickets ORDER BY entity_id")]
    assert stored == list(client.snapshots.tickets().lines())
    assert (tmp_path / "tickets.jsonl").read_bytes() == b"".join(line + b"\n" for line in stored)
    other = company.system.company("Other")
    refused = shell.run("sync", str(tmp_path), "--sqlite", MAKEREADY_API_KEY=other.keys["read"])
    assert (refused.returncode, "another company" in refused.stderr) == (2, True)


def test_a_function_can_keep_a_copy(client: Makeready) -> None:
    batches: list[tuple[bool, list[int]]] = []

    def store(batch: Batch) -> None:
        batches.append((batch.is_whole, [change.entity_id for change in batch.changes]))

    mirror = Mirror(client, store, kinds=["units"])
    assert mirror.run() == {"units": 3}
    assert mirror.run() == {"units": 0}
    (whole, ids), *later = batches
    assert whole and len(ids) == 3 and all(later_ids == [] for _, later_ids in later)
    assert Mirror(client, store, kinds=["units"], cursors=mirror.cursors).run() == {"units": 0}


def test_the_command_line_says_what_is_wrong(shell: Shell) -> None:
    done = shell.run("whoami")
    assert done.returncode == 0 and "scope write" in done.stdout
    assert shell.environment["MAKEREADY_API_KEY"] not in done.stdout
    assert shell.run("whoami", MAKEREADY_API_KEY="mk_wrong").returncode == 1
    behind = shell.run("whoami", "--base-url", shell.environment["MAKEREADY_BASE_URL"], MAKEREADY_BASE_URL="")
    assert behind.stdout == done.stdout
    module = [str(shell.program.with_name("python")), "-m", "makeready_client", "whoami"]
    finished = subprocess.run(module, env=shell.environment, capture_output=True, text=True, timeout=120, check=False)
    assert finished.stdout == done.stdout
    assert shell.run("test-delivery", "999999").returncode == 1
    assert shell.run("listen", "--forward-to", "http://localhost:1/", "--events", "no.such").returncode == 2
    unreached = shell.run("--base-url", "http://127.0.0.1:1/api/v1", "whoami")
    assert unreached.returncode == 3 and unreached.stderr.count("\n") == 1


def test_records_are_printed_as_lines_json_and_csv(client: Makeready, company: Company, shell: Shell) -> None:
    (unit, *_) = client.units.list()
    title = "=HYPERLINK(1) \x1b[2J, quoted"
    ticket = client.tickets.create(unit_id=unit.entity_id, title=title, category="Leak", priority="High")
    assert ticket.response
    number = str(ticket.entity_id)
    listed = ["list", "tickets", "--unit-id", str(unit.entity_id), "--status", "Open"]
    assert json.loads(shell.run("get", "tickets", number).stdout) == ticket.to_dict()
    assert shell.run("get", "tickets", number, "--json").stdout.encode() == ticket.response.body + b"\n"
    lines = shell.run(*listed, "--json").stdout.encode().splitlines()
    assert ticket.response.body in lines
    assert len(lines) == sum(1 for _ in client.tickets.list(unit_id=unit.entity_id, status="Open"))
    assert f"{number}  Open" in shell.run(*listed).stdout and "\x1b" not in shell.run(*listed).stdout
    rows = list(csv.DictReader(io.StringIO(shell.run(*listed, "--csv").stdout)))
    (row,) = (row for row in rows if row["entity_id"] == number)
    assert (row["title"], row["property.name"], row["permission_to_enter"]) == (f"'{title}", "Elm Court", "false")
    assert (row["unit.name"], row["assignee.id"], row["completed_at"]) == (unit.name, "", "")
    assert [row] == list(csv.DictReader(io.StringIO(shell.run("get", "tickets", number, "--csv").stdout)))
    assert len(shell.run("list", "tickets", "--limit", "2", "--json").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("get tickets 1099511627776", 1),
        ("get tickets x", 2),
        ("get cats 1", 2),
        ("list tickets --status Lost", 2),
        ("list tickets --updated-since 2026-01-01T00:00:00", 2),
        ("list tickets --limit 0", 2),
        ("list readings", 2),
        ("list readings --meter-id 1099511627776", 1),
        ("events tail --events no.such", 2),
        ("logs --status 9xx", 1),
        ("logs --backfill 5", 2),
        ("logs tail --request-id 0", 2),
        ("logs --request-id 0", 1),
        ("resend nonsense --forward-to http://localhost:1/", 2),
        ("resend 01920000-0000-7000-8000-000000000000 --forward-to http://localhost:1/", 2),
    ],
)
def test_a_command_that_cannot_be_done_says_so_in_a_line(shell: Shell, words: str, status: int) -> None:
    done = shell.run(*words.split())
    assert (done.returncode, done.stdout) == (status, "")
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("makeready-client"))
    assert line


def test_events_are_printed_as_they_happen(client: Makeready, company: Company, shell: Shell) -> None:
    (unit, *_) = client.units.list()
    company.system.makeready("wait")
    tail = [str(shell.program), "events", "tail", "--backfill", "1h", "--json", "--events", "ticket.created"]
    held = [event.raw.decode() for event in client.events.list(event="ticket.created")]
    with shell.listening(*tail) as (process, output):
        assert [output.readline().rstrip("\n") for _ in held] == held
        ticket = client.tickets.create(unit_id=unit.entity_id, title="Lock", category="General")
        assert json.loads(output.readline())["data"]["entity_id"] == ticket.entity_id
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with shell.listening(*tail[:5]) as (_, output):
        assert re.search(r"  ticket.created  [0-9a-f-]{36}  \d+$", output.readline())


def test_requests_are_printed_as_they_are_answered(client: Makeready, shell: Shell) -> None:
    filters = ["--status", "4xx", "--route", "/tickets/{ticket_id}"]
    tail = ["sh", "-c", 'exec "$@" 2>&1', "sh", str(shell.program), "logs", "tail", *filters]
    refused: list[str] = []

    def refuse() -> None:
        with pytest.raises(errors.NotFound) as refusal:
            client.tickets.get(2**50)
        refused.append(str(refusal.value.request_id))

    with shell.listening(*tail, "--backfill", "1m", "--json") as (process, output):
        refuse()
        line = next(line for line in output if refused[0] in line)
        assert json.loads(line)["code"] == "not_found"
        refuse()
        assert refused[1] in output.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        (place,) = re.findall("--from (.*)", output.read())
    refuse()  # while nobody looks
    with shell.listening(*tail, "--from", place) as (_, output):
        line = output.readline()
        assert refused[2] in line and "  404  GET /tickets/1125899906842624  " in line and "not_found: " in line
    assert all(request_id in shell.run("logs", *filters).stdout for request_id in refused)
    fetched = json.loads(shell.run("logs", "--request-id", refused[0]).stdout)
    assert (fetched["request_id"], fetched["request_body"]) == (refused[0], None)
    # What follows the log does not follow itself.
    assert "/requests  " not in shell.run("logs").stdout


def test_what_a_server_refuses_is_posted_again_and_one_event_when_it_is_named(
    client: Makeready, company: Company, shell: Shell, application: Application
) -> None:
    (unit, *_) = client.units.list()
    url, application.secret = f"http://127.0.0.1:{application.server_port}/hooks", webhooks.new_secret()
    to = ["--forward-to", url, "--secret", application.secret]
    application.refused = 1
    with shell.listening(str(shell.program), "listen", *to, "--retry") as (_, output):
        output.readline()
        client.tickets.create(unit_id=unit.entity_id, title="Tap", category="Leak")
        lines = [output.readline() for _ in range(3)]
    assert ["  503  " in lines[0], "Retry in 1 s" in lines[1], "  204  " in lines[2]] == [True] * 3
    ((_, event),) = application.arrived
    done = shell.run("resend", event.event_id, *to)
    assert (done.returncode, [again.raw for _, again in application.arrived]) == (0, [event.raw] * 2)
    application.refused = 1
    assert shell.run("resend", event.event_id, *to).returncode == 1


def test_a_test_delivery_says_what_the_receiver_answered(client: Makeready, shell: Shell, receiver: Receiver) -> None:
    subscription = client.webhooks.create(destination_url="https://receiver.test/client", events=["ticket.created"])
    assert subscription.secret
    done = shell.run("test-delivery", str(subscription.entity_id))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "succeeded")
    (delivery,) = receiver.at("/client")
    event = webhooks.verify(delivery.body, delivery.headers["service-signature"], subscription.secret)
    assert isinstance(event, models.UnknownEvent) and event.event == "webhook.test"
    client.webhooks.delete(subscription.entity_id)
    with pytest.raises(errors.NotFound):
        client.webhooks.delete(subscription.entity_id)


def test_the_examples_do_what_they_say(client: Makeready, shell: Shell, tmp_path: Path) -> None:
    (unit, *_) = client.units.list()
    opened = shell.example("create_ticket.py", str(unit.entity_id), "Sink", "88")
    again = shell.example("create_ticket.py", str(unit.entity_id), "Sink", "88")
    assert opened.stdout.split()[1] == "opened", opened
    assert again.stdout.split()[:3] == [opened.stdout.split()[0], "opened", "before"]
    assert shell.example("create_ticket.py", str(unit.entity_id), "Basin", "88").returncode == 1
    listed = shell.example("open_tickets.py").stdout.splitlines()
    assert len(listed) == sum(1 for _ in client.tickets.list(status="Open"))
    assert f"{opened.stdout.split()[0]}\tMedium\tSink\t{unit.name}" in listed
    copied = [shell.example("copy_records.py", str(tmp_path / "copy.sqlite")).stdout for _ in range(3)]
    assert "'units': 3" in copied[0] and "'units': 3" not in copied[-1]
    assert shell.example("many_at_once.py").stdout.split() == ["1", "3", "0"]
    held = [event.event_id for event in client.events.list()]
    command = [str(shell.program.with_name("python")), str(EXAMPLES / "follow_events.py"), str(tmp_path / "cursor")]
    with shell.listening(*command) as (_, output):
        assert [output.readline().split()[-1] for _ in held] == held


def test_the_example_of_a_receiver_takes_what_is_forwarded(client: Makeready, shell: Shell) -> None:
    (unit, *_) = client.units.list()
    secret, port = webhooks.new_secret(), free_port()
    shell.environment["WEBHOOK_SECRET"] = secret
    receive = [str(shell.program.with_name("python")), str(EXAMPLES / "receive_deliveries.py"), str(port)]
    listen = [str(shell.program), "listen", "--forward-to", f"http://127.0.0.1:{port}", "--secret", secret]
    with shell.listening(*receive) as (_, received), shell.listening(*listen) as (_, output):
        output.readline()
        ticket = client.tickets.create(unit_id=unit.entity_id, title="Boiler", category="HVAC")
        assert received.readline() == f"{ticket.entity_id} Boiler\n"


def test_the_readme_works_when_it_is_pasted(
    client: Makeready,
    company: Company,
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (unit, *_) = client.units.list()
    client.tickets.create(unit_id=unit.entity_id, title="Window", category="General")
    company.system.makeready("wait")
    (event, *_) = client.events.list(event="ticket.created")
    for name in ("MAKEREADY_API_KEY", "MAKEREADY_BASE_URL"):
        monkeypatch.setenv(name, shell.environment[name])
    monkeypatch.chdir(tmp_path)
    secret = webhooks.new_secret()
    headers = webhooks.signed(event.raw, secret, event.event_id)
    names: dict[str, object] = {"body": event.raw, "headers": headers, "secret": secret, "cursor": None}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "sdk/python/README.md").read_text(), re.DOTALL)
    exec(blocks[0], names)
    assert "Window" in capsys.readouterr().out
    for block in blocks[1:]:
        exec(block, names)
    output = capsys.readouterr().out
    assert "404 not_found" in output and "'units': 3" in output and event.event_id in output
    assert names["cursor"] is None, "one event of a page of several moves no cursor"
    names["mk"].close()  # type: ignore[attr-defined]
    names["store"].close()  # type: ignore[attr-defined]
