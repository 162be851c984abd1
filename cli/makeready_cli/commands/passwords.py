"""A password for a command, from standard input: arguments are visible to others."""

from __future__ import annotations

import sys

from makeready_cli.errors import CommandError


def read_password() -> str:
    try:
        password = sys.stdin.readline().rstrip("\r\n")
        password.encode()
    except (UnicodeError, OSError):
        raise CommandError("The password on standard input is not UTF-8 text.") from None
    if not password:
        raise CommandError("There is no password on standard input.")
    return password
