"""The operator's command line. Exit status: 0 done, 1 failed, 2 usage, 3 rejected rows, or a check that differs."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from makeready_cli.calls import Operator
from makeready_cli.commands import (
    accounts,
    administrators,
    audit,
    companies,
    completion,
    imports,
    inspections,
    keys,
    maintenance,
    meters,
    notices,
    places,
    replicas,
    reports,
    secrets,
    staff,
    status,
    sweeps,
    tickets,
    turns,
    vault,
    vendors,
    wait,
    webhooks,
)
from makeready_cli.errors import CommandError, UsageError, printable
from makeready_cli.output import Answer
from makeready_cli.parsers import COMPANY_VARIABLE, Parser, Version
from makeready_cli.rpc.actor import actor_of
from makeready_cli.system import runtime

GROUPS = (
    companies,
    administrators,
    accounts,
    keys,
    imports,
    staff,
    places,
    meters,
    vendors,
    notices,
    inspections,
    tickets,
    turns,
    maintenance,
    reports,
    audit,
    webhooks,
    vault,
    sweeps,
    wait,
    replicas,
    secrets,
    status,
)


def parser() -> Parser:
    """The whole tree of commands."""
    top = Parser(
        prog="makeready",
        description="Operates the Makeready that runs on MAKEREADY_STATE_DIR (default .state).",
        epilog=f"{COMPANY_VARIABLE} is the company of commands that name none. "
        "Exit status: 0 done, 1 failed, 2 usage, 3 import with rejected rows, or a check that "
        "finds differences.",
    )
    top.add_argument("--version", action=Version, help="print the version of the command line")
    top.set_defaults(json=False)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for group in GROUPS:
        group.add(commands)
    completion.add(commands, top)
    return top


async def answer(arguments: argparse.Namespace) -> Answer:
    """Runs the command. Raises CommandError or UsageError."""
    if not getattr(arguments, "needs_system", True):
        alone: Answer = await arguments.run(None, arguments)
        return alone
    async with Operator(runtime(os.environ)) as operator:
        if (actor := actor_of(arguments)) is not None:
            operator.act_as(actor, getattr(arguments, "company_id", 0))
        result: Answer = await arguments.run(operator, arguments)
        return result


def main(words: Sequence[str] | None = None, tree: Parser | None = None) -> int:
    """Returns the exit status. Every failure prints one line and no stack trace. tree: that of `parser()`, for programs
    that run many commands."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    tree = tree or parser()
    arguments = tree.parse_args(words)
    if arguments.json and getattr(arguments, "csv", False):
        tree.misuse("give either --csv or --json")
    try:
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # from here on a Ctrl-C must end the work well
            signal.signal(signal.SIGINT, signal.default_int_handler)
        result = asyncio.run(answer(arguments))
    except CommandError as failed:
        sys.stderr.write(f"makeready: {printable(str(failed))}\n")
        return 1
    except UsageError as misused:
        tree.misuse(str(misused))
    except KeyboardInterrupt:
        has_imported = arguments.command == "import" and not arguments.dry_run
        advice = " What was imported is kept; running it again goes on from there." if has_imported else ""
        sys.stderr.write(f"makeready: Interrupted.{advice}\n")
        return 1
    except Exception as error:
        if os.environ.get("MAKEREADY_LOG_LEVEL") == "debug":
            raise
        sys.stderr.write(
            f"makeready: Failed unexpectedly: {printable(f'{type(error).__name__}: {error}')} "
            "(MAKEREADY_LOG_LEVEL=debug shows more).\n"
        )
        return 1
    try:
        sys.stdout.write(f"{result.as_json() if arguments.json else result.text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe early; at exit Python would report that once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return result.status
