"""The content of log lines: no secrets, no bodies; and their number."""

import json
import subprocess
import sys
from collections import Counter

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


FLOOD = """
import asyncio, logging, structlog
from chassis.runtime import logs
logs.configure("test", "debug")
logs.WINDOW_SECONDS = 0.5
log = structlog.stdlib.get_logger("test")

async def flood():
    reporting = asyncio.create_task(logs.report_left_out())
    for window in range(2):
        for number in range(100):  # within the window, on a slow machine too
            log.warning("refused", rpc="Echo", number=number)
            log.warning("refused", rpc="Other" if number < 30 else None)
            log.debug("answered")
            logging.getLogger("library").error("it failed: %s", number)
        log.warning("refused", rpc="Rare")
        await asyncio.sleep(1)
    log.error("refused", rpc="Echo")
    for number in range(25):
        log.info("last")
    reporting.cancel()
    await asyncio.wait({reporting})

asyncio.run(flood())
"""


def test_a_flood_of_one_event_is_counted_and_leaves_room_for_others() -> None:
    done = subprocess.run([sys.executable, "-c", FLOOD], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    counts = Counter(
        (line["event"], line.get("rpc"), line["level"]) for line in lines if line["event"] != "lines_left_out"
    )
    failed = sum(count for (event, _, _), count in counts.items() if event.startswith("it failed"))
    assert failed == 40 and counts["answered", None, "debug"] == 200
    assert counts["refused", "Echo", "warning"] == counts["refused", "Other", "warning"] == 40
    assert (counts["refused", "Rare", "warning"], counts["refused", "Echo", "error"]) == (2, 1)
    left_out = [(line["of"], line.get("rpc"), line["level"], line["lines"]) for line in lines if "of" in line]
    assert left_out.count(("refused", "Echo", "warning", 80)) == 2
    assert left_out.count(("refused", "Other", "warning", 10)) == 2
    assert left_out.count(("refused", None, "warning", 50)) == 2
    assert left_out.count(("last", None, "info", 5)) == 1, "what is left is reported at the end"
    assert len(left_out) == 9, "and the library's two"
