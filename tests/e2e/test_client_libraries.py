"""The client libraries as an installation serves them: the commands of the page install them, without a registry."""

from __future__ import annotations

import hashlib
import html
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from testkit.requirements import lacks
from testkit.typescript import wheels_node

from .system import System

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def commands(system: System) -> list[str]:
    """The commands of the page."""
    with urlopen(f"{system.base_url.removesuffix('/api/v1')}/docs/clients", timeout=60) as page:
        text = html.unescape(page.read().decode())
    assert "makeready.example/docs" not in text
    return re.findall(r"(?:pip|npm) install \S+(?=\n)", re.sub("<[^>]+>", "", text))


def test_the_wheel_is_installed_into_an_empty_environment_without_a_registry(
    commands: list[str], tmp_path: Path
) -> None:
    (command,) = (command for command in commands if command.startswith("pip"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    python = str(tmp_path / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--python", python]
    subprocess.run(
        [*pip, *shlex.split(command)[1:], "--no-index", "--no-deps", "--no-cache-dir"], check=True, timeout=120
    )
    (site,) = tmp_path.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))  # behind what is installed here
    code = "import makeready_client as client; print(client.__version__, client.__file__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    version, file = done.stdout.split()
    assert version in command and Path(file).is_relative_to(site)


def test_the_tarball_is_installed_by_npm_without_a_registry(commands: list[str], tmp_path: Path) -> None:
    npm = shutil.which("npm") or lacks("npm", "there is no such command here")
    (command,) = (command for command in commands if command.startswith("npm"))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    words = [npm, *shlex.split(command)[1:], "--no-audit", "--no-fund", "--registry", "http://127.0.0.1:1/"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=120)
    program = 'import { VERSION, webhooks } from "@makeready/client"; console.log(VERSION, typeof webhooks.verify)'
    done = subprocess.run(
        [wheels_node(), "--input-type=module", "-e", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    version, kind = done.stdout.split()
    assert version in command and kind == "function"


def test_what_is_served_has_the_bytes_that_make_sdk_builds(commands: list[str], tmp_path: Path) -> None:
    build = [sys.executable, "-P", str(ROOT / "sdk" / "build.py"), str(tmp_path)]
    built = subprocess.run(build, capture_output=True, text=True, check=True).stdout
    for url in (command.split()[-1] for command in commands):
        with urlopen(Request(url, headers={"Accept-Encoding": "gzip"}), timeout=60) as response:
            body = response.read()
            assert response.headers["Content-Encoding"] is None
        assert f"{hashlib.sha256(body).hexdigest()}  {url.rpartition('/')[2]}" in built.splitlines()
