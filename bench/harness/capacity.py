"""The parts of docs/capacity.md that follow from a run: the text around them is written by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.deliveries import Delivered
from harness.measure import Result
from harness.readings import Imported
from harness.sides import OURS

NAMES = ("costs", "arithmetic")
_UNITS = 1_000_000
_BACKLOG = 1_000_000
_WORDS = {
    "one ticket": "read one ticket",
    "a create": "create a ticket, with its event and its words for search",
    "a status change": "change a status, with its event",
}


def filled(text: str, results: Sequence[Result], imports: Sequence[Imported], sent: Delivered) -> str:
    """The page with the parts of this run. Raises ValueError if it lacks the place of one."""
    parts = dict(zip(NAMES, (_costs(results, imports, sent), _arithmetic(results, imports, sent)), strict=True))
    for name, part in parts.items():
        begin, end = f"<!-- make bench: {name} -->\n", f"<!-- end of {name} -->"
        places = re.findall(f"{begin}.*?{end}", text, re.S)
        if len(places) != 1:
            raise ValueError(f"docs/capacity.md has no place for {name}: {begin.strip()} … {end}")
        text = text.replace(places[0], f"{begin}\n{part}\n\n{end}")
    return text


def _most(results: Sequence[Result]) -> dict[str, Result]:
    """By workload, those with the most connections."""
    return {result.workload.name: result for result in sorted(results, key=lambda result: result.connections)}


def _postgres(result: Result) -> float:
    """Milliseconds of PostgreSQL's CPU a request."""
    of_postgres = sorted(block.cpu["postgres"] for block in result.blocks[OURS])
    return 1000 * of_postgres[len(of_postgres) // 2]


def _costs(results: Sequence[Result], imports: Sequence[Imported], sent: Delivered) -> str:
    rows = [
        (_WORDS.get(name, name), result.milliseconds(OURS), _postgres(result))
        for name, result in _most(results).items()
    ]
    pair = sorted(sent.pairs, key=lambda pair: pair.total)[len(sent.pairs) // 2]
    rows.append(("a delivery: claimed, signed, sent, recorded", 1000 * pair.total, 1000 * pair.ours["postgres"]))
    new = imports[0]
    of_reading = {name: 1000 * new.cpu[name] / new.rows for name in ("svc-catalog", "postgres")}
    rows.append(("a reading from a file (without the command line)", sum(of_reading.values()), of_reading["postgres"]))
    return "\n".join(
        (
            "| operation | CPU ms, all processes | of these PostgreSQL | a core does |",
            "|---|---:|---:|---:|",
            *(
                f"| {name} | {_short(total)} | {_short(of_postgres)} | {1000 / total:,.0f} a second |"
                for name, total, of_postgres in rows
            ),
        )
    )


def _arithmetic(results: Sequence[Result], imports: Sequence[Imported], sent: Delivered) -> str:
    most = _most(results)
    read, create, change = most["one ticket"], most["a create"], most["a status change"]
    a_second = imports[0].rows_a_second
    delivery = 1 / sent.a_second
    ticket = create.milliseconds(OURS) + 3 * change.milliseconds(OURS) + 8000 * delivery
    held = [(1000 / result.milliseconds(OURS), _postgres(result)) for result in (read, change)]
    lines = [
        ("a core of PostgreSQL alone carries, creates a second", f"{1000 / _postgres(create):,.0f}"),
        ("status changes a second", f"{1000 / _postgres(change):,.0f}"),
        ("a ticket: a create, three changes of status, eight deliveries", f"{ticket:.1f} ms of a core"),
        *(
            (f"connections to PostgreSQL that {many:,.0f} {name} a second hold", f"{many * cost / 1000:.2f}")
            for name, (many, cost) in zip(("reads", "status changes"), held, strict=True)
        ),
        (
            f"a day's hourly readings of {_UNITS:,} units",
            f"{24 * _UNITS / a_second / 60:.0f} minutes of one import",
        ),
        (f"a backlog of {_BACKLOG:,} deliveries", f"{_BACKLOG * delivery:.0f} s of a core"),
    ]
    return "\n".join(("| what follows | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in lines)))


def _short(milliseconds: float) -> str:
    return f"{milliseconds:.3f}" if milliseconds < 0.1 else f"{milliseconds:.2f}"
