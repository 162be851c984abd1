"""Every example of the reference, pasted: in three languages, with the demo company's keys, one run a language."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testkit.prepared import prepare_state
from testkit.requirements import lacks
from testkit.typescript import deno, installed, machines_node

from .system import System

ROOT = Path(__file__).resolve().parents[2]
MARK = "=== "
Ran = dict[str, tuple[bool, str]]
"""By operation, whether its example ended well, and what it printed."""
RUN_PYTHON = f"""
import json, os, sys, traceback
for name, key, source in json.load(sys.stdin):
    print({MARK!r} + name, flush=True)
    os.environ["MAKEREADY_API_KEY"] = key
    try:
        exec(compile(source, name, "exec"), {{"__name__": "__main__"}})
        print("ended well")
    except Exception:
        traceback.print_exc(file=sys.stdout)
"""
RUN_JAVASCRIPT = f"""
import {{ readFileSync }} from "node:fs";
for (const [name, key, file] of JSON.parse(readFileSync(0, "utf8"))) {{
  console.log({MARK!r} + name);
  process.env.MAKEREADY_API_KEY = key;
  try {{ await import(file); console.log("ended well"); }} catch (error) {{ console.log(error); }}
}}
"""


@pytest.fixture(scope="module")
def demo(states: Path) -> Iterator[System]:
    """An installation as `make run` starts it."""
    running = System(states / "pasted")
    prepare_state(running.state, demo=True)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def samples(demo: System, label: str) -> list[tuple[str, str, str]]:
    """The name, the demo's key and the text of the example of each operation in a language. What only sandboxes have is
    sent with the key of one.

    Writes are sent with one key, as what names a row of the caller's has its `Idempotency-Key`. A language's reads have
    a key of their own, as together they are more than a minute's requests.
    """
    reading = demo.mint(demo.demo["company_id"], "read", demo.demo["administrator"]["email"])
    trying = demo.company("Examples", "--sandbox").keys["write"]

    def key_for(method: str, path: str) -> str:
        if path.startswith("/sandbox/"):
            return trying
        writing: str = demo.demo["keys"]["write"]
        return reading if method == "get" and "replays" not in path else writing

    return [
        (f"{method.upper()} {path}", key_for(method, path), sample["source"])
        for path, operations in demo.get("/openapi.json").json["paths"].items()
        for method, operation in operations.items()
        for sample in operation["x-codeSamples"]
        if sample["label"] == label
    ]


def by_curl(demo: System, folder: Path) -> Ran:
    bash = shutil.which("bash") if shutil.which("curl") else None
    if not bash:
        lacks("curl", "there is no such command here")
    (folder / ".curlrc").write_text('write-out = "\\n%{http_code}\\n"\nsilent\n')
    script = "".join(
        f"echo '{MARK}{name}'\nexport MAKEREADY_API_KEY={key}\n{source}" for name, key, source in samples(demo, "curl")
    )
    printed = run([bash, "-s"], script, {"CURL_HOME": str(folder)})
    return {name: (bool(re.search(r"^2\d\d$", output.strip()[-3:])), output) for name, output in printed.items()}


def by_python(demo: System, folder: Path) -> Ran:
    environment = {"MAKEREADY_BASE_URL": demo.base_url, "PYTHONPATH": str(ROOT / "sdk" / "python")}
    printed = run([sys.executable, "-P", "-c", RUN_PYTHON], json.dumps(samples(demo, "Python")), environment)
    return {name: (output.endswith("ended well\n"), output) for name, output in printed.items()}


def by_javascript(demo: System, folder: Path) -> Ran:
    """Each as a file that ends with `.mjs`, by the oldest Node.js that the machine has."""
    installed(folder)
    programs = []
    for number, (name, key, source) in enumerate(samples(demo, "TypeScript")):
        file = folder / f"pasted-{number}.mjs"
        file.write_text(source)
        programs.append((name, key, file.as_uri()))
    command = [machines_node(), "--input-type=module", "-e", RUN_JAVASCRIPT]
    printed = run(command, json.dumps(programs), {"MAKEREADY_BASE_URL": demo.base_url})
    return {name: (output.endswith("ended well\n"), output) for name, output in printed.items()}


def run(command: list[str], stdin: str, environment: dict[str, str]) -> dict[str, str]:
    """What the program printed behind each mark."""
    done = subprocess.run(
        command, input=stdin, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    parts = re.split(rf"(?m)^{MARK}(.*)\n", done.stdout)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("pasted", [by_curl, by_python, by_javascript])
def test_every_example_runs_as_pasted(demo: System, tmp_path: Path, pasted: Callable[[System, Path], Ran]) -> None:
    ran = pasted(demo, tmp_path)
    operations = {
        f"{method.upper()} {path}" for path, item in demo.get("/openapi.json").json["paths"].items() for method in item
    }
    assert ran.keys() == operations
    assert {name: output for name, (ended_well, output) in ran.items() if not ended_well} == {}


def test_every_example_has_the_types_of_the_client(demo: System, tmp_path: Path) -> None:
    installed(tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for number, (_, _, source) in enumerate(samples(demo, "TypeScript")):
        (tmp_path / f"pasted-{number}.ts").write_text(source)
    done = deno("check", "--node-modules-dir=manual", *map(str, sorted(tmp_path.glob("pasted-*.ts"))))
    assert done.returncode == 0, done.stderr
