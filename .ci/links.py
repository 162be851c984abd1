"""Links between documents lead somewhere: `python .ci/links.py [TREE]` names each that does not, and exits with 1.

A link of a Markdown file may name a file or folder of the repository and a heading in it, as GitHub names headings.
Addresses of other sites are not asked.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The benchmark writes docs/performance.md and others from texts with the same links.
TEMPLATES, PAGES = Path("bench/harness"), Path("docs")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a (?:id|name)=\"(?P<name>[^\"]+)\"")
OTHER_SITE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def main(root: Path) -> int:
    """Checks every Markdown file below a folder; returns the exit status."""
    documents = (path.relative_to(root) for path in sorted(root.rglob("*.md")))
    problems = [line for document in documents if is_ours(document) for line in broken(root, document)]
    sys.stdout.write("".join(f"{line}\n" for line in problems))
    return 1 if problems else 0


def is_ours(document: Path) -> bool:
    """Whether it is no file of a package, of an environment or of a cache."""
    return not any(part.startswith(".") or part in ("node_modules", "build") for part in document.parts)


def broken(root: Path, document: Path) -> Iterator[str]:
    """One sentence for each link of the document that leads nowhere."""
    text = (root / document).read_text()
    folder = PAGES if document.parent == TEMPLATES else document.parent
    bare = FENCE.sub(lambda match: "\n" * match.group().count("\n"), text)
    for match in LINK.finditer(bare):
        target = match["target"]
        if OTHER_SITE.match(target):
            continue
        path, _, heading = target.partition("#")
        destination = root / folder / path if path else root / document
        line = bare.count("\n", 0, match.start()) + 1
        if not destination.exists():
            yield f"{document}:{line}: {target}: there is no such file"
        elif heading and destination.suffix == ".md" and heading not in headings(destination.read_text()):
            yield f"{document}:{line}: {target}: there is no such heading"


def headings(text: str) -> set[str]:
    """The names under which a Markdown file's headings are linked: `## Three servers` is `three-servers`.

    A repeated heading gets a number: `#steps`, `#steps-1`.
    """
    bare = FENCE.sub("", text)
    seen: Counter[str] = Counter()
    names = {match["name"] for match in ANCHOR.finditer(bare)}
    for match in HEADING.finditer(bare):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match["text"])
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT))
