"""`makeready-client`: an API key and HTTP are all it needs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx

from makeready_client import errors
from makeready_client.client import Makeready
from makeready_client.commands import COMMANDS, GROUPS
from makeready_client.commands.command import UsageError, warn
from makeready_client.exchange import __version__

EXIT_CODES = """\
exit status: 0 done; 1 the API refused, or the receiver failed; 2 wrong use; 3 the API was not reached; 130 interrupted
"""
INTERRUPTED = 130  # the exit status


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status. A Ctrl-C ends the process.

    The command runs in a thread of its own, as Python gives a Ctrl-C to the main one. In the middle of a request it
    could come where httpcore has just taken a lock, which nobody would return: closing would wait for it for ever.
    """
    arguments = _parser().parse_args(words)
    arguments.interrupted = lambda: INTERRUPTED
    try:
        return ThreadPoolExecutor(1).submit(_run, arguments).result()
    except KeyboardInterrupt:
        status: int = arguments.interrupted()
        os._exit(status)


def _run(arguments: argparse.Namespace) -> int:
    try:
        with Makeready(arguments.api_key, base_url=arguments.base_url) as client:
            status: int = arguments.run(client, arguments)
            return status
    except (UsageError, ValueError, httpx.InvalidURL) as error:
        return _failed(2, str(error))
    except errors.ConnectionFailed as error:
        return _failed(3, f"not reached: {error}")
    except errors.ApiError as error:
        return _failed(1, str(error))
    except OSError as error:
        return _failed(1, f"{error.filename or 'the system'}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="makeready-client",
        description="The Maintenance and Occupancy Records API on the command line.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=__version__)
    _connecting(parser, default=None)
    parsers = {"": parser.add_subparsers(required=True, metavar="COMMAND")}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if group not in parsers:
            group_parser = parsers[""].add_parser(group, help=GROUPS[group], epilog=EXIT_CODES)
            parsers[group] = group_parser.add_subparsers(
                required=True, metavar="KIND" if group == "list" else "COMMAND"
            )
        subparser = parsers[group].add_parser(
            name, help=command.help, description=command.description or command.help, epilog=EXIT_CODES
        )
        command.arguments(subparser)
        subparser.set_defaults(run=command.run)
        _connecting(subparser, default=argparse.SUPPRESS)  # one that is left out keeps what stands before the command
    return parser


def _connecting(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    text = "else MAKEREADY_API_KEY, which other users cannot see"
    parser.add_argument("--api-key", metavar="KEY", default=default, help=text)
    text = "as https://HOST/api/v1; else MAKEREADY_BASE_URL"
    parser.add_argument("--base-url", metavar="URL", default=default, help=text)


def _failed(status: int, text: str) -> int:
    warn(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
