"""No test waits for something for less than 20 seconds: a machine that is busy makes it fail by chance.

`testkit.patience` has the patience, and `until` and `eventually`. A time that is short on purpose, because nothing is
expected to come or a limit is the matter of the test, says so with a comment `# short: …` on its line.

    python .ci/patience.py [ROOT]
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

LEAST_SECONDS = 20
# The calls that wait, with the place of their seconds.
WAITS = {"timeout": 0, "wait_for": 1, "next_msg": 0, "wait": 0, "join": 0, "settimeout": 0}
TIMEOUTS = ("timeout", "connect_timeout")  # the names of seconds in every call
NAMES = dict.fromkeys((*WAITS, "eventually", "until"), ("seconds", "seconds_max", "patience_seconds"))
SHORT = "# short: "


def main(words: list[str]) -> int:
    root = Path(words[0]) if words else Path(__file__).resolve().parents[1]
    waits = [wait for path in tests(root) for wait in impatient(path, root)]
    sys.stdout.write("".join(f"{wait}\n" for wait in waits))
    return 1 if waits else 0


def tests(root: Path) -> list[Path]:
    """The files of tests and of what they share."""
    folders = [root / "tests", root / ".ci/tests", *root.glob("*/tests"), *root.glob("*/*/tests")]
    return sorted({path for folder in folders for path in folder.rglob("*.py") if ".venv" not in path.parts})


def impatient(path: Path, root: Path) -> Iterator[str]:
    """The waits of a file that give up too early."""
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.For) and (seconds := seconds_of_looks(node)) is not None and seconds < LEAST_SECONDS:
            yield f"{path.relative_to(root)}:{node.lineno}: it looks for {seconds:g} s; use testkit.patience"
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if (seconds := seconds_of(node, WAITS.get(name), NAMES.get(name, ()))) is not None and seconds < LEAST_SECONDS:
            source = lines[node.lineno - 1 : node.end_lineno]
            if not any(SHORT in line for line in source):
                yield f"{path.relative_to(root)}:{node.lineno}: {name} waits for {seconds:g} s; use testkit.patience"


def seconds_of_looks(loop: ast.For) -> float | None:
    """The constant seconds of a loop that looks so many times, with pauses, until it may leave; None for another."""
    times = loop.iter.args if isinstance(loop.iter, ast.Call) and getattr(loop.iter.func, "id", "") == "range" else []
    inside = list(ast.walk(ast.Module(loop.body, [])))
    leaves = any(isinstance(node, ast.Return | ast.Break) for node in inside)
    pauses = [
        seconds
        for node in inside
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sleep"
        if (seconds := seconds_of(node, 0)) is not None
    ]
    if len(times) != 1 or not isinstance(times[0], ast.Constant) or not leaves or len(pauses) != 1:
        return None
    return float(str(times[0].value)) * pauses[0]


def seconds_of(call: ast.Call, place: int | None, names: Collection[str] = ()) -> float | None:
    """The constant seconds of a call, by place or by name; None where it has none."""
    arguments = [keyword.value for keyword in call.keywords if keyword.arg in (*TIMEOUTS, *names)]
    if place is not None:
        arguments += call.args[place : place + 1]
    value = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
