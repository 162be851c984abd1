"""Installs into .venv what `make` needs: `python install.py run|test`, from any folder, with only the standard library.

Does nothing if .venv is up to date: its stamp is a digest of the locks and of every project's settings. Packages come
from the lock, each with its hash; the projects are installed in place. The contracts' code and the reference's pages,
which no clone has, are made anew when what they are made from differs.
"""

import signal

if __name__ == "__main__":  # a Ctrl-C during the imports ends the process without a stack trace
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PROJECTS = (
    "proto",
    "chassis",
    "gateway",
    "console",
    "svc-catalog",
    "svc-tickets",
    "svc-occupancy",
    "svc-webhooks",
    "importing",
    "cli",
    "deploy/local",
)
# Needed only by tests, documents and measurements.
TOOLS = ("testkit", "openapi", "bench", "sdk/python")
INSTALLER = "deploy/local/install.py"
# What the contracts' code is made from.
CODE_FROM = ("proto/generate.py", "proto/makeready/**/*.proto", "requirements*.lock")
# What the gateway serves below /docs is made from (`openapi/reference/served.py`, `sdk/build.py`).
PAGES_FROM = (
    "openapi/reference/*.py",
    "gateway/gateway/pages/openapi.json",
    "docs/events.md",
    "docs/changes.md",
    "docs/feed.md",
    "docs/clients.md",
    "docs/paging.md",
    "docs/sync.md",
    "docs/testing.md",
    "docs/webhooks.md",
    "docs/webhooks/*",
    "docs/quickstart/*",
    "docs/feed/*",
    "docs/sync/*",
    # The client libraries, which it serves beside the pages.
    "sdk/build.py",
    "sdk/*/*.md",
    "sdk/python/pyproject.toml",
    "sdk/python/examples/*.py",
    "sdk/python/makeready_client/**/*.py",
    "sdk/python/makeready_client/testing/*.json",
    "sdk/typescript/pack.py",
    "sdk/typescript/package.json",
    "sdk/typescript/src/*.ts",
    INSTALLER,
)
CODE = ROOT / "proto" / "gen" / "makeready" / "retried.py"
CLIENTS = "gateway/gateway/pages/clients"
FIRST_PAGE = ROOT / "gateway" / "gateway" / "pages" / "docs.html"
LOCKS = {"run": "requirements.lock", "test": "requirements-dev.lock"}


class InstallError(Exception):
    """The installation can't go on; the text is the one line that the user reads."""


def main(purpose: str) -> None:
    """Installs for `purpose`. Raises InstallError."""
    stamp, code, pages = digest(purpose), digest_of(CODE_FROM), digest_of(PAGES_FROM)
    if is_installed(purpose, stamp) and has_code(purpose, code) and has_pages(pages):
        return
    try:
        VENV.mkdir(exist_ok=True)
        lock = (VENV / "install.lock").open("w")
    except OSError as error:
        raise InstallError(f"cannot write in {VENV}: {error.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_installed(purpose, stamp):  # by another process in the meantime
            install(purpose)
        if not has_code(purpose, code):
            make_code(purpose)
        if not has_pages(pages):
            make_pages(pages)


def install(purpose: str) -> None:
    """Installs the packages and the projects, and then writes the stamps. Raises InstallError."""
    if not has_pip():
        make_venv()
    say(f"Installing the packages of {LOCKS[purpose]} ...")
    pip("install", "--require-hashes", "-r", LOCKS[purpose])
    make_code(purpose)
    say("Installing the projects ...")
    # compat: a plain path on sys.path. The default's import hook loses to the project's folder itself.
    projects = projects_of(purpose)
    editable = [word for project in projects for word in ("-e", f"./{project}")]
    pip("install", "--no-deps", "--no-build-isolation", "--config-settings", "editable_mode=compat", *editable)
    # pip compiles only what it installs. Without this, every start of every service would compile the projects
    # again if the folder is read-only later, or if Python may not write bytecode.
    run([str(PYTHON), "-m", "compileall", "-q", *projects])
    for name in ("run", purpose):  # the test lock contains the other one
        (VENV / f"installed-{name}").write_text(digest(name))


def make_code(purpose: str) -> None:
    """Writes the code of the contracts, and then its stamps. Raises InstallError. The test lock's has types too."""
    done = run([str(PYTHON), "-P", "proto/generate.py"])
    if done.returncode != 0:
        raise InstallError(f"the contracts' code cannot be made: {(done.stderr.splitlines() or ['no reason'])[-1]}")
    run([str(PYTHON), "-m", "compileall", "-q", "proto/gen"])
    for name in ("run", purpose):
        (VENV / f"made-code-{name}").write_text(digest_of(CODE_FROM))


def make_pages(stamp: str) -> None:
    """Writes the pages and clients that the gateway serves below /docs, and then their stamp. Raises InstallError."""
    for command in (["-m", "reference.served"], ["sdk/build.py", CLIENTS]):
        done = run([str(PYTHON), "-P", *command], PYTHONPATH="openapi")
        if done.returncode != 0:
            reason = (done.stderr.splitlines() or ["no reason"])[-1]
            raise InstallError(f"the reference's pages cannot be made: {reason}")
    (VENV / "made-pages").write_text(stamp)


def projects_of(purpose: str) -> tuple[str, ...]:
    """The folders of the projects that are installed in place."""
    return PROJECTS if purpose == "run" else (*PROJECTS, *TOOLS)


def digest(purpose: str) -> str:
    """A digest that changes with anything that the installation depends on."""
    return digest_of([LOCKS[purpose], *(f"{project}/pyproject.toml" for project in projects_of(purpose)), INSTALLER])


def digest_of(patterns: Sequence[str]) -> str:
    """A digest of the files that the patterns name, of this folder and of this Python."""
    total = hashlib.sha256(f"{sys.version_info[:2]} {ROOT}".encode())
    for pattern in patterns:
        for file in sorted(ROOT.glob(pattern)):
            total.update(file.read_bytes())
    return total.hexdigest()


def is_installed(purpose: str, stamp: str) -> bool:
    """Whether .venv's stamp for the purpose is `stamp`."""
    with contextlib.suppress(OSError):
        return PYTHON.exists() and (VENV / f"installed-{purpose}").read_text() == stamp
    return False


def has_code(purpose: str, stamp: str) -> bool:
    """Whether the contracts' code is there, made from what is there now."""
    with contextlib.suppress(OSError):
        return CODE.exists() and (VENV / f"made-code-{purpose}").read_text() == stamp
    return False


def has_pages(stamp: str) -> bool:
    """Whether the reference's pages are there, made from what is there now."""
    with contextlib.suppress(OSError):
        return FIRST_PAGE.exists() and (VENV / "made-pages").read_text() == stamp
    return False


def has_pip() -> bool:
    """Whether .venv works with this Python and in this folder."""
    if not PYTHON.exists():
        return False
    code = "import pip, sys; print(sys.version_info[:2], sys.prefix)"
    done = run([str(PYTHON), "-I", "-c", code])
    return done.returncode == 0 and done.stdout.strip() == f"{sys.version_info[:2]} {VENV}"


def make_venv() -> None:
    """Makes .venv anew with pip, in the first way that works on this machine. Raises InstallError."""
    say(f"Making {VENV.name} with Python {sys.version.split()[0]} ...")
    for child in VENV.iterdir():
        if child.name != "install.lock":
            shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    python = sys.executable
    ways: list[list[list[str]]] = [
        [[python, "-m", "venv", str(VENV)]],
        # Debian packages ensurepip separately; another pip can install pip instead.
        [
            [python, "-m", "venv", "--without-pip", str(VENV)],
            [python, "-m", "pip", "--python", str(PYTHON), "install", "-q", "pip"],
        ],
        [[python, "-m", "virtualenv", "-q", str(VENV)]],
    ]
    if uv := shutil.which("uv"):
        ways.append([[uv, "venv", "-q", "--seed", "--allow-existing", "--python", python, str(VENV)]])
    for way in ways:
        if all(run(command).returncode == 0 for command in way) and has_pip():
            return
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    raise InstallError(f"{python} can make no virtual environment: install {package} (Debian: apt install {package})")


def pip(*words: str) -> None:
    """Runs pip. Raises InstallError with its last error."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", *words, "-q"]
    done = run(command)
    if done.returncode != 0:
        log = VENV / "install.log"
        log.write_text(done.stdout + done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (errors or done.stderr.splitlines() or ["it said nothing"])[-1].strip()
        raise InstallError(f"pip failed: {reason} (all of it: {log})")


def run(command: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the checkout and captures its output. more: for its environment."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return subprocess.run(  # noqa: S603
        command, cwd=ROOT, env=environment | more, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def say(text: str) -> None:
    """Prints a line for the user."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main(sys.argv[1] if sys.argv[1:] else "run")
    except InstallError as error:
        sys.exit(f"makeready: {error}")
    except KeyboardInterrupt:
        sys.exit("makeready: interrupted")
    except OSError as error:
        sys.exit(f"makeready: cannot install: {error}")
