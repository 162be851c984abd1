"""Patterns of mappings: RE2 ends with any pattern on any text, and refuses what it does not know with its place."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from importing import conditions, mapping_file, numbers, patterns
from importing.errors import ImportFault
from importing.kinds import KINDS
from importing.rows import Faulty
from importing.shapes import Mapped

from .conftest import Write
from .test_examples import DATA, ROOT, here

CPU_SECONDS = 60
"""More than a hundred times what a pattern below takes. With an engine that tries every way it takes years."""
MAPPING = """kind = "tickets"
ignore = {ignore}
{top}
[fields]
external_id = "ID"
property = "ID"
category = {{ constant = "Plumbing" }}
title = {title}
"""


def ends(top: str, title: str, columns: dict[str, str], *, ignore: str = "[]", file: str = "a.csv") -> None:
    """Maps one row in a process that the kernel ends after CPU_SECONDS of computing."""
    text = MAPPING.format(ignore=ignore, top=top, title=title)
    program = (
        "import json, sys; from importing import mapping_file; from importing.kinds import KINDS;"
        "from importing.rows import SourceRow, Faulty; from importing.shapes import Mapped;"
        "text, file, columns = json.load(sys.stdin); shape = None\n"
        "try:\n"
        "    shape = Mapped(mapping_file.parsed(text, 'm', KINDS['tickets']).records[0][1], file)\n"
        "    shape.check_columns(file, list(columns)); row = SourceRow(1, '', columns)\n"
        "    shape.takes(row) and shape.row(row)\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print('ended')"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))

    sent = json.dumps([text, file, columns])
    words = [sys.executable, "-P", "-c", program]
    done = subprocess.run(words, input=sent, capture_output=True, text=True, preexec_fn=limit, check=False)
    assert done.returncode == 0 and done.stdout.endswith("ended\n"), (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("pattern", ["((?:a|a)+)+b", "(a*)*b", "(.*)*(.*)*(.*)*x", "((?:a?){30}a{30})+b"])
def test_a_pattern_ends_with_every_text(pattern: str) -> None:
    title = f"{{ column = \"A\", pattern = '{pattern}' }}"
    ends("", title, {"ID": "1", "A": "a" * 40})
    ends("", title, {"ID": "1", "A": "a" * 100_000})
    ends(f"[skip]\nA = {{ pattern = '{pattern}' }}", '"A"', {"ID": "1", "A": "a" * 100_000})


def test_a_number_a_files_name_and_an_ignored_column_end_too() -> None:
    signs = '{ column = "A", number = { currency = ["€", " "] } }'
    ends("", signs, {"ID": "1", "A": "(" + " " * 500_000 + "x"})
    name = "".join(f"{{p{number}}}a" for number in range(20))
    ends(f'file_name = "{name}b"', '{ constant = "x" }', {"ID": "1"}, file="a" * 250 + ".csv")
    ends("", '{ constant = "x" }', {"ID": "1", "a" * 5000: ""}, ignore='["' + "*a" * 30 + '*b", "*a*"]')


@pytest.mark.parametrize(
    ("pattern", "about"),
    [
        (r"(a)(?=b).", "(?="),
        (r"(?<!x)(a)", "(?<"),
        (r"(a)\1", r"\1"),
        (r"(?P<n>a)(?P=n)", "(?P"),
        (r"(?>a)(b)", "(?>"),
        (r"(a++)", "++"),
        (r"(a)\Z", r"\Z"),
        (r"(\u00e9)", r"\u"),
        (r"(?x) ( a )", "(?x"),
        (r"(a\C)", r"\C"),
        (r"(a{1001})", "{1001}"),
        (r"(\pL{1,1000})", "too large"),
        (r"(", "missing )"),
    ],
)
def test_a_pattern_that_the_engine_does_not_take_is_refused_with_its_place(
    write: Write, pattern: str, about: str
) -> None:
    rule = f"pattern = '{pattern}' }}"
    for top, title, line, where in (
        ("", f'{{ column = "A", {rule}', 8, "fields.title"),
        (f"[only]\nA = {{ {rule}", '"A"', 4, "only.A"),
    ):
        path = write("mapping.toml", MAPPING.format(ignore="[]", top=top, title=title))
        with pytest.raises(ImportFault) as refused:
            mapping_file.load(path, KINDS["tickets"])
        message = str(refused.value)
        assert message.startswith(f"{path}:{line}: {where}: pattern is no regular expression that RE2 takes"), message
        assert about in message


def test_texts_that_are_no_unicode_match_or_not_and_stay_as_they_are() -> None:
    assert patterns.Pattern("(.+)").groups_of("a\ud800é\0") == ["a\ud800é\0"]
    assert patterns.Pattern("([a-z]+)").groups_of("a\ud800") is None
    with pytest.raises(ValueError, match="UTF-8"):
        patterns.Pattern("(\ud800)")


def test_the_differences_from_pythons_engine_are_those_of_the_documentation() -> None:
    words, digits = patterns.Pattern(r"(\w+)"), patterns.Pattern(r"(\d+)")
    assert words.groups_of("Größe") is None and re.fullmatch(r"\w+", "Größe")
    assert digits.groups_of("٣") is None and re.fullmatch(r"\d+", "٣")
    assert patterns.Pattern(r"([\pL\pN_]+)").groups_of("Größe_٣") == ["Größe_٣"]
    assert not patterns.Pattern("(a{,2})").matches("aa") and re.fullmatch("a{,2}", "aa")
    assert not patterns.Pattern(r"a\s").matches("a\u00a0") and re.fullmatch(r"a\s", "a\u00a0")
    assert patterns.Pattern("(?i)(É)").groups_of("é") == ["é"]


class Python:
    """As `patterns.Pattern`, with Python's engine."""

    def __init__(self, text: str) -> None:
        self._compiled = re.compile(text)
        self.groups = self._compiled.groups

    def groups_of(self, text: str) -> Sequence[str] | None:
        match = self._compiled.fullmatch(text)
        return None if match is None else match.groups("")

    def matches(self, text: str) -> bool:
        return self._compiled.fullmatch(text) is not None


FILES = {
    "ablesung": (ROOT / "examples" / "files", "ablesung.csv"),
    "boston": (DATA / "boston-311-housing", "*.csv*"),
    "cambridge-properties": (DATA / "cambridge-meters", "building_floor_roof_areas.csv"),
    "cambridge-electricity": (DATA / "cambridge-meters", "*_electricity_*.csv.gz"),
    "cambridge-gas": (DATA / "cambridge-meters", "*_gas_*.csv.gz"),
    "new-york": (DATA / "nyc-elevators", "*.csv.gz"),
    "toronto-evaluations-pre2023": (DATA / "toronto-rentsafe", "evaluations_pre2023.csv.gz"),
    "toronto-evaluations": (DATA / "toronto-rentsafe", "evaluations_20*.csv.gz"),
    "toronto": (DATA / "toronto-rentsafe", "registrations_*.csv.gz"),
}
ROWS = 3000
"""Of each file."""


def results(mapping: Path, file: Path, rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Of each row and kind of record: whether it is taken, and what it becomes."""
    for kind, file_mapping in mapping_file.read(mapping).records:
        shape = Mapped(file_mapping, file.name)
        for row in rows:
            try:
                yield kind.name, shape.takes(row) and shape.row(row)
            except Faulty as faulty:
                yield kind.name, faulty.fault


@pytest.mark.parametrize("mapping", sorted((ROOT / "examples" / "mappings").glob("*.toml")), ids=lambda path: path.stem)
def test_an_example_makes_the_same_with_both_engines(
    rows: Callable[[Path], list[Any]], mapping: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, form = next(place for name, place in FILES.items() if mapping.stem.startswith(name))
    files = sorted(here(folder).glob(form))
    assert files
    for file in files:
        first_rows = rows(file)[:ROWS]
        results_of_re2 = list(results(mapping, file, first_rows))
        with monkeypatch.context() as patch:
            for module in (conditions, numbers, patterns):
                patch.setattr(module, "Pattern", Python)
            patch.setattr(numbers, "escaped", re.escape)
            patch.setattr(patterns, "escaped", re.escape)
            assert list(results(mapping, file, first_rows)) == results_of_re2, file
        assert sum(1 for _, result in results_of_re2 if isinstance(result, tuple)) > 0
