"""The demo's output, line by line: with colours on a terminal, plain elsewhere."""

import os
import sys
import time

from makeready_local.runner import say

COLOURS = {"good": "32", "bad": "31", "dim": "2", "strong": "1"}


class Screen:
    """Prints lines, each with the seconds since the demo began."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def title(self, text: str) -> None:
        say("\n" + self.styled(text, "strong"))

    def text(self, text: str) -> None:
        say(text)

    def step(self, label: str, outcome: str = "", kind: str = "") -> None:
        """Prints a step and its result. kind: one of COLOURS, or none."""
        since = self.styled(f"{time.monotonic() - self._began:6.1f} s", "dim")
        say(f"{since}  {self.styled(f'{label:<22}{outcome}'.rstrip(), kind)}")

    def styled(self, text: str, kind: str) -> str:
        return f"\033[{COLOURS[kind]}m{text}\033[0m" if self._colours and kind else text
