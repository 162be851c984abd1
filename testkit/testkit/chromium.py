"""The browser of the tests and of `make pictures`: Debian's Chromium, or the one that MAKEREADY_CHROMIUM names.

The package `chromium-headless-shell` is taken first: it opens no windows that nobody sees, and a page in a new context
costs 0.2 s of CPU instead of 1.2.
"""

from __future__ import annotations

import os
import shutil

from testkit.requirements import lacks

# The tests may run as root. A page of a test lives for a second: to compile its scripts for speed took a sixth of the
# CPU of all of a page's work, and made nothing quicker.
OPTIONS = ("--no-sandbox", "--js-flags=--no-opt,--no-maglev")
PROGRAMS = ("chromium-headless-shell", "chromium")
MISSING = f"neither MAKEREADY_CHROMIUM names one nor is there a program {' or '.join(PROGRAMS)}"


def found() -> str | None:
    """The program's path; None if this machine has none."""
    return os.environ.get("MAKEREADY_CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


def program() -> str:
    """The program's path; skips the running test without it."""
    return found() or lacks("chromium", MISSING)
