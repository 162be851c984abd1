"""`make test`: two halves of the tests side by side, for most of their time they wait for processes of their own.

What several services do together (`tests/`) is told as it goes; what each does by itself is told when it has ended.
With arguments for pytest there is one run, of what they name. Ends with 1 where a test failed.
"""

import subprocess
import sys
import tempfile
import time

TOGETHER = "tests"


def main() -> int:
    """Runs pytest, once or twice at once."""
    pytest = [sys.executable, "-P", "-m", "pytest"]
    if given := sys.argv[1:]:
        return subprocess.call([*pytest, *given])  # noqa: S603
    started = time.monotonic()
    with tempfile.TemporaryFile() as told:
        parts = [*pytest, f"--ignore={TOGETHER}", "-p", "no:cacheprovider"]
        beside = subprocess.Popen(parts, stdout=told, stderr=subprocess.STDOUT)  # noqa: S603
        try:
            say(f"{TOGETHER} follows; all others run beside it and are told at the end")
            failed = [subprocess.call([*pytest, TOGETHER])]  # noqa: S603
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
