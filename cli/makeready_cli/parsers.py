"""Declares commands: a parser for each, and groups of commands under a noun.

A parser also does what people expect beyond argparse: MAKEREADY_COMPANY stands for a company that is not named, and a
misspelt command or option gets a suggestion.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.metadata
import itertools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol

COMPANY_VARIABLE = "MAKEREADY_COMPANY"
_COMPANY = "company_id"
_CHOICES = re.compile(r"invalid choice: '(?P<given>.*)' \(choose from (?P<choices>.*)\)", re.DOTALL)
_LACKING = "the following arguments are required: "
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


Settings = dict[str, Any]
"""Keyword arguments of argparse's `add_argument`."""


class _MisusedError(Exception):
    """The words fit no command."""

    def __init__(self, parser: Parser, message: str) -> None:
        super().__init__(message)
        self.parser = parser
        self.message = message


class Parser(argparse.ArgumentParser):
    """A command. Options are never abbreviated, so that a new one breaks no script; `--json` may stand anywhere."""

    def __init__(self, **settings: Any) -> None:
        self.verbs: Mapping[str, Parser] = {}
        """The commands below it."""
        self.takes_company = False
        """Whether its first argument is a company's id."""
        super().__init__(allow_abbrev=False, **settings)
        self.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        """As argparse's."""
        self.takes_company = self.takes_company or names == (_COMPANY,)
        return super().add_argument(*names, **settings)

    def add_subparsers(self, **settings: Any) -> Any:
        """As argparse's."""
        subparsers = super().add_subparsers(**settings)
        self.verbs = subparsers.choices
        return subparsers

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """As argparse's. If no company is named where one is needed, it is that of MAKEREADY_COMPANY. Words that are an
        explicit company's in full never change their meaning by the variable."""
        words = self._joined(list(sys.argv[1:] if args is None else args))
        try:
            return super().parse_args(words, namespace)
        except _MisusedError as error:
            misused = error
        command, place = self._command(words)
        company = os.environ.get(COMPANY_VARIABLE, "")
        if command.takes_company and company:
            try:
                return super().parse_args([*words[:place], company, *words[place:]], namespace)
            except _MisusedError as error:
                if not (company.isascii() and company.isdigit()):
                    misused.message = f"{COMPANY_VARIABLE} must be a company's id; `makeready company list` shows them"
                elif misused.message.startswith(_LACKING) or "COMPANY_ID" in misused.message:
                    misused = error
        elif command.takes_company and misused.message.startswith(f"{_LACKING}COMPANY_ID"):
            misused.message += f" ({COMPANY_VARIABLE} can name the company)"
        misused.parser.misuse(misused.message + _suggestion(command, words, misused.message))
        raise AssertionError("misuse ends the program")

    def error(self, message: str) -> NoReturn:
        """Ends the parsing: `parse_args` may try once more."""
        raise _MisusedError(self, message)

    def misuse(self, message: str) -> NoReturn:
        """Prints how the command is used and one line, and ends the program with status 2."""
        super().error(message)

    def _joined(self, words: list[str]) -> list[str]:
        """The words, where two of them are one command: "import undo"."""
        for index, pair in enumerate(itertools.pairwise(words)):
            if "-".join(pair) in self.verbs and pair[0] in self.verbs:
                return [*words[:index], "-".join(pair), *words[index + 2 :]]
        return words

    def _command(self, words: Sequence[str]) -> tuple[Parser, int]:
        """The command that the words name, as far as they do, and the place of the first word after it."""
        parser, place = self, 0
        for index, word in enumerate(words):
            if word.startswith("-"):
                continue  # those before the command take no values
            if word not in parser.verbs:
                break
            parser, place = parser.verbs[word], index + 1
        return parser, place


def _suggestion(command: Parser, words: Sequence[str], message: str) -> str:
    """A question for the commands, values and options that were probably meant; empty without any."""
    meant: list[str] = []
    if wrong := _CHOICES.search(message):
        choices = [choice.strip(" '") for choice in wrong["choices"].split(",")]
        meant += difflib.get_close_matches(wrong["given"], choices, 1)
    options = set(_OPTION.findall(command.format_help()))
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in options:
            meant += difflib.get_close_matches(name, sorted(options), 1)
    return f". Did you mean {' and '.join(dict.fromkeys(meant))}?" if meant else ""


class Version(argparse.Action):
    """Prints the version of the command line."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        sys.stdout.write(f"makeready {importlib.metadata.version('makeready-cli')}\n")
        parser.exit()


class Commands(Protocol):
    """The place where a group adds its commands."""

    def add_parser(self, name: str, *, help: str, description: str) -> Parser: ...  # noqa: A002


def command(commands: Commands, name: str, brief: str, description: str = "") -> Parser:
    """A command under its name. brief: a phrase for the list of commands."""
    return commands.add_parser(name, help=brief, description=description or f"{brief[0].upper()}{brief[1:]}.")


def group(commands: Commands, name: str, brief: str) -> Commands:
    """A group: a noun, with its commands as verbs."""
    commands_of_group: Commands = command(commands, name, brief).add_subparsers(
        dest="verb", required=True, metavar="COMMAND"
    )
    return commands_of_group
