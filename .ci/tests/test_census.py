"""The counts of `make census`, over a few files."""

from __future__ import annotations

import runpy
from pathlib import Path, PurePath

import pytest

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
    "svc-x/svc_x/migrations/versions/0001_initial.py": CODE,
    "svc-x/svc_x/long.py": "class Whole:\n    def all(self):\n" + "        x = 1\n" * 301,
    "svc-x/tests/test_a.py": CODE,
    "gen/a_pb2.py": CODE,
    "console/page.html": "a" * 141 + "\n" + "a" * 140 + "\n",
    "docs/decisions/one.md": "four words stand here\n",
    "README.md": "| two | words |\n- \n<!-- rows: made by `make openapi` -->five words\n<!-- end of rows -->\n",
    "docs/events.md": "three words here\n",
    ".importlinter": "[importlinter:contract:a]\nignore_imports =\n    # why\n    a -> b\n    a -> c\nlayers =\n  a\n",
}
GENERATED = (PurePath("gen/a_pb2.py"), PurePath("docs/events.md"))


MARKS = dict.fromkeys(GENERATED, "generated")


def content(files: dict[str, str]) -> dict[PurePath, bytes]:
    return {PurePath(name): text.encode() for name, text in files.items()}


def counted() -> dict[str, int]:
    counts: dict[str, int] = CENSUS["census"](content(FILES), MARKS)
    return counts


def refused(source: str, path: str = "svc-x/svc_x/a.py") -> list[str]:
    """What the check says about one file."""
    sentences: list[str] = CENSUS["problems"](content({path: source}), MARKS)
    return sentences


def test_lines_are_counted_by_whose_they_are() -> None:
    counts = counted()
    lines = CODE.count("\n")
    assert counts["files"] == len(FILES)
    assert counts["bytes of a clone's files"] == sum(map(len, FILES.values()))
    assert counts["lines, product"] == 2 * lines + 303 + 2
    assert counts["lines, tests"] == counts["lines, generated"] == lines
    assert counts["lines of templates above 140 columns"] == 1
    words = {name: count for name, count in counts.items() if name.startswith("words")}
    assert words == {"words of decisions": 4, "words of other documents": 2, "words of generated documents": 13}


def test_code_is_judged_without_migrations_and_by_whose_it_is() -> None:
    counts = counted()
    assert counts["lines with Any"] == 1
    assert counts["empty names, product"] == counts["empty names, tests"] == 6  # of, one, made, it, left, rest
    assert (counts["functions above 60 lines"], counts["classes above 300 lines"]) == (1, 1)
    assert counts["functions above 8 parameters"] == 0


def test_contracts_are_counted_with_their_exceptions() -> None:
    counts = counted()
    assert (counts["import contracts"], counts["lines of import contracts"]) == (1, 7)
    assert (counts["exceptions of import contracts"], counts["longest list of exceptions"]) == (2, 2)


BOUND = {
    "a local": "def f():\n    {} = 1\n",
    "a local of a type": "def f():\n    {}: int = 1\n",
    "one of two targets": "row, {} = 1, 2\n",
    "a target with a star": "row, *{} = 1, 2\n",
    "a name within an expression": "if {} := 1:\n    pass\n",
    "a loop": "for {} in ():\n    pass\n",
    "a loop that awaits": "async def f():\n    async for {} in rows:\n        pass\n",
    "a comprehension": "rows = [1 for {} in ()]\n",
    "a generator": "rows = (1 for row, {} in ())\n",
    "a parameter": "def f({}):\n    pass\n",
    "a parameter by position": "def f({}, /):\n    pass\n",
    "a parameter by keyword": "async def f(*, {}):\n    pass\n",
    "the other parameters": "def f(*{}):\n    pass\n",
    "the other keywords": "def f(**{}):\n    pass\n",
    "a parameter of a lambda": "f = lambda {}: 1\n",
    "a context manager": "with f() as {}:\n    pass\n",
    "an error": "try:\n    pass\nexcept ValueError as {}:\n    pass\n",
    "a pattern": "match 1:\n    case {}:\n        pass\n",
    "the rest of a pattern": "match 1:\n    case [1, *{}]:\n        pass\n",
    "a field": "class Row:\n    {}: int\n",
}


@pytest.mark.parametrize("kind", BOUND)
def test_a_name_that_says_nothing_is_refused_wherever_it_is_bound(kind: str) -> None:
    for name in sorted(CENSUS["EMPTY_NAMES"]):
        source = BOUND[kind].format(name)
        line = source[: source.index(name)].count("\n") + 1
        assert f"svc-x/svc_x/a.py:{line}: the name {name} does not say what it holds" in refused(source)
    assert refused(BOUND[kind].format("subscription")) == []


def test_names_that_are_only_read_are_not_refused() -> None:
    assert refused("import found\n\nrow = found.own(given=1).left\nrow.rest = 2\ndel row.it\n") == []


@pytest.mark.parametrize(
    "path", ["svc-x/tests/test_a.py", "testkit/testkit/a.py", "bench/a.py", ".ci/a.py", "conftest.py"]
)
def test_names_of_tests_and_tools_are_judged_too(path: str) -> None:
    assert refused("one = 1\n", path) == [f"{path}:1: the name one does not say what it holds"]


@pytest.mark.parametrize("path", ["gen/a_pb2.py", "svc-x/svc_x/migrations/versions/0001_initial.py", "docs/a.md"])
def test_generated_code_and_history_are_not_judged(path: str) -> None:
    assert refused("one = 1\n", path) == []


LARGE = {
    "f is one of the functions above 60 lines": ("def f():\n" + "    x = 1\n" * 60, "def f():\n" + "    x = 1\n" * 59),
    "A.f is one of the functions above 60 lines": (
        "class A:\n    async def f(self):\n" + "        x = 1\n" * 60,
        "class A:\n    async def f(self):\n" + "        x = 1\n" * 59,
    ),
    "A is one of the classes above 300 lines": ("class A:\n" + "    x = 1\n" * 300, "class A:\n" + "    x = 1\n" * 299),
    "f is one of the functions above 8 parameters": (
        "def f(a, /, b, c, d, *e, g, h, i, **j):\n    pass\n",
        "def f(a, /, b, c, d, *e, g, h, **j):\n    pass\n",
    ),
    "A.f is one of the functions above 8 parameters": (
        "class A:\n    def f(self, a, b, c, d, e, g, h, i, j):\n        pass\n",
        "class A:\n    def f(self, a, b, c, d, e, g, h, i):\n        pass\n",
    ),
    "f.g is one of the functions above 60 lines": (
        "if 1:\n    def f():\n        def g():\n" + "            x = 1\n" * 60 + "f = 1\n",
        "if 1:\n    def f():\n        def g():\n" + "            x = 1\n" * 58 + "f = 1\n",
    ),
}


@pytest.mark.parametrize("sentence", LARGE)
def test_what_is_too_large_in_the_product_is_refused(sentence: str) -> None:
    large, largest = LARGE[sentence]
    assert any(line.endswith(sentence) for line in refused(large))
    assert refused(large, "svc-x/tests/test_a.py") == refused(large, "testkit/testkit/a.py") == refused(largest) == []


def test_generated_and_foreign_files_of_this_tree_are_marked() -> None:
    marks = CENSUS["not_ours"](CENSUS["tracked"]())
    marked = {str(path): mark for path, mark in marks.items()}
    assert marked["gateway/gateway/pages/openapi.json"] == "generated"
    assert "vendored" in marked.values() and "gateway/gateway/pages/style.css" not in marked
