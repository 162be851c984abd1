"""`python -m reference` writes the records next to the protos, the kinds of imports, the document, the event catalogue
and the generated modules of the client libraries; and the pages, which are not committed (`reference.served`).

`check` reports the files that it would change, and changes that break the released contract; `release` stores the
contract as released.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from reference import (
    catalogue,
    clients,
    document,
    fakes,
    gate,
    imports,
    python_client,
    records,
    served,
    typescript_client,
)
from reference.structs import Undescribed

RELEASED = document.ROOT / "openapi" / "released.json"
KINDS = document.ROOT / "importing" / "importing" / "kinds.json"
PYTHON_CLIENT = document.ROOT / "sdk" / "python" / "makeready_client"
TYPESCRIPT_CLIENT = document.ROOT / "sdk" / "typescript" / "src"
IMPORTS_PAGE = document.ROOT / "docs" / "imports.md"


def main(arguments: list[str]) -> int:
    """Writes the files that differ; with `check` it only reports them."""
    if arguments not in ([], ["check"], ["release"]):
        sys.stderr.write("usage: python -m reference [check|release]\n")
        return 2
    try:
        if arguments == ["release"]:
            RELEASED.write_text(printed(gate.bare(document.made())))
            return 0
        different = [file for file, text in _made() if _differs(file, text, write=not arguments)]
    except (Undescribed, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if not arguments:
        served.write()
    for file in different:
        sys.stdout.write(f"{file.relative_to(document.ROOT)}: {'differs' if arguments else 'written'}\n")
    if arguments and different:
        sys.stdout.write("run `make openapi`\n")
    broken = gate.problems(json.loads(RELEASED.read_text()), document.made()) if arguments else []
    for problem in broken:
        sys.stdout.write(f"breaks the contract as released: {problem}\n")
    return 1 if arguments and (different or broken) else 0


def _made() -> Iterator[tuple[Path, str]]:
    """Each generated file and its text. Later files are made from earlier ones."""
    for context in records.CONTEXTS:
        schemas = records.document(context)
        if schemas["$defs"]:
            yield document.records_file(context), printed(schemas)
    yield KINDS, printed(imports.document())
    yield IMPORTS_PAGE, imports.with_table(IMPORTS_PAGE.read_text())
    contract = document.made()
    yield served.DOCUMENT, printed(contract)
    events = catalogue.markdown(contract["components"]["schemas"])
    yield served.CATALOGUE, catalogue.GENERATED + events
    described = clients.described(contract)
    for name, text in python_client.modules(described).items():
        yield PYTHON_CLIENT / name, text
    played = fakes.contract(contract)
    yield PYTHON_CLIENT / "testing" / "contract.json", fakes.text(played)
    yield TYPESCRIPT_CLIENT / "contract.ts", fakes.module(played)
    for name, text in typescript_client.modules(described).items():
        yield TYPESCRIPT_CLIENT / name, text


def printed(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _differs(file: Path, text: str, *, write: bool) -> bool:
    if file.exists() and file.read_text() == text:
        return False
    if write:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
