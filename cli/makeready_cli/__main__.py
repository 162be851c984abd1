"""`makeready`: starts the operator's command line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    # The imports take half a second. A Ctrl-C during them ends the process at once, without a stack trace.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from makeready_cli import program  # noqa: PLC0415 - only now, for the reason above

    return program.main(words)


if __name__ == "__main__":
    sys.exit(main())
