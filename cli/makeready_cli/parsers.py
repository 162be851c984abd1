"""Declares commands: a parser for each, and groups of commands under a noun."""

from __future__ import annotations

import argparse
from typing import Any, Protocol


class Parser(argparse.ArgumentParser):
    """A command. Options are never abbreviated, so that a new one breaks no script; `--json` may stand anywhere."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")


class Commands(Protocol):
    """The place where a group adds its commands."""

    def add_parser(self, name: str, *, help: str, description: str) -> Parser: ...  # noqa: A002


def command(commands: Commands, name: str, brief: str, description: str = "") -> Parser:
    """A command under its name. brief: a phrase for the list of commands."""
    return commands.add_parser(name, help=brief, description=description or f"{brief[0].upper()}{brief[1:]}.")


def group(commands: Commands, name: str, brief: str) -> Commands:
    """A group: a noun, with its commands as verbs."""
    found: Commands = command(commands, name, brief).add_subparsers(dest="verb", required=True, metavar="COMMAND")
    return found
