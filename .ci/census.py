"""`make census`: how much there is to carry. Counts the files that git tracks, or those of a commit (`ARGS=cdd45997`).

What is generated and what is of others, `.gitattributes` says. A count decides nothing; it shows what a change did.
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
FUNCTION_LINES, CLASS_LINES, TEMPLATE_COLUMNS = 60, 300, 140
SOURCES = {".py", ".html", ".css", ".js", ".ts", ".sql", ".proto", ".mako", ".sh"}
TOOLS = {".ci", "bench", "testkit"}
Files = Mapping[PurePath, bytes]


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


def census(files: Files, marks: Mapping[PurePath, str]) -> dict[str, int]:
    """The counts, by what they count."""
    counts: Counter[str] = Counter()
    product: list[str] = []
    for path, content in files.items():
        counts["files"] += 1
        counts["bytes of a clone's files"] += len(content)
        kind = marks.get(path) or ("tests" if _is_of_tests(path) else "product")
        if path.suffix == ".md":
            place = "decisions" if path.parts[:2] == ("docs", "decisions") else "other documents"
            place = f"{kind} documents" if path in marks else place
            counts[f"words of {place}"] += len(content.split())
        elif path.suffix in SOURCES or kind == "generated":
            counts[f"lines, {kind}"] += content.count(b"\n")
        if kind == "product" and path.suffix == ".py":
            product.append(content.decode())
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
    for text in product:
        counts["lines with Any"] += sum(bool(re.search(r"\bAny\b", line)) for line in text.splitlines())
        for name in names(ast.parse(text)):
            counts["empty local names"] += name in EMPTY_NAMES
        for node in ast.walk(ast.parse(text)):
            lines_of = getattr(node, "end_lineno", 0) - getattr(node, "lineno", 0) + 1
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            counts[f"functions above {FUNCTION_LINES} lines"] += is_function and lines_of > FUNCTION_LINES
            counts[f"classes above {CLASS_LINES} lines"] += isinstance(node, ast.ClassDef) and lines_of > CLASS_LINES
    return dict(counts)


def _is_of_tests(path: PurePath) -> bool:
    return path.parts[0] in TOOLS or "tests" in path.parts or path.name == "conftest.py"


def _exceptions(contracts: str) -> list[int]:
    """The number of imports of each list `ignore_imports`."""
    return [found.count("->") for found in re.findall(r"^ignore_imports =((?:\n[ #].*)*)", contracts, re.MULTILINE)]


def names(tree: ast.Module) -> Iterator[str]:
    """The names of parameters, of locals and of the targets of loops, as often as they are bound."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from (node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def main(arguments: list[str]) -> int:
    """Prints the counts."""
    files = of_commit(arguments[0]) if arguments else tracked()
    for name, count in census(files, not_ours(files)).items():
        sys.stdout.write(f"{count:>12,}  {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
