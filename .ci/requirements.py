"""Checks the upper bounds of requirements, and the locks against the requirements: `python requirements.py [ROOT]`.

An upper bound is the next version that may break: the next major version; for 0.x the next minor version; for a version
that begins with a year the next year. So `make lock` takes no breaking version until a developer has read the changes
and raised the bound. Exits with 1 if a check fails.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OWN = "makeready-"
BOUNDING = {"<", "<=", "==", "~="}
# The requirements in each lock: all, all without extras, or only those of the image's projects.
LOCKS = {"requirements-dev.lock": "all", "requirements.lock": "without extras", "deploy/requirements.lock": "some"}
TOOLS = {"bench", "openapi", "sdk", "testkit"}  # projects that are never installed with the product
LOCKED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
IGNORED_FOLDERS = {".git", ".venv", ".state", "build"}


def main(root: Path) -> int:
    """Prints the problems, one a line."""
    sentences = list(problems(root))
    sys.stdout.write("".join(f"{line}\n" for line in sentences))
    return 1 if sentences else 0


def problems(root: Path) -> Iterator[str]:
    """Requirements without an upper bound, and locks with another version or none."""
    locks = {name: locked((root / name).read_text()) for name in LOCKS}
    for path, kind, requirement in requirements(root):
        if not any(part.operator in BOUNDING for part in requirement.specifier):
            yield f"{path}: {requirement} has no upper bound: name the next version that may break"
        for name, versions in locks.items():
            version = versions.get(canonicalize_name(requirement.name))
            if version is None:
                if LOCKS[name] == "all" or (LOCKS[name] == "without extras" and kind == "dependencies"):
                    yield f"{path}: {requirement} is not in {name}: run `make lock`"
            elif not requirement.specifier.contains(version, prereleases=True):
                yield f"{path}: {requirement} is not what {name} holds, {version}: run `make lock`"


def requirements(root: Path) -> Iterator[tuple[Path, str, Requirement]]:
    """(file, table, requirement) of all projects, without their requirements of one another."""
    for path in sorted(root.rglob("pyproject.toml")):
        place = path.relative_to(root)
        if IGNORED_FOLDERS.intersection(place.parts):
            continue
        read = tomllib.loads(path.read_text())
        project = read.get("project", {})
        tables = {"tools" if place.parts[0] in TOOLS else "dependencies": project.get("dependencies", ())}
        tables |= project.get("optional-dependencies", {})
        tables["build-system"] = read.get("build-system", {}).get("requires", ())
        for table, words in tables.items():
            for requirement in map(Requirement, words):
                if not requirement.name.startswith(OWN):
                    yield place, table, requirement


def locked(text: str) -> dict[str, str]:
    """The version of each distribution in a lock."""
    return {canonicalize_name(name): version for name, version in LOCKED.findall(text)}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parents[1]))
