"""The content of log lines: no secrets, no bodies."""

import subprocess
import sys

PROGRAM = """
import structlog
from chassis.runtime import logs
logs.configure("test")
log = structlog.get_logger("test")

def fails():
    secret = "hunter2"
    raise ValueError("it failed")

try:
    fails()
except ValueError:
    log.exception("fault", token="hunter2", authorization="hunter2", secret="hunter2", reason="known")
"""


def test_a_logged_exception_has_place_and_reason_but_no_local_variable_and_no_secret() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "it failed" in done.stderr and '"reason": "known"' in done.stderr and "fails" in done.stderr
    assert "hunter2" not in done.stderr
