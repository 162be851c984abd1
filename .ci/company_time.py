"""Finds reads of the time in a context that do not ask its company's clock (`chassis.schedule.clocks`).

A sandbox's clock can be moved (docs/decisions/instants.md). An instant that comes from the machine or from PostgreSQL
is not on it. What has the real clock's instants (the outbox, the ledger, the audit log, leases) is in the chassis.

    python .ci/company_time.py [ROOT]
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CONTEXTS = ("svc-catalog", "svc-tickets", "svc-occupancy")
# Of datetime, date, time and instants; `time.monotonic` measures and tells no time.
READS = re.compile(
    r"(?:.*\.)?(?:datetime\.(?:now|utcnow|today)|date\.today|time\.(?:time|time_ns|localtime|gmtime|strftime|ctime)"
    r"|instants\.now|_?clocks\.real|func\.(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|current_\w+"
    r"|localtime\w*))"
)
# Names by which a module gets one of them without its module's name.
IMPORTED = {
    "chassis.schedule.instants": {"now"},
    "chassis.db.statements": {"CLOCK"},
    "chassis.db.clocks": {"real_clock", "uptime"},
    "time": {"time", "time_ns", "localtime", "gmtime", "strftime", "ctime"},
}
# In SQL, also in that of a default.
SQL = re.compile(
    r"\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(\s*\)"
    r"|\b(?:CURRENT_(?:TIMESTAMP|DATE|TIME)|LOCALTIMESTAMP|LOCALTIME)\b",
    re.IGNORECASE,
)


def main() -> int:
    """Prints each read; returns 1 if there is one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    problems = [
        f"{path.relative_to(root)}:{line}: {read} is not its company's clock; ask chassis.schedule.clocks"
        for context in CONTEXTS
        for path in sorted((root / context / context.replace("-", "_")).rglob("*.py"))
        if "migrations" not in path.parts
        for line, read in sorted(set(reads(ast.parse(path.read_text(), str(path)))))
    ]
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    return 1 if problems else 0


def reads(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, what reads the time) of a module."""
    documented = {id(text) for text in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if READS.fullmatch(name):
                yield node.lineno, name
        elif isinstance(node, ast.ImportFrom):
            hidden = IMPORTED.get(node.module or "", set())
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in hidden)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield from ((node.lineno, match.group()) for match in SQL.finditer(node.value))


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Texts that stand alone as statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


if __name__ == "__main__":
    sys.exit(main())
