"""`make test`: the test folders as shards, two at a time, each with servers of its own.

Most of a shard's time is waiting for its own processes, and its servers and services end with it. The longest shards
start first, so that both lanes end together. The output of a shard is printed when it has ended. With arguments for
pytest there is one run, of what they name. Ends with 1 where a test failed.
"""

import queue
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

LANES = 2
# The folders that take longest, in this order; then the others as pyproject.toml lists them.
LONGEST = (
    "tests/e2e",
    "svc-webhooks/tests",
    "tests/chaos",
    "svc-tickets/tests",
    "deploy/local/tests",
    "gateway/tests",
    "svc-catalog/tests",
    "svc-occupancy/tests",
)
NO_TESTS = 5  # pytest's exit status where a folder has none


def main() -> int:
    """Runs pytest once for each folder, or once with the arguments that were given."""
    pytest = [sys.executable, "-P", "-m", "pytest"]
    if arguments := sys.argv[1:]:
        return subprocess.call([*pytest, *arguments])  # noqa: S603
    started = time.monotonic()
    settings = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    folders: list[str] = settings["testpaths"]
    shards: queue.SimpleQueue[str] = queue.SimpleQueue()
    for folder in sorted(folders, key=lambda one: LONGEST.index(one) if one in LONGEST else len(LONGEST)):
        shards.put(folder)
    failed: list[str] = []
    printing = threading.Lock()
    lanes = [threading.Thread(target=lane, args=(pytest, shards, failed, printing)) for _ in range(LANES)]
    for one in lanes:
        one.start()
    try:
        for one in lanes:
            one.join()
    except KeyboardInterrupt:  # each shard was interrupted too
        while not shards.empty():
            shards.get_nowait()
        return 130
    ended = f"FAILED: {', '.join(failed)}" if failed else "all passed"
    say(f"{len(folders)} shards ended after {time.monotonic() - started:.0f} s: {ended}")
    return 1 if failed else 0


def lane(pytest: list[str], shards: "queue.SimpleQueue[str]", failed: list[str], printing: threading.Lock) -> None:
    """Runs shards until none is left."""
    while True:
        try:
            folder = shards.get_nowait()
        except queue.Empty:
            return
        started = time.monotonic()
        with tempfile.TemporaryFile() as output:
            command = [*pytest, "-p", "no:cacheprovider", folder]
            status = subprocess.call(command, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603
            if status not in (0, NO_TESTS):
                failed.append(folder)
            with printing:
                say(f"{folder}, {time.monotonic() - started:.0f} s")
                output.seek(0)
                sys.stdout.buffer.write(output.read())
                sys.stdout.buffer.flush()


def say(text: str) -> None:
    """Prints one line of the run's own."""
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
