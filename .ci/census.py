"""`make census`: how much there is to carry. Counts the files that git tracks, or those of a commit (`ARGS=cdd45997`).

`.gitattributes` says what is generated and what is of others. Most counts decide nothing; they show what a change did.
`census.py check` refuses what must stay at none: names that say nothing, and in the product functions of more than 60
lines or 8 parameters, and classes of more than 300 lines. It prints each, and exits with 1 if there is one. Migrations
are history: neither the counts of code nor the check look at them.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[1]
# Names that say nothing about what they hold.
EMPTY_NAMES = {
    "one",
    "found",
    "made",
    "wanted",
    "given",
    "own",
    "some",
    "asked",
    "said",
    "known",
    "shown",
    "left",
    "rest",
    "such",
    "thing",
    "it",
    "what",
    "whose",
    "of",
}
FUNCTION_LINES, FUNCTION_PARAMETERS, CLASS_LINES, TEMPLATE_COLUMNS = 60, 8, 300, 140
SOURCES = {".py", ".html", ".css", ".js", ".ts", ".sql", ".proto", ".mako", ".sh"}
TOOLS = {".ci", "bench", "testkit"}
# What a command writes into a document that is written by hand otherwise.
PART = re.compile(r"<!-- [^>]*\bmake [^>]*-->.*?<!-- end of .*?-->", re.DOTALL)
LONG_FUNCTION = f"functions above {FUNCTION_LINES} lines"
MANY_PARAMETERS = f"functions above {FUNCTION_PARAMETERS} parameters"
LONG_CLASS = f"classes above {CLASS_LINES} lines"
EXCESSES = (LONG_FUNCTION, MANY_PARAMETERS, LONG_CLASS)
Files = Mapping[PurePath, bytes]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def tracked() -> dict[PurePath, bytes]:
    """The files that git tracks, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    paths = [PurePath(name) for name in listed.stdout.split("\0") if name]
    return {path: (ROOT / path).read_bytes() for path in paths if (ROOT / path).is_file()}


def of_commit(commit: str) -> dict[PurePath, bytes]:
    """The files of a commit."""
    packed = subprocess.run(["git", "archive", "--", commit], cwd=ROOT, capture_output=True, check=True)  # noqa: S603, S607
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {PurePath(member.name): _content(archive, member) for member in members}


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def not_ours(files: Files) -> dict[PurePath, str]:
    """`generated` or `vendored`, for the files that `.gitattributes` marks so."""
    words = ["git", "check-attr", "-z", "--stdin", "linguist-generated", "linguist-vendored"]
    names = "\0".join(map(str, files)) + "\0"
    done = subprocess.run(words, cwd=ROOT, input=names, capture_output=True, text=True, check=True)  # noqa: S603
    fields = done.stdout.split("\0")
    triples = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
    return {PurePath(name): attribute.removeprefix("linguist-") for name, attribute, value in triples if value == "set"}


def _words(text: str) -> int:
    """What has a letter or a digit between blanks: no stroke of a table, no mark of a list."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def census(files: Files, marks: Mapping[PurePath, str]) -> dict[str, int]:
    """The counts, by what they count."""
    counts: Counter[str] = Counter()
    product: list[str] = []
    tests: list[str] = []
    counts.update(dict.fromkeys(EXCESSES, 0))
    for path, content in files.items():
        counts["files"] += 1
        counts["bytes of a clone's files"] += len(content)
        kind = marks.get(path) or ("tests" if is_of_tests(path) else "product")
        if path.suffix == ".md":
            place = "decisions" if path.parts[:2] == ("docs", "decisions") else "other documents"
            place = f"{kind} documents" if path in marks else place
            text = content.decode()
            by_hand = PART.sub("", text)
            counts[f"words of {place}"] += _words(by_hand)
            counts["words of generated documents"] += _words(text) - _words(by_hand)
        elif path.suffix in SOURCES or kind == "generated":
            counts[f"lines, {kind}"] += content.count(b"\n")
        if kind in {"product", "tests"} and path.suffix == ".py" and not is_of_migrations(path):
            (product if kind == "product" else tests).append(content.decode())
        if kind == "product" and path.suffix == ".html":
            lines = content.decode().splitlines()
            counts[f"lines of templates above {TEMPLATE_COLUMNS} columns"] += sum(
                len(line) > TEMPLATE_COLUMNS for line in lines
            )
    contracts = files.get(PurePath(".importlinter"), b"").decode()
    counts["import contracts"] = contracts.count("[importlinter:contract:")
    counts["lines of import contracts"] = contracts.count("\n")
    counts["exceptions of import contracts"] = sum(_exceptions(contracts))
    counts["longest list of exceptions"] = max(_exceptions(contracts), default=0)
    counts["empty names, tests"] = sum(name in EMPTY_NAMES for text in tests for _, name in names(ast.parse(text)))
    for text in product:
        tree = ast.parse(text)
        counts["lines with Any"] += sum(bool(re.search(r"\bAny\b", line)) for line in text.splitlines())
        counts["empty names, product"] += sum(name in EMPTY_NAMES for _, name in names(tree))
        for _, _, excess in excesses(tree):
            counts[excess] += 1
    return dict(counts)


def is_of_migrations(path: PurePath) -> bool:
    """Whether a file is one of a context's migrations."""
    return path.parts[-3:-1] == ("migrations", "versions")


def is_of_tests(path: PurePath) -> bool:
    """Whether a file is of tests or of a tool, and no part of the product."""
    return path.parts[0] in TOOLS or "tests" in path.parts or path.name == "conftest.py"


def _exceptions(contracts: str) -> list[int]:
    """The number of imports of each list `ignore_imports`."""
    return [imports.count("->") for imports in re.findall(r"^ignore_imports =((?:\n[ #].*)*)", contracts, re.MULTILINE)]


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of parameters, locals and targets of loops and comprehensions, as often as they are bound."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def excesses(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """(line, dotted name, excess) of each function and class that is too large; the excess is one of `EXCESSES`."""
    for name, node in _definitions(tree, ""):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if isinstance(node, ast.ClassDef):
            if lines > CLASS_LINES:
                yield node.lineno, name, LONG_CLASS
            continue
        if lines > FUNCTION_LINES:
            yield node.lineno, name, LONG_FUNCTION
        if _parameters(node.args) > FUNCTION_PARAMETERS:
            yield node.lineno, name, MANY_PARAMETERS


def _definitions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, Definition):
            yield f"{prefix}{node.name}", node
            yield from _definitions(node, f"{prefix}{node.name}.")
        else:
            yield from _definitions(node, prefix)


def _parameters(arguments: ast.arguments) -> int:
    """The number of parameters that a caller may give: without `self` and `cls`."""
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    variadic = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return len(positional) - (positional[:1] in (["self"], ["cls"])) + len(arguments.kwonlyargs) + len(variadic)


def problems(files: Files, marks: Mapping[PurePath, str]) -> list[str]:
    """What `check` refuses, one sentence each."""
    refused: list[str] = []
    for path, content in sorted(files.items()):
        if path.suffix != ".py" or path in marks or is_of_migrations(path):
            continue
        tree = ast.parse(content)
        refused += [
            f"{path}:{line}: the name {name} does not say what it holds"
            for line, name in names(tree)
            if name in EMPTY_NAMES
        ]
        if not is_of_tests(path):
            refused += [f"{path}:{line}: {name} is one of the {excess}" for line, name, excess in excesses(tree)]
    return refused


def main(arguments: list[str]) -> int:
    """Prints the counts, or what `check` refuses."""
    if arguments == ["check"]:
        refused = problems(files := tracked(), not_ours(files))
        sys.stdout.write("".join(f"{line}\n" for line in refused))
        return 1 if refused else 0
    files = of_commit(arguments[0]) if arguments else tracked()
    for name, count in census(files, not_ours(files)).items():
        sys.stdout.write(f"{count:>12,}  {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
