"""`make lint`: every check that needs no running system. Prints each check; exits with 1 if one failed."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVICES = ("svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
PROJECTS = (
    "chassis",
    "gateway",
    "console",
    *SERVICES,
    "importing",
    "cli",
    "deploy/local",
    "testkit",
    "openapi",
    "bench",
    "sdk/python",
)
RELEASED = "proto/released.binpb"
# Written in parts, so that the check does not find this file.
FORBIDDEN = {
    "a path of somebody's machine": re.compile(r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|ho" r"me|Use" r"rs)/[\w.-]+"),
    "a package index": re.compile(
        r"(?:--(?:extra-)?index" r"-url|--find" r"-links|py" r"pi\.org|python" r"hosted\.org)"
    ),
    "a private key": re.compile(r"BEGIN (?:[A-Z]+ )?PRI" r"VATE KEY"),
}
LOCK_ADDRESS = re.compile(r"\w+://|^\s*-(?:e|i|f)\b|^\s*--(?!hash)", re.MULTILINE)
NEVER_COMMITTED = {"uv.lock", "package-lock.json", "poetry.lock", "Pipfile.lock"}
IGNORED_FOLDERS = {".git", ".venv", ".state", "__pycache__", "build"}
LOCKS = {"requirements.lock", "requirements-dev.lock"}


def main(words: Sequence[str]) -> int:
    """Runs all checks, even after one has failed; with the word `quick` only those that take seconds."""
    os.chdir(ROOT)
    python = [sys.executable, "-P", "-m"]
    sources = [str(path) for project in PROJECTS for path in packages(ROOT / project)]
    sources.append("deploy/k8s")
    checks: list[tuple[str, Callable[[], list[str]]]] = [
        ("ruff check", lambda: command(*python, "ruff", "check", "-q", ".")),
        ("ruff format --check", lambda: command(*python, "ruff", "format", "--check", "-q", ".")),
        ("mypy --strict", lambda: command(*python, "mypy", "--no-error-summary", *sources)),
        ("mypy --strict of tests and tools", lambda: mypy_of_tests(*python, "mypy", "--no-error-summary")),
        ("lint-imports", lambda: command(str(Path(sys.executable).with_name("lint-imports")), "--no-cache")),
        ("no private name of a dependency", lambda: command(sys.executable, "-P", ".ci/private_names.py")),
        (
            "names say what they hold, and nothing is large",
            lambda: command(sys.executable, "-P", ".ci/census.py", "check"),
        ),
        ("templates have 140 columns", lambda: command(sys.executable, "-P", ".ci/templates.py")),
        ("contexts ask their companies' clocks", lambda: command(sys.executable, "-P", ".ci/company_time.py")),
        ("tests wait with patience", lambda: command(sys.executable, "-P", ".ci/patience.py")),
        ("requirements have bounds that the locks keep", lambda: command(sys.executable, "-P", ".ci/requirements.py")),
        ("every artefact bears the version", lambda: command(sys.executable, "-P", ".ci/version.py", "check")),
        ("the bill of materials is true", lambda: command(sys.executable, "-P", ".ci/sbom.py", "check")),
        ("links between documents lead somewhere", lambda: command(sys.executable, "-P", ".ci/links.py")),
        ("rules import the standard library and refusals alone", rules_are_pure),
        ("end-to-end tests and clients' tests import no service", end_to_end_imports_nothing),
        ("buf lint", lambda: command(buf(), "lint", "proto")),
        ("buf format", lambda: command(buf(), "format", "proto", "--diff", "--exit-code")),
        ("buf breaking", breaking),
        ("RPCs let in whom the release lets in", lambda: command(sys.executable, "-P", "-m", "testkit.access_gate")),
        ("settings of the release still serve", lambda: command(sys.executable, "-P", "-m", "testkit.settings_gate")),
        ("the document is what routes and records say, and adds to the released one", document),
        ("nothing of a machine, an index or a secret", tree),
    ]
    if "quick" in words:
        slow = ("mypy", "the document")
        checks = [(name, check) for name, check in checks if not name.startswith(slow)]
    failed = []
    for name, check in checks:
        sys.stdout.write(f"{name} ... ")
        sys.stdout.flush()
        problems = check()
        sys.stdout.write("ok\n" if not problems else "FAILED\n" + "".join(f"  {line}\n" for line in problems))
        if problems:
            failed.append(name)
    sys.stdout.write(
        f"lint: {len(failed)} of {len(checks)} failed: {', '.join(failed)}\n" if failed else "lint: all good\n"
    )
    return 1 if failed else 0


def command(*words: str, **environment: str) -> list[str]:
    """Runs a command; returns its output if it failed."""
    complete = {**os.environ, **environment}
    done = subprocess.run(words, capture_output=True, text=True, env=complete, check=False)  # noqa: S603
    output = (done.stdout + done.stderr).strip().splitlines()
    return [] if done.returncode == 0 else output or [f"exit status {done.returncode}"]


def mypy_of_tests(*mypy: str) -> list[str]:
    """One run for each folder of tests: each is a package with the name `tests`."""
    folders = [
        *sorted(Path().glob("*/tests")),
        *sorted(Path("deploy").glob("*/tests")),
        Path("sdk/python/tests"),
        Path("sdk/typescript/tests"),
        Path("tests"),
    ]
    problems = [line for folder in folders for line in command(*mypy, str(folder), MYPYPATH=str(folder.parent))]
    alone = [
        ".ci",
        "deploy/local/install.py",
        "proto/generate.py",
        "docs/webhooks/receiver.py",
        "docs/sync/copy.py",
        "sdk/build.py",
    ]
    alone += ["docs/quickstart/quickstart.py", "sdk/typescript/pack.py"]
    for place in (*map(Path, alone), *sorted(Path("sdk/python/examples").glob("*.py"))):
        problems += command(*mypy, str(place), MYPYPATH=str(place))
    return problems


def buf() -> str:
    """The program in the buf-bin wheel."""
    return str(Path(sys.executable).with_name("buf"))


def packages(project: Path) -> list[Path]:
    """The packages of a project, relative to the root."""
    return sorted(path.parent.relative_to(ROOT) for path in project.glob("*/py.typed"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import of a file."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def rules_are_pure() -> list[str]:
    """Rules import only other rules of their context, and refusals: each can be read, tested and reused alone."""
    return [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for project in ("gateway", *SERVICES)
        for package in packages(ROOT / project)
        for path in sorted((ROOT / package).rglob("*.py"))
        if is_of_rules(path.relative_to(ROOT / package).with_suffix("").parts)
        for line, module in imports(path)
        if module.split(".", maxsplit=1)[0] not in sys.stdlib_module_names
        and not module.startswith("chassis.refusals.")
        and not (module.startswith(f"{package.name}.") and is_of_rules(module.split(".")))
    ]


def is_of_rules(parts: Sequence[str]) -> bool:
    """Whether a dotted name or path is of rules: `vendors/rules.py`, `field_rules.py`, `tickets/rules/status.py`."""
    return any(part == "rules" or part.endswith("_rules") for part in parts)


def end_to_end_imports_nothing() -> list[str]:
    """End-to-end tests, and those of the client libraries, use only what users use: HTTP and the command lines."""
    ours = {"chassis", "gateway", "makeready", *(service.replace("-", "_") for service in SERVICES)}
    return [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for folder in ("tests/e2e", "sdk/python/tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, module in imports(path)
        if module.split(".")[0] in ours
    ]


def breaking() -> list[str]:
    """Compares with the released contracts; `make release-contracts` stores new ones."""
    return command(buf(), "breaking", "proto", "--against", RELEASED)


def document() -> list[str]:
    """Compares the committed schemas, document and pages with newly generated ones and with the released contract."""
    return command(sys.executable, "-P", "-m", "reference", "check", PYTHONPATH="openapi")


def tree() -> list[str]:
    """Checks every file that git tracks; without git, every file in the tree."""
    problems = []
    for path in files():
        if path.name in NEVER_COMMITTED:
            problems.append(f"{path}: is full of addresses; requirements.lock has the same without")
        try:
            text = path.read_text()
        except (UnicodeDecodeError, OSError):
            continue
        patterns = {"an address or an option": LOCK_ADDRESS} if path.name in LOCKS else FORBIDDEN
        for description, pattern in patterns.items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line}: {description}: {match.group().strip()}")
    return problems


def files() -> list[Path]:
    """The project's files, relative to the root."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=False)  # noqa: S607
        if done.returncode == 0 and done.stdout:
            return [Path(name) for name in done.stdout.split("\0") if name]
    except OSError:
        pass
    paths = []
    for folder, folders, names in os.walk("."):
        folders[:] = [
            name for name in folders if name not in IGNORED_FOLDERS and not name.endswith(("_cache", ".egg-info"))
        ]
        paths += [Path(folder, name) for name in names]
    return sorted(paths)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
