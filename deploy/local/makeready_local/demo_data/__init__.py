"""The demo company: small, believable data. Files bring its history; its people and integrations do the rest, over the
command line and the API as anybody does."""

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import urljoin

from importing.demo import story
from importing.demo.units import Row
from makeready_local.children import LocalError
from makeready_local.config import Settings
from makeready_local.demo_data import acts
from makeready_local.demo_data.commands import CommandError, Commands
from makeready_local.demo_data.over_the_api import Api
from makeready_local.demo_data.work import PARTS, Work
from makeready_local.state import JsonObject, State

COMPANY = "Makeready Demo"
EMAIL = "demo.administrator@example.com"
SCOPES = ("read", "write", "webhook_only")
# demo.json: the addresses, keys and people. demo-story.json: the version of the files' data and the day that they count
# from; the parts of the work that are done and the day that they count from.
PROGRESS, DONE, STORY = "demo-progress.json", "demo.json", "demo-story.json"


def load(state: State, settings: Settings, say: Callable[[str], None], check: Callable[[], None]) -> None:
    """Loads what is missing and writes demo.json. Resumes an interrupted load; a demo of an earlier version gets the
    records that it lacks.

    `check` raises if a service has ended. Raises LocalError.
    """
    done = state.read(DONE)
    if done and not {"company_id", "keys", "administrator"} <= done.keys():
        raise LocalError(f"{state.folder / DONE} is damaged; without it the demo company is loaded anew")
    is_new = not done or is_of_another_database(done, settings)
    if is_new and state.read(STORY) and not state.read(PROGRESS):
        state.remove(STORY)
    recorded = state.read(STORY)
    day = story.day_of(recorded.get("day"))
    rows = story.rows(day)
    version = story.fingerprint(rows)
    parts = [part for part in PARTS if part not in recorded.get("parts", [])]
    if is_new or recorded.get("version") != version or parts or "staff" not in done:
        say("Loading the demo company ..." if is_new else "Bringing the demo company up to date ...")
        # An earlier version of the demo began some day; its people work today.
        begun: JsonObject = {"day": day.isoformat(), "parts": [], "work_day": story.today().isoformat()}
        recorded = begun | recorded
        imported = recorded.pop("version", "")
        state.write(STORY, recorded)
        with Commands(state, check) as commands:
            if is_new:
                done = _make_company(state, commands)
            company, email = done["company_id"], done["administrator"]["email"]
            rejected = _import(state, commands, str(company), rows) if is_new or imported != version else []
            if rejected and is_new:
                raise LocalError(f"the demo company cannot be loaded: {rejected[0]}")
            recorded["version"] = version
            state.write(STORY, recorded)
            if "staff" not in done:
                done["staff"] = _staff(state, commands, str(company), email)
            vendors = {row["name"]: row["external_id"] for row in rows["vendors"]}
            api = Api(settings.local_api_url, done["keys"], vendors)
            work_day = story.day_of(recorded["work_day"])
            work = Work(commands, api, settings, company, email, work_day)
            for part in parts:
                rejected += work.do(part)
                recorded["parts"].append(part)
                state.write(STORY, recorded)
        for line in rejected:  # people have worked with it: its records need not fit any more
            say(f"Left as it is in the demo company: {line}.")
    # Ports and addresses of this start.
    state.write(DONE, {"base_url": settings.api_url, "admin_url": settings.console_url, **_without_addresses(done)})
    state.remove(PROGRESS)


def _make_company(state: State, commands: Commands) -> JsonObject:
    """Makes the company, its administrator and its keys if they are missing. Returns the content of demo.json."""
    progress = state.read(PROGRESS)

    def keep(name: str, value: object) -> None:
        progress[name] = value
        state.write(PROGRESS, progress)

    resumed = bool(progress)
    if "password" not in progress:
        keep("password", secrets.token_urlsafe(12))
    if "company_id" not in progress:
        companies = commands.run("company", "list")["companies"] if resumed else []
        earlier = next((company for company in companies if company["name"] == COMPANY), None)
        demo = earlier or commands.run("company", "create", COMPANY, "--timezone", story.TIMEZONE)
        keep("company_id", demo["company_id"])
    company = str(progress["company_id"])
    if "administrator" not in progress:
        keep("administrator", _administrator(company, progress, keep, commands))
    email = progress["administrator"]
    for scope in SCOPES:
        if scope not in progress.setdefault("keys", {}):
            minted = commands.run(
                "key", "mint", company, "--scope", scope, "--administrator", email, "--name", f"demo {scope}"
            )
            keep("keys", {**progress["keys"], scope: minted["key"]})
    return {
        "company_id": progress["company_id"],
        "keys": progress["keys"],
        "administrator": {"email": email, "password": progress["password"]},
    }


def _administrator(company: str, progress: JsonObject, keep: Callable[[str, object], None], commands: Commands) -> str:
    """Makes the administrator and returns the email. If an earlier demo in this database has the plain email, the
    administrator gets one that names the company."""
    for email in (EMAIL, EMAIL.replace("@", f".{company}@")):
        tried = email in progress.setdefault("emails_tried", [])
        keep("emails_tried", [*progress["emails_tried"], email])
        words = ("administrator", "create", company, email, "--name", "Demo Administrator", "--password-stdin")
        try:
            commands.run(*words, standard_input=progress["password"])
            return email
        except LocalError as error:
            if "with that email exists" not in str(error):
                raise
            # Made just before an interruption, with this very password, which was stored first.
            if tried:
                return email
    raise LocalError("the demo company cannot be loaded: its administrator's emails are taken")


def _staff(state: State, commands: Commands, company: str, email: str) -> list[dict[str, str]]:
    """Lets two members of staff sign in. Returns their names, emails and passwords; not those of a person who has been
    invited before."""
    progress = state.read(PROGRESS)
    passwords: dict[str, str] = progress.get("staff", {})
    people = []
    for member in commands.run("staff", "list", company)["staff"]:
        key = member["external_id"]
        if key not in acts.STAFF_WHO_SIGN_IN or (member["invited"] and key not in passwords):
            continue
        if key not in passwords:
            passwords[key] = secrets.token_urlsafe(12)
            state.write(PROGRESS, {**progress, "staff": passwords})
        staff_id, address = str(member["staff_id"]), member["email"]
        invite, who = ("staff", "invite", company, staff_id, "--as", email), f"staff:{staff_id}"
        try:
            if not member["invited"]:
                commands.run(*invite)
        except CommandError as error:
            if "signs in with that e-mail" not in error.reason:
                raise
            # Of an earlier demo in this database.
            address = address.replace("@", f".{company}@")
            commands.run("staff", "update", company, staff_id, "--email", address, "--as", email)
            commands.run(*invite)
        if not commands.run("account", "show", company, "--as", who)["has_password"]:
            commands.run("account", "change-password", company, "--as", who, standard_input=passwords[key])
        people.append({"name": member["name"], "email": address, "password": passwords[key]})
    return people


def _import(state: State, commands: Commands, company: str, rows: dict[str, list[Row]]) -> list[str]:
    """Imports every kind; returns one line for each kind with rejected rows."""
    folder = state.folder / "demo"
    folder.mkdir(mode=0o700, exist_ok=True)
    rejected = []
    for kind, of_kind in rows.items():
        file, rejects = folder / f"{kind}.jsonl", folder / f"{kind}.rejects.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in of_kind))
        outcome = commands.run("import", company, kind, str(file), "--rejects", str(rejects))
        file.unlink()
        if outcome["rejected"]:
            rejected.append(f"{outcome['rejected']} of {outcome['read']} {kind} were rejected, see {rejects}")
    if not rejected:
        folder.rmdir()
    return rejected


def is_of_another_database(done: JsonObject, settings: Settings) -> bool:
    """Whether the gateway does not know the demo's key: the settings name other servers than at the load."""
    request = urllib.request.Request(  # noqa: S310
        f"{settings.local_api_url}/whoami",
        headers={"Authorization": f"Bearer {done['keys']['read']}"},
    )
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).close()
    except urllib.error.HTTPError as error:
        with error, suppress(ValueError, TypeError, LookupError):
            return bool(error.code == HTTPStatus.UNAUTHORIZED and json.load(error)["error"]["code"] == "unauthorized")
    except OSError:  # it serves TLS, under a name that the runner does not know
        pass
    return False


def _without_addresses(done: JsonObject) -> JsonObject:
    return {name: value for name, value in done.items() if name not in ("base_url", "admin_url")}


def greeting(state: State, settings: Settings) -> str:
    """The text that the user at the terminal needs to begin."""
    reference = urljoin(settings.api_url, "/docs")
    lines = [f"API               {settings.api_url}", f"Reference         {reference}"]
    lines.append(f"Administrator     {settings.console_url}")
    done = state.read(DONE)
    if done:
        administrator = done["administrator"]
        lines.append(f"                  {administrator['email']}  {administrator['password']}")
        lines += [f"Staff             {member['email']}  {member['password']}" for member in done.get("staff", [])]
        lines += [f"Key {scope:<14}{key}" for scope, key in done["keys"].items()]
        lines += [
            "",
            "Try:",
            f"  curl -s -H 'Authorization: Bearer {done['keys']['read']}' '{settings.api_url}/tickets?limit=3'",
        ]
    else:
        lines += ["", "There is no demo company. Begin with: .venv/bin/makeready company create NAME"]
    return "\n".join([*lines, "", "Ctrl-C stops everything; the data stay."])
