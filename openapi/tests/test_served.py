"""What the installation makes for /docs: from the files that it names, without the product, and nothing that is old."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reference import served

INSTALLER = served.ROOT / "deploy/local/install.py"
PAGES_FROM: tuple[str, ...] = runpy.run_path(str(INSTALLER))["PAGES_FROM"]
# Prints the files that are opened below the working directory.
WATCHED = """
import os, sys
here = os.getcwd() + os.sep
opened = set()
sys.addaudithook(lambda event, values: opened.add(values[0]) if event == "open" else None)
from reference import served
served.write()
import json
print(json.dumps([sorted(one.removeprefix(here) for one in opened if isinstance(one, str) and one.startswith(here)),
                  sorted(name for name in sys.modules if name.split(".")[0] in ("gateway", "chassis", "makeready"))]))
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with what the pages are made from, and nothing else."""
    for pattern in PAGES_FROM:
        files = list(served.ROOT.glob(pattern))
        assert files, pattern
        for file in files:
            if file.is_file():
                target = tmp_path / file.relative_to(served.ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
    return tmp_path


def test_pages_need_the_named_files_and_nothing_of_the_product(sources: Path) -> None:
    old = sources / "gateway/gateway/pages/docs.api.gone.html"
    old.write_text("a page of a resource that is none any more")
    command = [sys.executable, "-B", "-P", "-c", WATCHED]
    done = subprocess.run(
        command, cwd=sources, env={"PYTHONPATH": "openapi"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    opened, product = json.loads(done.stdout)
    assert "docs/sync.md" in opened and product == []
    pages = {file.name: file.read_text() for file in old.parent.iterdir() if file.name != "openapi.json"}
    assert pages == served.files() and "docs.api.tickets.html" in pages


def test_what_is_installed_is_what_the_sources_say() -> None:
    assert served.files() == {name: (served.FOLDER / name).read_text() for name in served.files()}


def test_the_installation_notices_a_guide_that_changed(sources: Path) -> None:
    installer = runpy.run_path(str(INSTALLER))
    installer["digest_of"].__globals__["ROOT"] = sources
    before = installer["digest_of"](PAGES_FROM)
    with (sources / "docs/sync.md").open("a") as guide:
        guide.write("One more sentence.\n")
    assert installer["digest_of"](PAGES_FROM) != before
