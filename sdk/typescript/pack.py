"""Packs the npm tarball of the TypeScript client: `python sdk/typescript/pack.py [FOLDER]`, into sdk/dist by default.

The wheel `deno` of the development environment turns the sources into JavaScript and declarations, without a registry.
The tarball has the same bytes each time. Prints its path.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent
LONG_AGO = 499162500  # 1985-10-26, as npm itself dates the files of a package


def main(folder: Path) -> Path:
    """Packs; returns the tarball's path. Raises CalledProcessError where the sources have a wrong type."""
    about = json.loads((PROJECT / "package.json").read_text())
    name = about["name"].removeprefix("@").replace("/", "-")
    target = folder / f"{name}-{about['version']}.tgz"
    files = {name: (PROJECT / name).read_bytes() for name in ("CHANGELOG.md", "LICENSE", "README.md", "package.json")}
    files |= dict(compiled())
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mtime, entry.mode = len(content), LONG_AGO, 0o644
            archive.addfile(entry, io.BytesIO(content))
    folder.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return target


def compiled() -> Iterator[tuple[str, bytes]]:
    """The modules as JavaScript and declarations, which name each other as JavaScript."""
    deno = Path(sys.executable).with_name("deno")
    sources = sorted(path.name for path in (PROJECT / "src").glob("*.ts"))
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"DENO_DIR": f"{folder}/cache", "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
        command = [str(deno), "transpile", "--declaration", "--no-config", "--no-lock", "--outdir", f"{folder}/dist"]
        subprocess.run(  # noqa: S603 - our own words
            [*command, *sources],
            cwd=PROJECT / "src",
            env=os.environ | quiet,
            check=True,
            capture_output=True,
            text=True,
        )
        for path in sorted(Path(folder, "dist").rglob("*.[jt]s")):
            text = re.sub(r'(from "\./\w+)\.ts"', r'\1.js"', path.read_text())
            # The compiler's own remark names a path of this machine.
            text = re.sub(r"^/// <amd-module .*\n", "", text)
            yield f"dist/{path.name}", text.encode()


if __name__ == "__main__":
    sys.stdout.write(f"{main(Path(sys.argv[1]) if sys.argv[1:] else PROJECT.parent / 'dist')}\n")
