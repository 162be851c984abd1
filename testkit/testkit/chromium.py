"""The browser of the tests and of `make pictures`: Debian's Chromium, or the one that MAKEREADY_CHROMIUM names."""

from __future__ import annotations

import os
import shutil

from testkit.requirements import lacks

OPTIONS = ("--no-sandbox",)  # the tests may run as root
MISSING = "neither MAKEREADY_CHROMIUM nor a program `chromium` names one"


def found() -> str | None:
    """The program's path; None if this machine has none."""
    return os.environ.get("MAKEREADY_CHROMIUM") or shutil.which("chromium")


def program() -> str:
    """The program's path; skips the running test without it."""
    return found() or lacks("chromium", MISSING)
