"""`make sdk`: the distributions of the client libraries; the same bytes from the same tree, every time.

    python sdk/build.py [DIR]       DIR is sdk/dist if left out; what is in it is removed

Nothing is downloaded: the build backends are in the lock. Their timestamps are those of the contract's last change, or
SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import runpy
import sys
from contextlib import chdir
from pathlib import Path

from flit_core import buildapi

SDK = Path(__file__).resolve().parent
PYTHON, TYPESCRIPT = SDK / "python", SDK / "typescript"


def main(words: list[str]) -> int:
    """Builds all distributions anew and prints the SHA-256 of each."""
    target = Path(words[0]).resolve() if words else SDK / "dist"
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    for archive in (*python(target), typescript(target)):
        sys.stdout.write(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
    return 0


def python(target: Path) -> list[Path]:
    """The wheel and the source distribution of makeready-client."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(contract_epoch()))
    with chdir(PYTHON):
        return [target / buildapi.build_wheel(str(target)), target / buildapi.build_sdist(str(target))]


def typescript(target: Path) -> Path:
    """The npm tarball of @makeready/client."""
    archive: Path = runpy.run_path(str(TYPESCRIPT / "pack.py"))["main"](target)
    return archive


def contract_epoch() -> int:
    """The date of the contract's last change, in seconds since 1970."""
    match = re.search(r'^CONTRACT = "(.*)"$', (PYTHON / "makeready_client" / "models.py").read_text(), re.MULTILINE)
    assert match, "the generated models name no date"
    return int(datetime.datetime.fromisoformat(match[1]).replace(tzinfo=datetime.UTC).timestamp())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
