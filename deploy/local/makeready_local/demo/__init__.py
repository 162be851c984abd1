"""The demo company: small believable data, loaded once through the operator's command line."""

import json
import os
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
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
    if done and not {"company_id", "keys", "administrator"} <= done.keys():
        raise LocalError(f"{state.folder / DONE} is damaged; without it the demo company is loaded anew")
    if not done or is_of_another_database(done, settings):
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
        keep("administrator", _administrator(company, progress, keep, command))
    email = progress["administrator"]
    for scope in SCOPES:
        if scope not in progress.setdefault("keys", {}):
            minted = command(
                "key", "mint", company, "--scope", scope, "--administrator", email, "--name", f"demo {scope}"
            )
            keep("keys", {**progress["keys"], scope: minted["key"]})
    for kind in KINDS:
        outcome = command("import", company, kind, str(Path(__file__).with_name(f"{kind}.jsonl")))
        if outcome["rejected"]:
            raise LocalError(f"the demo's {kind} were rejected: see {outcome['rejects_file']}")
    return {
        "company_id": progress["company_id"],
        "keys": progress["keys"],
        "administrator": {"email": email, "password": progress["password"]},
    }


def _administrator(
    company: str, progress: dict[str, Any], keep: Callable[[str, object], None], command: Callable[..., dict[str, Any]]
) -> str:
    """Makes the administrator, under an email of the company's own where an earlier demo in this database has the
    plain one. Its email."""
    for email in (EMAIL, EMAIL.replace("@", f".{company}@")):
        tried = email in progress.setdefault("emails_tried", [])
        keep("emails_tried", [*progress["emails_tried"], email])
        words = ("administrator", "create", company, email, "--name", "Demo Administrator", "--password-stdin")
        try:
            command(*words, given=progress["password"])
            return email
        except LocalError as error:
            if "with that email exists" not in str(error):
                raise
            # Made just before an interruption: with this very password, which was kept first.
            if tried:
                return email
    raise LocalError("the demo company cannot be loaded: its administrator's emails are taken")


def is_of_another_database(done: dict[str, Any], settings: Settings) -> bool:
    """Whether the gateway has never heard of the demo's key: other servers were named since it was loaded."""
    request = urllib.request.Request(  # noqa: S310
        f"{settings.local_api_url}/whoami",
        headers={"Authorization": f"Bearer {done['keys']['read']}"},
    )
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).close()
    except urllib.error.HTTPError as error:
        with error, suppress(ValueError, TypeError, LookupError):
            return bool(error.code == HTTPStatus.UNAUTHORIZED and json.load(error)["error"]["code"] == "unauthorized")
    except OSError:  # it speaks TLS, under a name that is not for us to know
        pass
    return False


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
