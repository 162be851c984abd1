"""`makeready completion SHELL`: commands and options complete themselves at the Tab key."""

from __future__ import annotations

import argparse
import functools

from makeready_cli.output import Answer
from makeready_cli.parsers import Commands, Parser, command

SHELLS = ("bash", "zsh", "fish")


def add(commands: Commands, top: Parser) -> None:
    """top: the whole tree, which the script knows by heart."""
    parser = command(
        commands,
        "completion",
        "print a script with which a shell completes commands and options",
        "Prints a script for the shell, which completes commands, options and their values without starting anything. "
        "bash: makeready completion bash > ~/.local/share/bash-completion/completions/makeready. "
        "zsh: makeready completion zsh > a file _makeready in a folder of $fpath. "
        "fish: makeready completion fish > ~/.config/fish/completions/makeready.fish.",
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="one of: " + ", ".join(SHELLS))
    parser.set_defaults(run=functools.partial(script, top=top), needs_system=False)


async def script(_operator: None, arguments: argparse.Namespace, *, top: Parser) -> Answer:
    """The script."""
    import shtab  # noqa: PLC0415 - only now: each start of the command line would pay for it

    text = shtab.complete(top, shell=arguments.shell)
    return Answer({"shell": arguments.shell, "script": text}, text.rstrip("\n"))
