"""A whole Makeready, started as an operator does. The tests use only HTTP and the command line."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.api_contract import SUMMARIES
from testkit.event_contract import check_envelope, check_unless_changed, place_of
from testkit.plugin import server_folder
from testkit.prepared import prepare_state
from testkit.processes import free_port
from testkit.requirements import lacks

from .hostile_writes import World
from .receiver import Receiver
from .system import System


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the counts that the tests collected."""
    for title, summary in SUMMARIES.items():
        terminalreporter.section(title)
        terminalreporter.write(summary)


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """A webhook receiver on loopback with a private certificate authority; the system resolves it as receiver.test."""
    with Receiver(tmp_path_factory.mktemp("receiver")) as running:
        yield running


@pytest.fixture(scope="session")
def published_receivers() -> dict[str, int]:
    """The hosts of the guide's receivers, each with the loopback port that it will listen on."""
    return {f"{language}.test-receivers.example": free_port() for language in ("python", "typescript", "shell")}


@pytest.fixture(scope="session")
def silent_port() -> Iterator[int]:
    """The port of a receiver on loopback that never answers a connection; the system resolves it as silent.test."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening.getsockname()[1]


@pytest.fixture(scope="session")
def states() -> Iterator[Path]:
    """The folder of the systems' STATE_DIRs. They are prepared: the tests of deploy/local start from nothing."""
    with server_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def system(receiver: Receiver, silent_port: int, published_receivers: dict[str, int], states: Path) -> Iterator[System]:
    """One running system for the session, with its demo company; stopped at the end."""
    ports = {"receiver.test": receiver.port, "silent.test": silent_port, **published_receivers}
    running = System(
        states / "state with a space",
        WEBHOOKS_EGRESS_HOSTS=",".join(f"{host}=127.0.0.1:{port}" for host, port in ports.items()),
        WEBHOOKS_EGRESS_CA_FILE=str(receiver.authority_file),
        # As on Kubernetes: sandboxes' destinations are held to the rules of live companies' ones.
        MAKEREADY_SANDBOX_LOCAL_DESTINATIONS="0",
    )
    prepare_state(running.state, demo=True)
    try:
        running.start()
        # The demo company's deliveries wait: a test's sweep counts its own alone.
        for subscription in running.makeready("webhooks", "list", str(running.demo["company_id"]))["subscriptions"]:
            running.makeready("webhooks", "pause", str(subscription["entity_id"]))
        yield running
        compare_with_gets(running, receiver)
    finally:
        running.stop()  # also after a failed start: no process may outlive the tests


def compare_with_gets(running: System, receiver: Receiver) -> None:
    """Checks that every delivery is as documented, and that the last event of each record equals its GET, unless the
    record has changed since."""
    last: dict[tuple[int, str], dict[str, Any]] = {}
    for delivery in receiver.deliveries:
        if delivery.json["event"] == "webhook.test":  # a person's test of an endpoint, about no record
            assert (delivery.json["data"], delivery.json["change"]) == ({}, None)
            continue
        envelope = check_envelope(delivery.body)
        place = place_of(envelope["data"])
        if place is not None:
            record = envelope["company_id"], place
            last[record] = max(last.get(record, envelope), envelope, key=lambda envelope: str(envelope["occurred_at"]))
    compared = 0
    for (company_id, place), envelope in last.items():
        company = running.companies.get(company_id)
        if company is not None:
            got = running.get(place, company.keys["read"])
            if got.status in (401, 429):  # a test has revoked the key or used up its rate limit
                company.keys["read"] = company.key_for(1, "read")
                got = running.get(place, company.keys["read"])
            if got.status != 403:  # the company is inactive
                assert got.status == 200, got
                compared += check_unless_changed(envelope, got.json)
    SUMMARIES["Events"] = f"{len(receiver.deliveries):6} deliveries as documented, {compared} records as their GETs\n"


@pytest.fixture(scope="session")
def world(system: System) -> Iterator[World]:
    """A company for hostile requests."""
    played = World.of(system)
    yield played
    played.end()
    SUMMARIES["Hostile requests"] = "".join(
        f"{sum(counts.values()):6} {promise}\n"
        + "".join(f"{count:12} {write}\n" for write, count in sorted(counts.items()))
        for promise, counts in (
            ("refused, nothing written, no key kept", played.tried),
            ("never a fault", played.answered),
        )
    )


@pytest.fixture(scope="module")
def no_faults(system: System) -> Iterator[None]:
    """Fails if a process logs an error during a module's tests or their aftermath, even if its answers were right."""
    files = sorted((system.state / "logs").glob("*.log"))
    before = {file: file.stat().st_size for file in files}
    yield
    system.makeready("wait")
    for file in files:
        with file.open("rb") as log:
            log.seek(before[file])
            errors = [line for line in log if b'"level": "error"' in line or b"Traceback" in line or b"FATAL" in line]
        assert not errors, (file, errors[:3])


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real public data next to the checkout; skips the test without it."""
    import os

    folder = Path(
        os.environ.get("MAKEREADY_TEST_DATA") or Path(__file__).resolve().parents[2].parent / "shared" / "data"
    )
    if not folder.is_dir():
        lacks("public-data", "the files are not beside this checkout; set MAKEREADY_TEST_DATA to their folder")
    return folder
