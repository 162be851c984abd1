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
        "sdk/python/makeready_client/exchange.py",
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
    kinds = (".yaml", ".toml", ".md", ".json", ".ts", ".py")
    files = (path for path in tree.rglob("*") if path.suffix in kinds or path.name == "Dockerfile")
    before = {path: path.read_text() for path in files}
    assert run(tree, "version.py", "1.2")[0] == 2
    assert run(tree, "version.py", OTHER) == (0, "")
    assert run(tree, "version.py", "check") == (0, "")
    changed = {str(path.relative_to(tree)) for path in before if path.read_text() != before[path]}
    assert {"pyproject.toml", "cli/pyproject.toml", "deploy/k8s/base/gateway.yaml"} <= changed
    assert not [name for name in changed if "nats.yaml" in name or name.endswith(("CHANGELOG.md", "changes.md"))]
    assert run(tree, "sbom.py", "check")[0] == 1
    for path, text in before.items():
        path.write_text(text)


def test_digests_of_images_are_written_and_those_of_another_release_go(tree: Path) -> None:
    before = {path: path.read_text() for path in (tree / "deploy/k8s").rglob("kustomization.yaml")}
    ours, nats = "sha256:" + "1" * 64, "sha256:" + "2" * 64
    for words in ([], ["makeready"], ["makeready=1"], ["redis=" + ours], ["makeready=" + ours, "nats=sha256:x"]):
        status, output = run(tree, "version.py", "images", *words)
        assert status == 2 and output, words
    assert {path: path.read_text() for path in before} == before
    assert run(tree, "version.py", "images", f"makeready={ours}", f"nats={nats}") == (0, "")
    assert run(tree, "version.py", "check") == (0, "")
    texts = {str(path.relative_to(tree / "deploy/k8s")): path.read_text() for path in before}
    named = [name for name, text in texts.items() if "name: makeready\n    newName" in text]
    assert len(named) == 2 and all(f"    newTag: 0.2.0\n    digest: {ours}\n" in texts[name] for name in named)
    assert texts["base/kustomization.yaml"].count(f"    digest: {nats}\n") == 1

    # The same image has one digest everywhere, and another one replaces it.
    (place, *_) = (path for path, text in before.items() if "name: makeready\n    newName" in text)
    place.write_text(place.read_text().replace("1" * 64, "3" * 64))
    status, output = run(tree, "version.py", "check")
    assert status == 1 and output.startswith("makeready: has sha256:111")
    place.write_text(place.read_text().replace("3" * 64, "x"))
    assert run(tree, "version.py", "check")[0] == 1
    assert run(tree, "version.py", "images", f"makeready={ours}") == (0, "")
    assert run(tree, "version.py", "check") == (0, "")

    # With the digest of the release before, the pods of a new version would run the old image.
    version = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["version"]
    assert run(tree, "version.py", OTHER) == (0, "")
    texts = {str(path): path.read_text() for path in before}
    assert not any(ours in text for text in texts.values()) and any(nats in text for text in texts.values())
    assert run(tree, "version.py", version) == (0, "")
    for path, text in before.items():
        path.write_text(text)


def test_every_package_names_the_licence() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "Version 2.0, January 2004" in text
    assert {(ROOT / "sdk" / client / "LICENSE").read_text() for client in ("python", "typescript")} == {text}
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for folder in (".", *workspace["tool"]["uv"]["workspace"]["members"]):
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        assert project["license"] == "Apache-2.0", folder
    assert json.loads((ROOT / "sdk/typescript/package.json").read_text())["license"] == "Apache-2.0"
    bill = json.loads((ROOT / "deploy/sbom.cdx.json").read_text())
    ours = [
        bill["metadata"]["component"],
        *(component for component in bill["components"] if component["name"].startswith("makeready-")),
    ]
    assert {licence["license"]["id"] for component in ours for licence in component["licenses"]} == {"Apache-2.0"}


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
    by_name = {component["name"]: component for component in bill["components"]}
    locked = dict(
        re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (ROOT / "deploy/requirements.lock").read_text(), re.MULTILINE)
    )
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name, component in by_name.items():
        expected = version if name.startswith("makeready-") else locked[name]
        assert component["version"] == expected or name == "deprecated", name
        assert component["licenses"], name
    removed = {"deno", "flit-core", "grpcio-tools", "markdown-it-py", "mdurl", "setuptools"}
    assert locked.keys() - by_name.keys() == {"async-timeout", *removed}  # for older Pythons
    needs = {dependency["ref"]: dependency.get("dependsOn", []) for dependency in bill["dependencies"]}
    assert "makeready-cli" in needs["makeready"]
    assert {reference.split("==")[0] for reference in needs["makeready-cli"]} == {
        "makeready-chassis",
        "makeready-importing",
        "pyyaml",
        "shtab",
        "tqdm",
    }
