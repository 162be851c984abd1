"""`make test` runs two halves of the tests in parallel: most of the time they wait for their processes.

The output of `tests/`, which tests several services together, appears at once. The output of the services' own tests
appears at their end. With arguments for pytest there is one run, of the named tests. Exits with 1 if a test failed.
"""

import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

TOGETHER = "tests/"


def main() -> int:
    """Runs pytest, once or two runs in parallel."""
    pytest = [sys.executable, "-P", "-m", "pytest"]
    if given := sys.argv[1:]:
        return subprocess.call([*pytest, *given])  # noqa: S603
    started = time.monotonic()
    settings = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    folders: list[str] = settings["testpaths"]
    whole = [one for one in folders if one.startswith(TOGETHER)]
    with tempfile.TemporaryFile() as told:
        parts = [one for one in folders if one not in whole]
        command = [*pytest, "-p", "no:cacheprovider", *parts]
        beside = subprocess.Popen(command, stdout=told, stderr=subprocess.STDOUT)  # noqa: S603
        try:
            say(f"{', '.join(whole)} follow; all others run beside it and are told at the end")
            failed = [subprocess.call([*pytest, *whole])]  # noqa: S603
            failed.append(beside.wait())
        except KeyboardInterrupt:
            beside.wait()  # it is interrupted too
            return 130
        finally:
            told.seek(0)
            sys.stdout.buffer.write(told.read())
            sys.stdout.buffer.flush()
    say(f"both halves ended after {time.monotonic() - started:.0f} s: {'FAILED' if any(failed) else 'all passed'}")
    return 1 if any(failed) else 0


def say(text: str) -> None:
    """Prints one line of progress."""
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
