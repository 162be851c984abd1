"""The README names every part, and its examples use names that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import chassis

README = (Path(__file__).parents[1] / "README.md").read_text()
PACKAGE = Path(chassis.__file__).parent


def test_every_part_has_its_heading() -> None:
    headings = re.findall(r"^### `(\w+)`$", README, re.M)
    assert sorted(headings) == sorted(["refusals", *(path.parent.name for path in PACKAGE.glob("*/__init__.py"))])


def test_what_the_examples_import_of_the_chassis_is_there() -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    assert len(examples) == 3
    for example in examples:
        for node in ast.walk(ast.parse(example)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("chassis", "makeready")):
                exec(compile(ast.Module([node], []), "README.md", "exec"), {})
