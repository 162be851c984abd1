"""`make vendor`: fetches the scripts of others anew, as static/vendor/vendor.toml names them.

npm checks a package against its own integrity. This program checks it against ours, and writes the hash of each file,
which a test compares with the committed file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "static" / "vendor"
LIST = FOLDER / "vendor.toml"


def packages(text: str) -> Mapping[str, Mapping[str, Any]]:
    """By name: version, integrity, and files with the path in the package and the hash of each."""
    return dict(tomllib.loads(text)["package"])


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(name: str, package: Mapping[str, Any], npm: str) -> dict[str, bytes]:
    """The files of one package. Raises SystemExit if it is not the one that vendor.toml names."""
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--json", "--pack-destination", folder, f"{name}@{package['version']}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: S603 - names of vendor.toml
        archive = Path(folder, json.loads(done.stdout)[0]["filename"])
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if integrity != package["integrity"]:
            raise SystemExit(f"vendor: {name} {package['version']} has the integrity {integrity}")
        with tarfile.open(archive) as files:
            contents = {}
            for file, source in package["files"].items():
                member = files.extractfile(f"package/{source['path']}")
                assert member is not None
                contents[file] = member.read()
    return contents


def main() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("vendor: npm is needed")
    text = LIST.read_text()
    for name, package in packages(text).items():
        for file, content in fetch(name, package, npm).items():
            (FOLDER / file).write_bytes(content)
            text = text.replace(package["files"][file]["sha256"], digest(content))
            sys.stdout.write(f"{file}: {name} {package['version']}, {len(content)} bytes\n")
    LIST.write_text(text)


if __name__ == "__main__":
    main()
