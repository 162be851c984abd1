"""What the installation makes for /docs: from the files that it names, without the product, and nothing that is old."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft7Validator, ValidationError

from reference import served
from testkit.typescript import from_npm

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


def test_the_events_as_asyncapi_have_every_event_and_valid_examples() -> None:
    document = json.loads(served.files()["asyncapi.json"])
    messages = document["components"]["messages"]
    openapi = json.loads(served.DOCUMENT.read_text())
    assert [message["name"] for message in messages.values()] == list(openapi["webhooks"])
    assert set(document["channels"]["receiver"]["messages"]) == set(messages)
    for message in messages.values():
        schema = message["payload"] | {"components": document["components"]}
        Draft7Validator(schema, format_checker=Draft7Validator.FORMAT_CHECKER).validate(
            message["examples"][0]["payload"]
        )
        with pytest.raises(ValidationError):
            Draft7Validator(schema).validate(message["examples"][0]["payload"] | {"event": "ticket.exploded"})


def test_the_asyncapi_document_is_valid_to_its_own_parser(tmp_path: Path) -> None:
    from_npm(tmp_path, "@asyncapi/parser@3")
    (tmp_path / "asyncapi.json").write_text(served.files()["asyncapi.json"])
    (tmp_path / "parse.mjs").write_text(
        'import { Parser } from "@asyncapi/parser";\n'
        'import { readFileSync } from "node:fs";\n'
        'const { document, diagnostics } = await new Parser().parse(readFileSync("asyncapi.json", "utf8"));\n'
        "const errors = diagnostics.filter((diagnostic) => diagnostic.severity === 0);\n"
        "console.log(JSON.stringify([document?.allMessages().all().length ?? 0, errors]));\n"
    )
    done = subprocess.run([shutil.which("node") or "node", "parse.mjs"], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) == [10, []]
