"""A whole Makeready, as an operator starts it: the tests speak HTTP to it and run its command line, no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.api_contract import SUMMARIES
from testkit.event_contract import check_envelope, check_unless_changed, place_of
from testkit.processes import free_port

from .hostile_writes import World
from .receiver import Receiver
from .system import System


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells what was counted on the way."""
    for title, summary in SUMMARIES.items():
        terminalreporter.section(title)
        terminalreporter.write(summary)


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """A webhook receiver on loopback, with TLS of a private authority; known to the system as receiver.test."""
    with Receiver(tmp_path_factory.mktemp("receiver")) as running:
        yield running


@pytest.fixture(scope="session")
def published_receivers() -> dict[str, int]:
    """The hosts of the receivers that the guide shows, and the loopback port that each is to listen on."""
    return {f"{language}.test-receivers.example": free_port() for language in ("python", "typescript", "shell")}


@pytest.fixture(scope="session")
def system(
    receiver: Receiver, published_receivers: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[System]:
    """One running system for the session, with its demo company; stopped at the end."""
    running = System(
        tmp_path_factory.mktemp("house") / "state with a space",
        WEBHOOKS_EGRESS_HOSTS=",".join(
            f"{host}=127.0.0.1:{port}" for host, port in {"receiver.test": receiver.port, **published_receivers}.items()
        ),
        WEBHOOKS_EGRESS_CA_FILE=str(receiver.authority_file),
    )
    try:
        running.start()
        yield running
        compare_with_gets(running, receiver)
    finally:
        running.stop()  # also one that did not get ready: nothing may run on after the tests


def compare_with_gets(running: System, receiver: Receiver) -> None:
    """Every delivery is as documented, and the last event of each record tells what its GET does."""
    last: dict[tuple[int, str], dict[str, Any]] = {}
    for delivery in receiver.deliveries:
        found = check_envelope(delivery.body)
        place = place_of(found["data"])
        if place is not None:
            of = found["company_id"], place
            last[of] = max(last.get(of, found), found, key=lambda one: str(one["occurred_at"]))
    compared = 0
    for (company_id, place), found in last.items():
        company = running.companies.get(company_id)
        if company is not None:
            got = running.get(place, company.keys["read"])
            if got.status in (401, 429):  # a test has revoked it, or worn it out
                company.keys["read"] = company.key_for(1, "read")
                got = running.get(place, company.keys["read"])
            if got.status != 403:  # the company is inactive
                assert got.status == 200, got
                compared += check_unless_changed(found, got.json)
    SUMMARIES["Events"] = f"{len(receiver.deliveries):6} deliveries as documented, {compared} records as their GETs\n"


@pytest.fixture(scope="session")
def world(system: System) -> Iterator[World]:
    """A company for hostile requests."""
    made = World.of(system)
    yield made
    made.end()
    SUMMARIES["Hostile requests"] = "".join(
        f"{sum(counts.values()):6} {what}\n"
        + "".join(f"{count:12} {write}\n" for write, count in sorted(counts.items()))
        for what, counts in (("refused, nothing written, no key kept", made.tried), ("never a fault", made.answered))
    )


@pytest.fixture(scope="module")
def no_faults(system: System) -> Iterator[None]:
    """Fails where a process logs an error while a module's tests run, whatever it answers, or what follows from it."""
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
    """Real public data beside the checkout; skips where it is absent."""
    import os

    folder = Path(
        os.environ.get("MAKEREADY_TEST_DATA") or Path(__file__).resolve().parents[2].parent / "shared" / "data"
    )
    if not folder.is_dir():
        pytest.skip("the public data files are not beside this checkout; set MAKEREADY_TEST_DATA to their folder")
    return folder
