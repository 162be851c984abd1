"""What a command is made of, and what commands say."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from makeready_client import errors
from makeready_client.client import Makeready


class UsageError(Exception):
    """Arguments that do not fit together; the text is the one line that the user reads."""


def _no_arguments(_: argparse.ArgumentParser) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the command line.

    name: a word, or two as in `events tail`. help: its line in the list of commands. run: does it and returns the exit
    status; it may set `arguments.interrupted`, a function that returns the exit status after a Ctrl-C. arguments: adds
    its arguments to its parser. description: more than `help`, for its own help.
    """

    name: str
    help: str
    run: Callable[[Makeready, argparse.Namespace], int]
    arguments: Callable[[argparse.ArgumentParser], None] = _no_arguments
    description: str | None = None


def say(text: str) -> None:
    """Prints a line."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has enough
        os._exit(0)


def printable(text: str) -> str:
    """The text without what could move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def warn(text: str) -> None:
    """Prints a line to stderr."""
    sys.stderr.write(f"makeready-client: {text}\n")


def warn_of_retry(error: errors.MakereadyError, seconds: float) -> None:
    """Says that a request is repeated."""
    warn(f"trying again in {seconds:.0f} s: {error}")
