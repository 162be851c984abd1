"""The version that every artefact bears, and the image's bill of materials."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".state", "__pycache__", "*_cache", "node_modules", "tests", "gen", ".hypothesis"
)
OTHER = "9.8.7"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scratch copy of the tree."""
    return shutil.copytree(ROOT, tmp_path_factory.mktemp("artefacts") / "tree", ignore=LEFT_OUT)


def run(tree: Path, script: str, *words: str) -> tuple[int, str]:
    """The exit status and the output of a script of the copy."""
    program = [sys.executable, "-P", str(tree / ".ci" / script), *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "place",
    [
        "svc-tickets/pyproject.toml",
        "sdk/typescript/package.json",
        "sdk/typescript/src/core.ts",
        "sdk/python/makeready_client/core.py",
        "deploy/Dockerfile",
        "deploy/README.md",
        "deploy/k8s/base/migrations/gateway.yaml",
        "deploy/k8s/overlays/example/settings/kustomization.yaml",
    ],
)
def test_an_artefact_with_another_version_is_named(tree: Path, place: str) -> None:
    path = tree / place
    text = path.read_text()
    version = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["version"]
    marks = "version|VERSION|makeready:|newTag"
    changed = re.sub(rf"((?:{marks}).*?){re.escape(version)}", rf"\g<1>{OTHER}", text, count=1)
    assert changed != text
    path.write_text(changed)
    status, output = run(tree, "version.py", "check")
    path.write_text(text)
    assert (status, output) == (1, f"{place}: {OTHER} instead of {version}\n")


def test_a_new_version_is_written_into_every_artefact(tree: Path) -> None:
    before = {path: path.read_text() for path in tree.rglob("*") if path.suffix in (".yaml", ".toml", ".md", ".json")}
    assert run(tree, "version.py", "1.2")[0] == 2
    assert run(tree, "version.py", OTHER) == (0, "")
    assert run(tree, "version.py", "check") == (0, "")
    changed = {str(path.relative_to(tree)) for path in before if path.read_text() != before[path]}
    assert {"pyproject.toml", "cli/pyproject.toml", "deploy/k8s/base/gateway.yaml"} <= changed
    assert not [name for name in changed if "nats.yaml" in name or name.endswith(("CHANGELOG.md", "changes.md"))]
    assert run(tree, "sbom.py", "check")[0] == 1
    for path, text in before.items():
        path.write_text(text)


def test_the_bill_of_materials_is_valid_and_the_same_every_time(tree: Path) -> None:
    bill = tree / "deploy/sbom.cdx.json"
    first = bill.read_bytes()
    bill.unlink()
    assert run(tree, "sbom.py", "check")[0] == 1
    assert run(tree, "sbom.py") == (0, "")
    assert bill.read_bytes() == first == (ROOT / "deploy/sbom.cdx.json").read_bytes()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(first.decode()) is None


def test_the_bill_of_materials_has_what_the_image_has() -> None:
    bill = json.loads((ROOT / "deploy/sbom.cdx.json").read_text())
    found = {one["name"]: one for one in bill["components"]}
    locked = dict(
        re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (ROOT / "deploy/requirements.lock").read_text(), re.MULTILINE)
    )
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name, one in found.items():
        expected = version if name.startswith("makeready-") else locked[name]
        assert one["version"] == expected or name == "deprecated", name
        assert name.startswith("makeready-") or one["licenses"], name
    assert locked.keys() - found.keys() == {"async-timeout", "setuptools"}  # for older Pythons; removed
    needs = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    assert "makeready-cli" in needs["makeready"]
    assert {one.split("==")[0] for one in needs["makeready-cli"]} == {
        "makeready-chassis",
        "makeready-importing",
        "pyyaml",
        "shtab",
        "tqdm",
    }
