"""docs/testing.md: each of its samples runs as it stands, in a sandbox."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from testkit.requirements import lacks
from testkit.typescript import node

from .system import System

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "testing.md").read_text()
SAMPLES = [(match[1], match[2]) for match in re.finditer(r"```(sh|python|ts)\n(.*?)```", GUIDE, re.DOTALL)]
FORWARDED_TO = "http://localhost:8000/webhooks"
PYTEST = "# test_integration.py\n"


class Webhooks(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server of an integrator."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Webhooks)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def environment(system: System, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With the variables that the guide sets, and the client's command line on the path."""
    company = system.company("Testing", "--sandbox")
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "makeready-client"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m makeready_client "$@"\n')
    program.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKEREADY_")}
    ticket = {"external_id": "T1", "property": "P1", "title": "Cold", "category": "HVAC", "source": "resident_portal"}
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("tickets", [ticket])  # which falls due
    return inherited | {
        "MAKEREADY_API_KEY": company.keys["write"],
        "MAKEREADY_BASE_URL": system.base_url,
        "PATH": f"{folder}:{inherited['PATH']}",
        "PYTHONPATH": str(ROOT / "sdk" / "python"),
    }


def shell() -> str:
    bash = shutil.which("bash") if shutil.which("curl") else None
    if not bash:
        lacks("curl", "there is no such command here")
    return bash


@pytest.mark.parametrize("language", ["sh", "python", "ts"])
def test_each_sample_runs_as_it_stands(environment: dict[str, str], tmp_path: Path, port: int, language: str) -> None:
    samples = [
        text
        for written_in, text in SAMPLES
        if written_in == language and FORWARDED_TO not in text and not text.startswith(PYTEST)
    ]
    assert samples
    for text in samples:
        if language == "ts":
            file = tmp_path / "pasted.ts"
            file.write_text(text)
            done = node(tmp_path, file, environment=environment)
        else:
            command = [sys.executable, "-P", "-c", text] if language == "python" else [shell(), "-ec", text]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
        shows = "2" if "clock" in text or "/requests" in text else "ticket.stale"
        assert done.returncode == 0 and shows in done.stdout, (text, done)
        assert '"error":' not in done.stdout or "/requests" in text, done.stdout


def test_the_test_for_pytest_passes_twice(environment: dict[str, str], tmp_path: Path) -> None:
    (text,) = (text for _, text in SAMPLES if text.startswith(PYTEST))
    (tmp_path / "test_integration.py").write_text(text)
    for _ in range(2):
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_integration.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_listen_shows_all_ten_events_of_trigger_all(environment: dict[str, str], port: int) -> None:
    (listening,) = (text for _, text in SAMPLES if FORWARDED_TO in text)
    (triggering,) = (text.splitlines()[-1] for _, text in SAMPLES if "--all" in text)
    command = [shell(), "-c", "exec " + listening.replace(FORWARDED_TO, f"http://127.0.0.1:{port}/webhooks")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and "signing secret" in process.stdout.readline()
            done = subprocess.run(
                [shell(), "-ec", triggering], env=environment, capture_output=True, text=True, timeout=240, check=False
            )
            assert done.returncode == 0, done.stderr
            triggered = {line.split("  ")[2]: line.split("  ")[1] for line in done.stdout.splitlines()}
            assert len(triggered) == len(set(triggered.values())) == 10
            waiting = dict(triggered)
            while waiting:
                _, event, event_id, outcome, _ = process.stdout.readline().split("  ")
                assert outcome == "204" and waiting.pop(event_id, event) == event
        finally:
            process.kill()


def test_the_table_of_the_guide_has_each_event_and_the_record_that_it_takes(system: System) -> None:
    assert system.contract is not None
    schema = system.contract.document["components"]["schemas"]
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| `([a-z_]+)`", GUIDE, re.MULTILINE))
    assert set(rows) == set(schema["EventKey"]["enum"])
    assert set(rows.values()) == set(schema["TriggerCreate"]["properties"]) - {"event"}
    for event, record in rows.items():
        assert f"`{event}`" in schema["TriggerCreate"]["properties"][record]["description"]


def test_one_event_or_all_are_named(environment: dict[str, str]) -> None:
    for words in ([], ["--all", "ticket.stale"], ["--all", "--ticket", "1"], ["ticket.closed"]):
        done = subprocess.run(
            ["makeready-client", "trigger", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2 and done.stderr, words
    unknown = ["makeready-client", "trigger", "ticket.stale", "--ticket", "9000000"]
    done = subprocess.run(unknown, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "404 not_found" in done.stderr
