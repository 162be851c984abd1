"""Each import contract is broken, in a scratch copy, and the lint must report it.

The tests derive the breaks from the contract: imports between two modules that it separates, or a module in no layer.
"""

from __future__ import annotations

import configparser
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testkit.import_contracts import TableField

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = ROOT / ".importlinter"
PREFIX = "importlinter:contract:"
STRAY = "module_in_no_layer"


def settings() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser()
    parsed.read(CONTRACTS)
    return parsed


def lines(section: configparser.SectionProxy, name: str) -> list[str]:
    """The lines of a setting."""
    return [line.strip() for line in section.get(name, "").splitlines() if line.strip()]


def table(section: configparser.SectionProxy, name: str) -> dict[str, str]:
    """A setting of the form `name = values`."""
    return TableField().parse(lines(section, name))


def packages_with_layers(parsed: configparser.ConfigParser) -> set[str]:
    """The packages of which every module must be in a layer."""
    packages: set[str] = set()
    for name in parsed.sections():
        if parsed[name].get("type") == "layers_of_packages":
            packages |= table(parsed[name], "packages").keys()
        elif parsed[name].getboolean("exhaustive", fallback=False):
            packages |= set(lines(parsed[name], "containers"))
    return packages


def projects() -> dict[str, Path]:
    """By root package, the folder of its project."""
    folders = {path.name: path.parent for path in ROOT.glob("*/*/") if (path / "__init__.py").exists()}
    for place in ("deploy/local", "sdk/python"):
        folders |= {path.name: path.parent for path in (ROOT / place).iterdir() if (path / "__init__.py").exists()}
    return folders | {"makeready": ROOT / "proto" / "gen"}


def source(module: str) -> Path | None:
    """The file of a module, relative to the root; None if it has none."""
    base = (projects()[module.split(".", maxsplit=1)[0]] / module.replace(".", "/")).relative_to(ROOT)
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if (ROOT / path).exists():
            return path
    return None


def first_module(name: str) -> str | None:
    """The module itself; of a folder without `__init__.py`, the first module in it. None if there is neither."""
    if source(name) is not None:
        return name
    folder = projects()[name.split(".", maxsplit=1)[0]] / name.replace(".", "/")
    modules = sorted(path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py"))
    return ".".join((name, *modules[0].parts)) if modules else None


@dataclass(frozen=True)
class Break:
    """A line that is added to a file, which may be new."""

    contract: str
    file: Path
    line: str
    named: str
    """The text that the lint must print."""

    def __str__(self) -> str:
        return f"{self.contract}: {self.named}"


def imported(contract: str, importer: str, forbidden: str) -> Break:
    file = source(importer)
    assert file is not None and source(forbidden) is not None, (importer, forbidden)
    return Break(contract, file, f"import {forbidden}\n", f"{importer} -> {forbidden}")


@dataclass(frozen=True)
class Layer:
    """One line of a layers contract, with its existing modules."""

    modules: list[str]
    are_independent: bool


def layers_of(layers: list[str], package: str) -> list[Layer]:
    """The layers that have modules, the highest first. package: empty if the layers are whole names."""
    with_modules = []
    for line in layers:
        names = [name.strip(" ()") for name in re.split(r"[|:]", line)]
        modules = [first_module(f"{package}.{name}" if package else name) for name in names]
        with_modules.append(Layer([module for module in modules if module is not None], "|" in line))
    return [layer for layer in with_modules if layer.modules]


def breaks_of_layers(contract: str, layers: list[Layer]) -> Iterator[Break]:
    """The lowest layer imports the highest, and a module imports one that stands beside it."""
    assert layers, f"{contract}: a package has none of its layers"
    if len(layers) > 1:
        yield imported(contract, layers[-1].modules[-1], layers[0].modules[0])
    for layer in layers:
        if layer.are_independent and len(layer.modules) > 1:
            yield imported(contract, layer.modules[0], layer.modules[1])
            break


def breaks_of_interfaces(contract: str, offered: dict[str, str]) -> Iterator[Break]:
    """Another package of the service imports each package itself, and a module that the package does not offer."""
    for package, modules in offered.items():
        service = package.split(".", maxsplit=1)[0]
        importer = next(name for name in offered if name.startswith(f"{service}.") and name != package)
        yield imported(contract, importer, package)
        file = source(package)
        assert file is not None, package
        names = {path.stem for path in (ROOT / file).parent.glob("*.py")} - {"__init__", *modules.split()}
        if names:
            yield imported(contract, importer, f"{package}.{min(names)}")


def breaks_of_users(contract: str, package: str, users: dict[str, str]) -> Iterator[Break]:
    """Each module is imported by the first part of the package that may not."""
    parts = sorted(path.name for path in (projects()[package] / package / "areas").iterdir() if path.is_dir())
    for name, permitted in users.items():
        module = first_module(name)
        assert module is not None, name
        areas = [f"{package}.areas.{part}" for part in parts if not part.startswith("_")]
        yield imported(contract, next(area for area in areas if area not in permitted), module)


def breaks_of_projects(contract: str, layers: list[Layer]) -> Iterator[Break]:
    """Each project imports each other that it may not; generated code imports what the protos do."""
    pairs = [
        pair
        for higher, lower in itertools.combinations(layers, 2)
        for pair in itertools.product(lower.modules, higher.modules)
    ]
    pairs += [pair for layer in layers if layer.are_independent for pair in itertools.permutations(layer.modules, 2)]
    yield from (imported(contract, *pair) for pair in pairs if not pair[0].startswith("makeready."))


def breaks_of(contract: str, section: configparser.SectionProxy) -> Iterator[Break]:
    """At least one for each rule of the contract; cycles have a test of their own."""
    match section["type"]:
        case "independence":
            first, second, *_ = lines(section, "modules")
            yield imported(contract, first, second)
        case "forbidden":
            importer, forbidden = lines(section, "source_modules")[0], lines(section, "forbidden_modules")
            yield from (imported(contract, importer, module) for module in (forbidden[0], forbidden[-1]))
        case "layers" if "containers" in section:
            package = lines(section, "containers")[0]
            yield from breaks_of_layers(contract, layers_of(lines(section, "layers"), package))
        case "layers":
            yield from breaks_of_projects(contract, layers_of(lines(section, "layers"), ""))
        case "layers_of_packages":
            for package, layers in table(section, "packages").items():
                yield from breaks_of_layers(contract, layers_of(layers.split(">"), package))
        case "interfaces":
            yield from breaks_of_interfaces(contract, table(section, "packages"))
        case "users":
            yield from breaks_of_users(contract, section["package"], table(section, "modules"))
        case other:
            assert other == "acyclic_siblings", f"{contract}: nobody knows how to break a contract of type {other}"


def breaks() -> Iterator[Break]:
    """Those of all contracts."""
    parsed = settings()
    for name in parsed.sections():
        if name.startswith(PREFIX):
            yield from breaks_of(name.removeprefix(PREFIX), parsed[name])


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of every package in the contracts."""
    folder = tmp_path_factory.mktemp("contracts")
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "versions", "pages", "rows")
    for package in lines(settings()["importlinter"], "root_packages"):
        place = projects()[package]
        shutil.copytree(place / package, folder / place.relative_to(ROOT) / package, ignore=ignored)
    shutil.copy(CONTRACTS, folder)
    return folder


def lint(folder: Path, contract: str = "") -> tuple[int, str]:
    """The exit status and output of the lint in a folder; its packages take precedence over the installed ones."""
    places = sorted({folder / place.relative_to(ROOT) for place in projects().values()})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places)), "COLUMNS": "400"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--cache-dir", str(folder / "cache")]
    command += ["--contract", contract] if contract else []
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr)


def test_the_copy_keeps_every_contract(scratch: Path) -> None:
    status, output = lint(scratch)
    assert status == 0, output
    assert "0 broken" in output


@pytest.fixture(scope="session")
def reports(scratch: Path) -> dict[str, str]:
    """What the lint prints of each broken contract while all of the breaks are there."""
    folder = scratch.with_name("broken")
    shutil.copytree(scratch, folder)
    for broken in breaks():
        with (folder / broken.file).open("a") as file:
            file.write(f"\n{broken.line}")
    status, output = lint(folder)
    assert status == 1, output
    names = [section.removeprefix(PREFIX) for section in settings().sections() if section.startswith(PREFIX)]
    titles = {settings()[PREFIX + name]["name"]: name for name in names}
    _, _, details = output.partition(" Broken contracts ")
    heads = "|".join(re.escape(title) for title in sorted(titles, key=len, reverse=True))
    _, *reports = re.split(rf" ({heads}) -{{3,}} ", f" {details}")
    return {titles[title]: text for title, text in zip(reports[::2], reports[1::2], strict=True)}


@pytest.mark.parametrize("broken", list(breaks()), ids=str)
def test_a_broken_contract_is_reported(reports: dict[str, str], broken: Break) -> None:
    assert broken.named in reports.get(broken.contract, "")


def cycles() -> dict[str, tuple[str, str]]:
    """By package, two modules of it that no layers contract forbids to import each other."""
    parsed = settings()
    pairs = {}
    for name in parsed.sections():
        if parsed[name].get("type") == "layers_of_packages":
            for package, layers in table(parsed[name], "packages").items():
                for layer in layers_of([line for line in layers.split(">") if ":" in line], package):
                    pairs[package] = (layer.modules[0], layer.modules[1])
    return pairs


def test_a_cycle_is_reported_where_layers_permit_it(scratch: Path) -> None:
    folder = scratch.with_name("cycles")
    shutil.copytree(scratch, folder)
    seeds = cycles()
    assert len(seeds) > 3
    for pair in seeds.values():
        for importer, other in itertools.permutations(pair):
            file = source(importer)
            assert file is not None
            with (folder / file).open("a") as text:
                text.write(f"\nimport {other}\n")
    status, output = lint(folder)
    assert status == 1
    assert "1 broken" in output
    assert [package for package in seeds if f"No cycles are allowed in {package}." not in output] == []


def test_a_module_in_no_layer_fails_the_lint(scratch: Path) -> None:
    """One in each package at once: nothing imports them, so none of them hides another."""
    parsed, folders = settings(), projects()
    containers = sorted(packages_with_layers(parsed))
    files = [
        scratch
        / folders[container.split(".", maxsplit=1)[0]].relative_to(ROOT)
        / container.replace(".", "/")
        / f"{STRAY}.py"
        for container in containers
    ]
    for file in files:
        file.write_text("")
    try:
        status, output = lint(scratch)
    finally:
        for file in files:
            file.unlink()
    assert status == 1
    assert [container for container in containers if f"{container}.{STRAY}" not in output] == []


def test_every_contract_bears_its_reason() -> None:
    """A comment above each contract gives its reason."""
    text = CONTRACTS.read_text()
    for name in settings().sections():
        if name.startswith(PREFIX):
            above = text[: text.index(f"[{name}]")].rstrip().split("\n\n")[-1]
            assert above.startswith("# ") and len(above.split()) > 6, f"{name} has no reason above it"


def test_every_package_has_its_layers() -> None:
    """Every package of the project is a container of an exhaustive contract, so that every module is in a layer."""
    parsed = settings()
    covered = packages_with_layers(parsed)
    folders = projects()
    assert set(lines(parsed["importlinter"], "root_packages")) == set(folders)
    missing = []
    for package, place in folders.items():
        if package == "makeready":  # generated
            continue
        for init in sorted((place / package).rglob("__init__.py")):
            name = ".".join(init.parent.relative_to(place).parts)
            modules = [path for path in init.parent.glob("*.py") if path.name != "__init__.py"]
            if "migrations" not in name and len(modules) > 2 and name not in covered:
                missing.append(name)
    assert missing == [], "packages whose modules stand in no layer: add them to .importlinter"
