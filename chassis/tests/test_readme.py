"""The README names every part, and its examples use names that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import chassis

README = (Path(__file__).parents[1] / "README.md").read_text()
PACKAGE = Path(chassis.__file__).parent


def test_every_part_and_module_is_named_under_its_heading() -> None:
    headings = dict(re.findall(r"^### `(\w+)`(?:: (.*))?$", README, re.M))
    parts = {path.parent.name: path.parent for path in PACKAGE.glob("*/__init__.py")}
    assert headings.keys() == {*parts, "refusals"}
    for name, folder in parts.items():
        named = set(re.findall(r"`(\w+)`", headings[name]))
        assert named == {path.stem for path in folder.glob("*.py")} - {"__init__"}, name


def test_what_the_examples_import_of_the_chassis_is_there() -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    assert len(examples) > 10
    for example in examples:
        for node in ast.walk(ast.parse(example)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("chassis", "makeready")):
                exec(compile(ast.Module([node], []), "README.md", "exec"), {})
