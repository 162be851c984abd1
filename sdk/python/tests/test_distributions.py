"""The distributions are the same bytes wherever and whenever they are built, and hold what they should."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import makeready_client

SDK = Path(__file__).parents[2]


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path) -> None:
    digests = []
    for number in range(2):
        copy = tmp_path / f"copy {number}"
        shutil.copytree(SDK, copy, ignore=shutil.ignore_patterns("__pycache__", "dist"), copy_function=shutil.copy)
        done = subprocess.run(
            [sys.executable, "-P", str(copy / "build.py"), str(tmp_path / f"dist{number}")],
            capture_output=True,
            text=True,
            check=True,
            umask=(0o022, 0o077)[number],
        )
        digests.append(done.stdout)
    assert digests[0] == digests[1] and digests[0].count("\n") >= 2
    dist, version = tmp_path / "dist0", makeready_client.__version__
    with zipfile.ZipFile(dist / f"makeready_client-{version}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"makeready_client-{version}.dist-info/METADATA").decode()
    modules = {
        str(path.relative_to(SDK / "python"))
        for path in (SDK / "python/makeready_client").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert modules == {name for name in names if not name.startswith(f"makeready_client-{version}.dist-info/")}
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert [line.split()[1].partition("<")[0].partition(">")[0] for line in needed] == ["httpx", "msgspec"]
    assert f"makeready_client-{version}.dist-info/licenses/LICENSE" in names
    assert "License-Expression: Apache-2.0" in metadata.splitlines()
    with tarfile.open(dist / f"makeready_client-{version}.tar.gz") as source:
        assert {"README.md", "CHANGELOG.md", "LICENSE", "examples/open_tickets.py"} <= {
            name.partition("/")[2] for name in source.getnames()
        }
