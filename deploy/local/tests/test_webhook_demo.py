"""`make demo` as a user runs it: its output, and that nothing of it remains."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.plugin import server_folder

from .installation import System, wait_for


@pytest.fixture
def folder() -> Iterator[Path]:
    """The folder in which the demo makes its own."""
    with server_folder() as path:
        place = path / "somewhere"
        place.mkdir(mode=0o711)
        yield place
        wait_for(lambda: System(place).remains() == [], 60)


def start(folder: Path, *words: str, **settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "makeready_local.webhook_demo", *words],
        env=os.environ | {"TMPDIR": str(folder)} | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_the_tour_shows_deliveries_verified_a_failure_its_retry_and_the_record(folder: Path) -> None:
    # The demo must ignore the user's settings for their own installation.
    demo = start(folder, "--once", MAKEREADY_API_PORT="1", MAKEREADY_STATE_DIR="/proc/nothing", WEBHOOKS_VAULT_KEYS="")
    output, _ = demo.communicate(timeout=180)
    assert demo.returncode == 0, output
    assert "Traceback" not in output and "\033" not in output
    arrived = re.findall(r"delivery +(\S+)  (\S+)  attempt (\d)\n.* signature ok .*\n.* answered (\d+)", output)
    assert [(event, attempt, answered) for event, _, attempt, answered in arrived] == [
        ("ticket.created", "1", "200"),
        ("ticket.status_changed", "1", "500"),
        ("ticket.status_changed", "2", "200"),
        ("ticket.status_changed", "1", "200"),
    ], output
    assert arrived[1][1] == arrived[2][1] and len({event_id for _, event_id, _, _ in arrived}) == 3
    assert "status: In Progress -> On Hold" in output
    assert re.findall(r"GET /webhooks +200  health (\w+)", output)[-1] == "healthy"
    record = output.partition("What is on record")[2]
    assert arrived[1][1] in record
    assert re.findall(r"^ +(\d) .* sweep .* (500|200) ", record, re.MULTILINE) == [("1", "500"), ("2", "200")]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda parameter: parameter.name)
def test_a_tour_that_is_stopped_takes_its_system_along(folder: Path, number: signal.Signals) -> None:
    demo = start(folder)
    assert demo.stdout
    next(line for line in demo.stdout if "Starting PostgreSQL" in line)
    demo.send_signal(number)
    output = demo.stdout.read()
    status = demo.wait(60)
    wait_for(lambda: System(folder).remains() == [], 60)
    assert "Traceback" not in output
    assert status == (0 if number == signal.SIGINT else -signal.SIGKILL), output
    if number == signal.SIGKILL:  # the next demo removes what a killed one could not
        subprocess.run([sys.executable, "-P", "-c", LEFT], env=os.environ | {"TMPDIR": str(folder)}, check=True)
    assert list(folder.iterdir()) == []


LEFT = """
from makeready_local.webhook_demo.installation import Installation
Installation().stop()
"""


def test_a_tour_does_not_take_what_it_does_not_know() -> None:
    command = [sys.executable, "-P", "-m", "makeready_local.webhook_demo", "--twice"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "unrecognized arguments: --twice" in done.stderr


def test_a_tour_whose_system_fails_says_so_in_one_line_and_leaves_the_log_that_it_names(folder: Path) -> None:
    demo = start(folder)
    assert demo.stdout
    next(line for line in demo.stdout if "Migrating" in line)
    (lock,) = folder.glob("*/state/lock")
    runner = int(lock.read_text())
    os.kill(runner, signal.SIGKILL)
    output = demo.stdout.read()
    assert demo.wait(60) == 1 and "Traceback" not in output
    assert len(re.findall(r"^makeready: .+$", output, re.MULTILINE)) == 1, output
    (kept,) = folder.iterdir()
    assert str(kept) in output and (kept / "output").exists()
    wait_for(lambda: System(folder).remains() == [], 60)
