"""The examples of the reference: in every language they send the operation's request, and read the answer shown."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.http.reference import BASE_URL
from gateway.http.routes import OPERATIONS
from reference.document import made
from testkit.requirements import lacks

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "sdk" / "typescript" / "src" / "index.ts"
DOCUMENT = made()
SAMPLES = {
    f"{verb.upper()} {path}": {sample["label"]: sample["source"] for sample in operation["x-codeSamples"]}
    for path, item in DOCUMENT["paths"].items()
    for verb, operation in item.items()
}
Sent = tuple[str, str, dict[str, list[str]], Any, bool]


class Shown(BaseHTTPRequestHandler):
    """Answers each request as the document's example of its operation shows, and keeps what was sent."""

    protocol_version = "HTTP/1.1"
    sent: list[Sent]

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        place = urlsplit(self.path)
        query = {name: values for name, values in parse_qs(place.query).items() if name != "limit"}
        path = place.path.removeprefix("/api/v1")
        self.sent.append((self.command, path, query, body, "Idempotency-Key" in self.headers))
        status, kind, text = answers(self.command, path)
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if status != 204:
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - names of the standard library

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the standard library
        """Prints nothing."""


def answers(method: str, path: str) -> tuple[int, str, bytes]:
    """The status, the type and the body of the document's first example of a success."""
    forms = {re.sub(r"{\w+}", "[^/]+", form): form for form in DOCUMENT["paths"]}
    form = next(path_form for pattern, path_form in forms.items() if re.fullmatch(pattern, path))
    responses = DOCUMENT["paths"][form][method.lower()]["responses"]
    status, response = next((int(code), documented) for code, documented in responses.items() if code.startswith("2"))
    for kind, content in response.get("content", {}).items():
        value = next(iter(content.get("examples", {"": {"value": {"openapi": "3.1.0"}}}).values()))["value"]
        if isinstance(value, dict) and "next_cursor" in value:
            value = value | {"next_cursor": None}  # the walk ends here
        return (
            status,
            kind,
            value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode(),
        )
    return status, "", b""


@contextmanager
def shown() -> Iterator[tuple[str, list[Sent]]]:
    """The base address of a server that answers as the document shows, and what it was sent."""
    sent: list[Sent] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Shown,), {"sent": sent}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/api/v1", sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def expected() -> list[Sent]:
    """What the commands in curl send."""
    bash = shutil.which("bash") if shutil.which("curl") else None
    if not bash:
        lacks("curl", "there is no such command here")
    with shown() as (base_url, sent):
        script = "".join(sample["curl"] for sample in SAMPLES.values()).replace(BASE_URL, base_url)
        environment = os.environ | {"MAKEREADY_API_KEY": "mk_of-the-examples"}
        subprocess.run([bash, "-es"], input=script, env=environment, capture_output=True, text=True, check=True)
    return sent


def test_every_operation_has_an_example_in_each_language(expected: list[Sent]) -> None:
    assert list(SAMPLES) == [f"{operation.route.method} {operation.route.path}" for operation in OPERATIONS]
    assert all(list(sample) == ["curl", "Python", "TypeScript"] for sample in SAMPLES.values())
    called = [
        (method, min((form for form in DOCUMENT["paths"] if matches(form, path)), key=lambda form: form.count("{")))
        for method, path, _, _, _ in expected
    ]
    for operation in OPERATIONS:
        route = operation.route
        assert (route.method, route.path) in called
    assert all(
        (body is not None, has_key) == ((method in ("POST", "PUT", "PATCH"),) * 2)
        for method, _, _, body, has_key in expected
    )


def matches(form: str, path: str) -> bool:
    return bool(re.fullmatch(re.sub(r"{\w+}", "[^/]+", form), path))


def test_the_examples_in_python_send_the_same(expected: list[Sent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "sdk" / "python"))
    with shown() as (base_url, sent):
        monkeypatch.setenv("MAKEREADY_BASE_URL", base_url)
        monkeypatch.setenv("MAKEREADY_API_KEY", "mk_of-the-examples")
        for name, sample in SAMPLES.items():
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(sample["Python"], name, "exec"), {})
            assert printed.getvalue() or name.startswith("DELETE"), name
    assert sent == expected


def test_the_examples_in_typescript_send_the_same_and_have_its_types(expected: list[Sent], tmp_path: Path) -> None:
    deno = Path(sys.executable).with_name("deno")
    if not deno.exists():
        lacks("deno", "the wheel deno is not installed")
    begins = f'import {{ Makeready }} from "{CLIENT.as_uri()}";\n'
    bodies = [sample["TypeScript"].partition("\n\n")[2] for sample in SAMPLES.values()]
    assert all("new Makeready()" in body for body in bodies)
    program = tmp_path / "samples.ts"
    program.write_text(begins + "".join(f"await (async () => {{\n{body}}})();\n" for body in bodies))
    with shown() as (base_url, sent):
        environment = os.environ | {
            "DENO_DIR": str(Path(sys.prefix) / "deno"),
            "DENO_NO_UPDATE_CHECK": "1",
            "MAKEREADY_BASE_URL": base_url,
            "MAKEREADY_API_KEY": "mk_of-the-examples",
        }
        command = [
            str(deno),
            "run",
            "--quiet",
            "--check",
            "--no-lock",
            "--no-config",
            "--no-remote",
            "-A",
            str(program),
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sent == expected
    assert len(done.stdout.splitlines()) >= len(SAMPLES) - 1
