"""Starts, stops and calls a whole Makeready, and checks every response against its published contract."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from testkit.api_contract import Contract
from testkit.clocks import quiet_period
from testkit.patience import until
from testkit.processes import Process, free_port
from testkit.warm import SOCKET, warm_parent

from .shell import shell

START_SECONDS = 240
REQUESTS_A_KEY = 115  # of the 120 that a key may send in a minute


@dataclass
class Answer:
    """One HTTP response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code."""
        code: str = self.json["error"]["code"]
        return code


class System(Process):
    """`make run` and the operator's command line, in a separate state folder."""

    def __init__(self, state: Path, **settings: str) -> None:
        command = [sys.executable, "-P", "-m", "testkit.warm_runner"]
        super().__init__(command, state.with_name(state.name + ".output"), warm=True)
        self.state = state
        self.settings = settings
        self.ports = {"MAKEREADY_API_PORT": str(free_port()), "MAKEREADY_ADMIN_PORT": str(free_port())}
        self._sweep_seconds = str(quiet_period())
        self.contract: Contract | None = None
        """The contract that responses must keep; set at the first start."""
        self.companies: dict[int, Company] = {}
        """The companies that tests have created, by id."""

    def run_as(self, command: list[str]) -> None:
        """Starts another program than the runner in its place, in a new interpreter."""
        self._command, self.warm = command, False

    @property
    def environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKEREADY_", "WEBHOOKS_"))}
        inherited["WEBHOOKS_SWEEP_SECONDS"] = self._sweep_seconds
        # No receiver has a certificate of the machine's 140 authorities, which take svc-webhooks 25 ms to load.
        inherited["SSL_CERT_FILE"] = os.devnull
        settings = {"MAKEREADY_STATE_DIR": str(self.state), SOCKET: warm_parent().address}
        return inherited | self.ports | self.settings | settings

    def start(self, **more: str) -> float:
        """Starts the system and waits for its first 200; returns the seconds that this took."""
        started = time.monotonic()
        self.launch(**more)
        self.wait_until(self._answers, START_SECONDS)
        took = time.monotonic() - started
        self.wait_until(self._has_written_runtime)
        self.contract = Contract(self.get("/openapi.json").json)
        return took

    def _answers(self) -> bool:
        """Whether the API answers 200. Without a demo company there is no key yet, so it fetches a public page."""
        try:
            if self.settings.get("MAKEREADY_DEMO") == "0":
                return self.get("/openapi.json").status == 200
            return self.get("/whoami", self.demo["keys"]["read"]).status == 200
        except (OSError, KeyError, ValueError):
            return False

    def _has_written_runtime(self) -> bool:
        """Whether the runner has written runtime.json for this start."""
        try:
            return bool(self.runtime["pid"] == self.pid)
        except (OSError, ValueError):
            return False

    def stop(self) -> int:
        """Stops the system like Ctrl-C; returns the exit status."""
        return self.end(signal.SIGINT, 60)

    @property
    def runtime(self) -> dict[str, Any]:
        runtime: dict[str, Any] = json.loads((self.state / "runtime.json").read_text())
        return runtime

    @property
    def demo(self) -> dict[str, Any]:
        demo: dict[str, Any] = json.loads((self.state / "demo.json").read_text())
        return demo

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['MAKEREADY_API_PORT']}/api/v1"

    # The command line

    def makeready(self, *words: str, status: int = 0, stdin: str | None = None) -> Any:
        """Runs `makeready --json …`; returns its one JSON object. Fails on another exit status."""
        done = self.run("--json", *words, stdin=stdin)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the program in a process forked from one that has imported it, which saves nearly all of its cost."""
        return shell().run(words, self.environment, self.state, stdin)

    def run_anew(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the installed program in a new interpreter, at half a second of CPU."""
        program = Path(sys.executable).with_name("makeready")
        return subprocess.run(
            [str(program), *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            input=stdin,
            cwd=self.state,
        )

    def company(self, name: str, *options: str) -> Company:
        """Creates a company with an administrator and a key of each scope. options: of `company create`."""
        company_id = self.makeready("company", "create", name, *options)["company_id"]
        email = f"admin@{company_id}.test"
        self.makeready(
            "administrator", "create", str(company_id), email, "--password-stdin", stdin="correct horse battery\n"
        )
        keys = {scope: self.mint(company_id, scope, email) for scope in SCOPES}
        company = self.companies[company_id] = Company(self, company_id, email, keys)
        return company

    def mint(self, company_id: int, scope: str, email: str | None = None) -> str:
        words = ["key", "mint", str(company_id), "--scope", scope]
        key: str = self.makeready(*words, *(["--administrator", email] if email else []))["key"]
        return key

    # HTTP

    def call(
        self, method: str, path: str, key: str | None = None, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        parts = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, parts.path + path, raw, sent)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        finally:
            connection.close()
        if self.contract is not None:
            self.contract.check(method, path.partition("?")[0], answer.status, answer.headers, answer.body)
        return answer

    def get(self, path: str, key: str | None = None, **query: object) -> Answer:
        return self.call("GET", path + ("?" + urlencode(query) if query else ""), key)

    def post(self, path: str, key: str, body: object, idempotency_key: str) -> Answer:
        return self.call("POST", path, key, body, {"Idempotency-Key": idempotency_key})


SCOPES = ("read", "write", "webhook_only")


@dataclass
class Company:
    """A company of the running system, and its keys by scope."""

    system: System
    company_id: int
    email: str
    keys: dict[str, str]
    _unspent: dict[str, tuple[str, int]] = field(default_factory=dict)

    def key_for(self, requests: int = 1, scope: str = "write") -> str:
        """A key of the scope with rate limit left for this number of requests; mints a new one if needed."""
        assert requests <= REQUESTS_A_KEY
        key, requests_left = self._unspent.get(scope, ("", 0))
        if requests_left < requests:
            key, requests_left = self.system.mint(self.company_id, scope, self.email), REQUESTS_A_KEY
        self._unspent[scope] = key, requests_left - requests
        return key

    def keep_key(self, requests: int, scope: str = "write") -> None:
        """The next keys of the scope, for so many requests in all, will be the same one."""
        key = self.key_for(requests, scope)
        self._unspent[scope] = key, self._unspent[scope][1] + requests

    def import_rows(self, kind: str, rows: list[dict[str, Any]], *options: str, status: int = 0) -> Any:
        """Imports rows from a JSONL file."""
        file = self.system.state.with_name(f"{kind}-{time.monotonic_ns()}.jsonl")
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.system.makeready("import", str(self.company_id), kind, str(file), *options, status=status)

    def walk(self, path: str, limit: int = 200, **filters: object) -> Iterator[dict[str, Any]]:
        """Every record of a list, page by page. Checks each page; mints a new key when the rate limit is reached."""
        cursor: str | None = None
        last = 0
        while True:
            query = {"limit": limit, **filters} | ({"cursor": cursor} if cursor else {})
            answer = self.system.get(path, self.keys["read"], **query)
            if answer.status == 429:
                self.keys["read"] = self.system.mint(self.company_id, "read", self.email)
                continue
            assert answer.status == 200, answer
            page = answer.json
            assert list(page) == ["data", "next_cursor", "limit"] and page["limit"] == limit
            ids = [record["entity_id"] for record in page["data"]]
            assert ids == sorted(set(ids)) and (not ids or ids[0] > last)
            yield from page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return
            assert len(ids) == limit
            last = ids[-1]

    def shows(self, unit_id: int, status: str | None, ready_on: str | None = None) -> float:
        """Waits until GET /units/{id} has this state, which svc-occupancy owns and tells svc-catalog; returns the
        seconds."""

        def state() -> tuple[str | None, str | None]:
            unit = self.system.get(f"/units/{unit_id}", self.key_for(scope="read")).json
            return unit["unit_status"], unit["projected_ready_on"]

        return until(lambda: state() == (status, ready_on), lambda: f"it shows {state()}, not {(status, ready_on)}")

    def create_ticket(self, unit_id: int, title: str, idempotency_key: str) -> Answer:
        body = {"unit_id": unit_id, "title": title, "category": "Plumbing"}
        return self.system.post("/tickets", self.keys["write"], body, idempotency_key)
