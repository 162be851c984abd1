"""The counts of `make census`, over a few files."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[2]
CENSUS = runpy.run_path(str(ROOT / ".ci/census.py"))
CODE = """
def busy(of, *, row: Any):
    for one in row:
        made = one
    with open("x") as it:
        pass
    return [left for left in made], lambda rest: rest
"""
FILES = {
    "svc-x/svc_x/a.py": CODE,
    "svc-x/svc_x/long.py": "class Whole:\n    def all(self):\n" + "        x = 1\n" * 301,
    "svc-x/tests/test_a.py": CODE,
    "gen/a_pb2.py": CODE,
    "console/page.html": "a" * 141 + "\n" + "a" * 140 + "\n",
    "docs/decisions/one.md": "four words stand here\n",
    "README.md": "two words\n",
    "docs/events.md": "three words here\n",
    ".importlinter": "[importlinter:contract:a]\nignore_imports =\n    # why\n    a -> b\n    a -> c\nlayers =\n  a\n",
}
GENERATED = (PurePath("gen/a_pb2.py"), PurePath("docs/events.md"))


def counted() -> dict[str, int]:
    files = {PurePath(name): text.encode() for name, text in FILES.items()}
    found: dict[str, int] = CENSUS["census"](files, dict.fromkeys(GENERATED, "generated"))
    return found


def test_lines_are_counted_by_whose_they_are() -> None:
    counts = counted()
    lines = CODE.count("\n")
    assert counts["files"] == len(FILES)
    assert counts["bytes of a clone's files"] == sum(map(len, FILES.values()))
    assert counts["lines, product"] == lines + 303 + 2
    assert counts["lines, tests"] == counts["lines, generated"] == lines
    assert counts["lines of templates above 140 columns"] == 1
    words = {name: count for name, count in counts.items() if name.startswith("words")}
    assert words == {"words of decisions": 4, "words of other documents": 2, "words of generated documents": 3}


def test_only_the_code_of_the_product_is_judged() -> None:
    counts = counted()
    assert counts["lines with Any"] == 1
    assert counts["empty local names"] == 6  # of, one, made, it, left, rest
    assert (counts["functions above 60 lines"], counts["classes above 300 lines"]) == (1, 1)


def test_contracts_are_counted_with_their_exceptions() -> None:
    counts = counted()
    assert (counts["import contracts"], counts["lines of import contracts"]) == (1, 7)
    assert (counts["exceptions of import contracts"], counts["longest list of exceptions"]) == (2, 2)


def test_names_are_those_of_parameters_locals_and_targets() -> None:
    found = list(CENSUS["names"](ast.parse(CODE)))
    assert sorted(found) == ["it", "left", "made", "of", "one", "rest", "row"]


def test_generated_and_foreign_files_of_this_tree_are_marked() -> None:
    marks = CENSUS["not_ours"](CENSUS["tracked"]())
    marked = {str(path): mark for path, mark in marks.items()}
    assert marked["gateway/gateway/pages/openapi.json"] == "generated"
    assert "vendored" in marked.values() and "gateway/gateway/pages/style.css" not in marked
