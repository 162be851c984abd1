"""The demo company: small believable data, loaded once through the operator's command line."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from makeready_local.children import LocalError
from makeready_local.config import Settings
from makeready_local.state import State

COMPANY = "Makeready Demo"
TIMEZONE = "America/New_York"
EMAIL = "demo.administrator@example.com"
SCOPES = ("read", "write", "webhook_only")
KINDS = ("properties", "units", "assets", "tickets")  # each refers to those before it
COMMAND_SECONDS = 120
PROGRESS, DONE = "demo-progress.json", "demo.json"


def load(state: State, settings: Settings, say: Callable[[str], None], check: Callable[[], None]) -> None:
    """Loads what is not loaded yet, and writes demo.json. A load that was interrupted is taken up where it stood.

    `check` raises where a service has ended. Raises LocalError.
    """
    done = state.read(DONE)
    if not done:
        say("Loading the demo company ...")
        done = _load(state, check)
    # Ports and addresses are those of this start.
    state.write(DONE, {"base_url": settings.api_url, "admin_url": settings.admin_url, **_without_addresses(done)})
    state.remove(PROGRESS)


def _load(state: State, check: Callable[[], None]) -> dict[str, Any]:
    progress = state.read(PROGRESS)

    def command(*words: str, given: str = "") -> dict[str, Any]:
        check()
        return run(state, words, given)

    def keep(name: str, value: object) -> None:
        progress[name] = value
        state.write(PROGRESS, progress)

    resumed = bool(progress)
    if "password" not in progress:
        keep("password", secrets.token_urlsafe(12))
    if "company_id" not in progress:
        companies = command("company", "list")["companies"] if resumed else []
        known = [company for company in companies if company["name"] == COMPANY]
        made = known[0] if known else None
        keep(
            "company_id",
            made["company_id"] if made else command("company", "create", COMPANY, "--timezone", TIMEZONE)["company_id"],
        )
    company = str(progress["company_id"])
    if "administrator" not in progress:
        words = ("administrator", "create", company, EMAIL, "--name", "Demo Administrator", "--password-stdin")
        tried = progress.get("administrator_tried")
        keep("administrator_tried", True)
        try:
            command(*words, given=progress["password"])
        except LocalError:
            # Made just before the interruption: with this very password, which was kept first.
            if not tried:
                raise
        keep("administrator", EMAIL)
    for scope in SCOPES:
        if scope not in progress.setdefault("keys", {}):
            minted = command(
                "key", "mint", company, "--scope", scope, "--administrator", EMAIL, "--name", f"demo {scope}"
            )
            keep("keys", {**progress["keys"], scope: minted["key"]})
    for kind in KINDS:
        outcome = command("import", company, kind, str(Path(__file__).with_name(f"{kind}.jsonl")))
        if outcome["rejected"]:
            raise LocalError(f"the demo's {kind} were rejected: see {outcome['rejects_file']}")
    return {
        "company_id": progress["company_id"],
        "keys": progress["keys"],
        "administrator": {"email": EMAIL, "password": progress["password"]},
    }


def run(state: State, words: tuple[str, ...], given: str = "") -> dict[str, Any]:
    """Runs `makeready --json WORDS…` against this installation; its answer. Raises LocalError."""
    program = [sys.executable, "-P", "-m", "gateway.cli", "--json", *words]
    environment = {**os.environ, "MAKEREADY_STATE_DIR": str(state.folder)}
    try:
        done = subprocess.run(  # noqa: S603
            program, input=given, capture_output=True, text=True, env=environment, timeout=COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise _failed(words, f"no answer within {COMMAND_SECONDS} s") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if done.returncode not in (0, 3) or not isinstance(answer, dict):
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise _failed(words, lines[-1].strip() if lines else f"exit status {done.returncode}")
    return answer


def _failed(words: tuple[str, ...], reason: str) -> LocalError:
    return LocalError(
        f"the demo company cannot be loaded: `makeready {' '.join(words[:2])}`: {reason}; "
        "MAKEREADY_DEMO=0 starts without it, the next start takes it up again"
    )


def _without_addresses(done: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in done.items() if name not in ("base_url", "admin_url")}


def greeting(state: State, settings: Settings) -> str:
    """What the person at the terminal needs to begin."""
    lines = [f"API               {settings.api_url}", f"Administrator     {settings.admin_url}"]
    done = state.read(DONE)
    if done:
        administrator = done["administrator"]
        lines.append(f"                  {administrator['email']}  {administrator['password']}")
        lines += [f"Key {scope:<14}{key}" for scope, key in done["keys"].items()]
        lines += [
            "",
            "Try:",
            f"  curl -s -H 'Authorization: Bearer {done['keys']['read']}' '{settings.api_url}/tickets?limit=3'",
        ]
    else:
        lines += ["", "There is no demo company. Begin with: .venv/bin/makeready company create NAME"]
    return "\n".join([*lines, "", "Ctrl-C stops everything; the data stay."])
