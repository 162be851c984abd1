"""`make sbom`: the bill of materials of the image, deploy/sbom.cdx.json, in CycloneDX; `check` says whether it is true.

It has what the image installs: the projects, the packages of deploy/requirements.lock, who needs whom, and licences as
the packages state them. It is the same bytes from the same tree: no time, no serial number. Names and versions are for
the Python of the image, whatever Python runs this.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
BILL = "deploy/sbom.cdx.json"
OWN = "makeready-"
# The installer, and what makes the contracts' code, the reference's pages and the clients: the image's recipe removes
# them.
REMOVED = {"deno", "flit-core", "grpcio-tools", "markdown-it-py", "mdurl", "setuptools"}
# Of the image.
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.99", "sys_platform": "linux"}
LICENCE_MAX = 60  # characters; a longer one is the whole text of it
BSD, APACHE = "BSD-3-Clause", "Apache-2.0"
# What some packages call a licence that SPDX has a name for.
SPDX = {
    "3-Clause BSD License": BSD,
    "Apache 2.0": APACHE,
    "Apache License, Version 2.0": APACHE,
    "MIT License": "MIT",
}


def main(words: list[str]) -> int:
    """Writes the bill, or checks it; returns the exit status."""
    text = made(ROOT)
    path = ROOT / BILL
    if words == ["check"]:
        if not path.exists() or path.read_text() != text:
            sys.stdout.write(f"{BILL}: is not what the lock and the projects say: run `make sbom`\n")
            return 1
        return 0
    path.write_text(text)
    return 0


def made(root: Path) -> str:
    """The bill of materials, as JSON."""
    environment = {**default_environment(), **PYTHON, "extra": ""}
    workspace = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    version, licences = workspace["version"], [LicenseFactory().make_from_string(workspace["license"])]
    whole = Component(
        name="makeready", version=version, licenses=licences, type=ComponentType.APPLICATION, bom_ref="makeready"
    )
    packages = {name: _package(name, version) for name, version in locked(root, environment).items()}
    projects = dict(_projects(root))
    ours = {name: Component(name=name, version=version, licenses=licences, bom_ref=name) for name in projects}
    components = packages | ours
    bom = Bom(components=components.values())
    bom.metadata.component = whole
    bom.register_dependency(whole, ours.values())
    for name, component in components.items():
        needs = projects.get(name) or importlib.metadata.requires(name) or []
        bom.register_dependency(
            component, [components[other] for other in _needed(needs, environment) if other in components]
        )
    document: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["serialNumber"], document["metadata"]["timestamp"]
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def locked(root: Path, environment: dict[str, Any]) -> dict[str, str]:
    """The version of each package that the image keeps, by name."""
    lines = re.findall(
        r"^([A-Za-z0-9][^\s;]*)\s*(;[^\\\n]*)?", (root / "deploy/requirements.lock").read_text(), re.MULTILINE
    )
    versions: dict[str, str] = {}
    for pinned, marker in lines:
        requirement = Requirement(f"{pinned} {marker}")
        if requirement.name not in REMOVED and (requirement.marker is None or requirement.marker.evaluate(environment)):
            (specifier,) = requirement.specifier
            versions[canonicalize_name(requirement.name)] = specifier.version
    return versions


def _projects(root: Path) -> Iterator[tuple[str, list[str]]]:
    """(name, requirements) of the projects that the image has."""
    recipe = (root / "deploy/Dockerfile").read_text()
    for folder in sorted(set(re.findall(r'"\./([a-z-]+)"', recipe))):
        project = tomllib.loads((root / folder / "pyproject.toml").read_text())["project"]
        yield project["name"], project["dependencies"]


def _needed(requirements: list[str], environment: dict[str, Any]) -> Iterator[str]:
    """The names in requirements that hold in the image, with those of its extras."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            yield canonicalize_name(requirement.name)


def _package(name: str, version: str) -> Component:
    licences = [_licence(name)]
    return Component(
        name=name,
        version=version,
        bom_ref=f"{name}=={version}",
        purl=PackageURL("pypi", name=name, version=version),
        licenses=[licence for licence in licences if licence is not None],
    )


def _licence(name: str) -> License | None:
    """The licence that the package states: an expression, a name, or a classifier."""
    metadata = importlib.metadata.metadata(name).json
    stated = str(metadata.get("license_expression") or metadata.get("license") or "")
    if not stated or "\n" in stated or len(stated) > LICENCE_MAX:
        classifiers = [
            classifier for classifier in metadata.get("classifier", []) if classifier.startswith("License :: ")
        ]
        stated = classifiers[0].rpartition(" :: ")[2] if classifiers else ""
    return LicenseFactory().make_from_string(SPDX.get(stated, stated)) if stated else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
