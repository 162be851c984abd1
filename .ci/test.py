"""`make test`: two halves of the tests side by side, for most of their time they wait for processes of their own.

What several services do together (`tests/`) is told as it goes; what each does by itself is told when it has ended.
With arguments for pytest there is one run, of what they name. Ends with 1 where a test failed.
"""

import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

TOGETHER = "tests/"


def main() -> int:
    """Runs pytest, once or twice at once."""
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
            beside.wait()  # it was interrupted too
            return 130
        finally:
            told.seek(0)
            sys.stdout.buffer.write(told.read())
            sys.stdout.buffer.flush()
    say(f"both halves ended after {time.monotonic() - started:.0f} s: {'FAILED' if any(failed) else 'all passed'}")
    return 1 if any(failed) else 0


def say(text: str) -> None:
    """One line for whoever waits."""
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
