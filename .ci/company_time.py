"""Finds reads of the time in a context that do not ask its company's clock (`chassis.schedule.clocks`).

A sandbox's clock can be moved (docs/decisions/instants.md). An instant that comes from the machine or from PostgreSQL
is not on it. What has the real clock's instants (the outbox, the ledger, the audit log, leases) is in the chassis, or
is listed here.

    python .ci/company_time.py [ROOT]
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CONTEXTS = ("svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
# Reads that are meant, by file.
REAL = {
    "svc-webhooks/svc_webhooks/__main__.py": {"clocks.real"},  # days of event ids
    "svc-webhooks/svc_webhooks/administration/service/attempts.py": {"dependencies.clocks.real"},  # age of a signature
    "svc-webhooks/svc_webhooks/administration/service/deliveries.py": {
        "self._dependencies.clocks.real",  # a sweep of live companies
        "dependencies.clocks.real",  # a signature
    },
    "svc-webhooks/svc_webhooks/dispatch/queries/claims.py": {"uptime", "func.now", "func.clock_timestamp"},  # leases
    "svc-webhooks/svc_webhooks/dispatch/sandboxes.py": {"self._clocks.real"},  # how far a clock is ahead
    "svc-webhooks/svc_webhooks/dispatch/scheduler.py": {"clocks.real"},  # slots of live companies
    "svc-webhooks/svc_webhooks/dispatch/sender.py": {"uptime", "self._clocks.real"},  # a lease's age, a signature
    "svc-webhooks/svc_webhooks/events/queries/events.py": {"clock_timestamp()"},  # to which the offset is added
    "svc-webhooks/svc_webhooks/events/queries/partitions.py": {"func.now"},  # days of event ids
    "svc-webhooks/svc_webhooks/feed/queries/replays.py": {"func.now"},  # leases
    "svc-webhooks/svc_webhooks/feed/replays.py": {"self._clocks.real"},  # days, live companies
    "svc-webhooks/svc_webhooks/tables/deliveries.py": {"clock_timestamp()"},  # of receivers, which have no company
    "svc-webhooks/svc_webhooks/tables/events.py": {"clock_timestamp()"},  # to which the offset is added
    "svc-webhooks/svc_webhooks/tables/subscriptions.py": {"clock_timestamp()"},  # the order of erasures
}
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
        problem
        for context in CONTEXTS
        for path in sorted((root / context / context.replace("-", "_")).rglob("*.py"))
        if "migrations" not in path.parts
        for problem in problems_of(path, str(path.relative_to(root)))
    ]
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    return 1 if problems else 0


def problems_of(path: Path, name: str) -> Iterator[str]:
    """The reads that are not meant, and those that are said to be and are gone."""
    meant, reads_there = REAL.get(name, set()), set[str]()
    for line, read in sorted(set(reads(ast.parse(path.read_text(), str(path))))):
        reads_there.add(read)
        if read not in meant:
            yield f"{name}:{line}: {read} is not its company's clock; ask chassis.schedule.clocks"
    for read in sorted(meant - reads_there):
        yield f"{name}: {read} is listed in REAL and is not there"


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
