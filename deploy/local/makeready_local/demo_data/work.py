"""Does the demo company's daily work: each part once, in the order of `PARTS`, whatever interrupts it."""

import datetime
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from importing.demo import residents
from makeready_local.config import Settings
from makeready_local.demo_data import acts
from makeready_local.demo_data.commands import CommandError, Commands
from makeready_local.demo_data.over_the_api import Api, ApiError
from makeready_local.demo_data.receivers import REPORTS

PARTS = ("residents", "successors", "keys", "events")  # a method each
_REPLACED_KEY = ("Ledger bridge, old", "write")
_LADDER_HOURS = "1,2,4,8,24"


class Work:
    """The work in one company, through the command line and the API."""

    def __init__(self, commands: Commands, api: Api, settings: Settings, company: int, email: str, day: datetime.date):
        """email: the administrator's; day: the story's."""
        self._commands = commands
        self._api = api
        self._settings = settings
        self._company = str(company)
        self._email = email
        self._day = day
        self._ids: dict[str, int] = {}

    def do(self, part: str) -> list[str]:
        """Does one of PARTS. Returns what could not be done, a phrase each. Raises LocalError if a service ended."""
        missed: list[str] = []
        try:
            missed.extend(getattr(self, f"_{part}")())
        except ApiError as refused:
            missed.append(f"{part}: {refused}")
        except CommandError as failed:
            missed.append(f"{part}: {failed.reason}")
        return missed

    def _residents(self) -> Iterator[str]:
        self._learn()
        yield from self._api.move(residents.moves(self._day), self._ids)
        yield from self._api.open_tickets(self._ids)
        self._ids = {}  # turns have been added

    def _successors(self) -> Iterator[str]:
        """Lets units ahead."""
        self._learn()
        yield from self._api.move(residents.moves_ahead(self._day), self._ids)
        self._ids = {}

    def _keys(self) -> Iterator[str]:
        """A key that ends soon, and one that has been replaced. Neither is printed or stored."""
        soon = (self._day + datetime.timedelta(days=20)).isoformat()
        for name, scope, *more in (("BI export, trial", "read", "--expires-at", f"{soon}T05:00:00Z"), _REPLACED_KEY):
            words = ("key", "mint", self._company, "--scope", scope, "--name", name, *more, "--as", self._email)
            minted = self._commands.run(*words, "--idempotency-key", f"demo-key-{scope}")
        self._commands.run("key", "revoke", str(minted["key_id"]), "--as", self._email)
        yield from ()

    def _events(self) -> Iterator[str]:
        """Subscribes; then lets events happen, and their deliveries succeed, be parked, or wait."""
        is_flowing = True
        try:
            self._commands.run("wait", "--timeout", "30")  # past events must not fire
        except CommandError as failed:  # NATS is away: the events arrive when it is back
            is_flowing = False
            yield f"deliveries: {failed.reason}"
        subscriptions = {}
        try:
            subscriptions = self._api.subscribe()
        except ApiError as refused:  # there is no vault, or no answer
            yield f"webhooks: {refused}"
        yield from self._act(acts.vendors(self._day))
        yield from self._act(acts.inspections(self._day))
        yield from self._act(acts.upkeep(self._day))
        yield from self._act(acts.turns(self._day))
        yield from self._act(acts.reports(self._day, self._photo))
        self._commands.run("sweep", "stale")  # what is due already
        if is_flowing:
            self._commands.run("wait")  # failed rows open tickets
            self._use_up_the_ladder()
        yield from self._act(acts.endings(self._day))
        if REPORTS in subscriptions:
            reason = "The report is written anew; nothing reads these until then."
            paused = ("webhooks", "pause", str(subscriptions[REPORTS]), "--reason", reason, "--as", self._email)
            self._commands.run(*paused, "--idempotency-key", "demo-pause")
        if is_flowing:
            self._commands.run("sweep", "webhooks")
        yield from self._act(acts.lately(self._day))

    def _use_up_the_ladder(self) -> None:
        """Sweeps as of each rung, so that what fails is parked. Only in a company that is alone in its installation:
        a sweep is for all companies, and would use up the retries of the others, too."""
        if len(self._commands.run("company", "list")["companies"]) > 1:
            self._commands.run("sweep", "webhooks")
            return
        now = datetime.datetime.now(datetime.UTC)
        ladder = os.environ.get("WEBHOOKS_RETRY_LADDER_HOURS") or _LADDER_HOURS
        for hours in (0.0, *map(float, ladder.split(","))):
            self._commands.run("sweep", "webhooks", "--now", (now + datetime.timedelta(hours=hours)).isoformat())

    def _act(self, act_sequence: Iterable[acts.Act]) -> Iterator[str]:
        for act in act_sequence:
            if not self._ids:
                self._learn()
            try:
                self._command(act)
            except CommandError as refused:
                yield f"`makeready {' '.join(act.words[:2])}` {act.words[2]}: {refused.reason}"

    def _command(self, act: acts.Act) -> None:
        words = [*act.words[:2], self._company]
        for word, before in zip(act.words[2:], act.words[1:], strict=False):
            words.append(word if before == "--external-id" else self._word(word))
        if act.who == acts.ADMINISTRATOR:
            words += ["--as", self._email]
        elif act.who != acts.OPERATOR:
            words += ["--as", f"staff:{self._ids.get(act.who, 0)}"]
        record = self._commands.run(*words, "--idempotency-key", act.key)
        # A record that the act has made can be named by the acts after it.
        for name in ("entity_id", "pm_task_id", "notice_id"):
            if record.get("external_id") and record.get(name):
                self._ids[record["external_id"]] = record[name]

    def _word(self, word: str) -> str:
        kind, _, reference = word.partition(":")
        if kind == "row" and reference:
            inspection, _, number = reference.rpartition(":")
            rows = self._commands.run("inspection", "rows", self._company, self._word(inspection))["rows"]
            return str(rows[int(number) - 1]["row_id"])
        if kind == "task" and reference:
            turn, _, task_type = reference.rpartition(":")
            tasks = self._commands.run("turn", "tasks", self._company, self._word(turn))["tasks"]
            return str(next((task["task_id"] for task in tasks if task["task_type"] == task_type), 0) or word)
        return str(self._ids[word]) if word in self._ids else word

    def _learn(self) -> None:
        """Looks up the ids of the records that acts name."""
        self._ids = self._api.ids()
        for group, rows, key in (("staff", "staff", "staff_id"), ("pm", "tasks", "pm_task_id")):
            listed = self._commands.run(group, "list", self._company)[rows]
            self._ids |= {row["external_id"]: row[key] for row in listed if row["external_id"]}

    def _photo(self, name: str) -> str:
        """The address of a drawing that the console serves."""
        spec = importlib.util.find_spec("console")
        folder = next(iter(spec.submodule_search_locations or ())) if spec else ""
        content = Path(folder, "static", "demo", f"{name}.svg").read_bytes()
        return f"{self._settings.console_url}/static/{hashlib.sha256(content).hexdigest()[:16]}/demo/{name}.svg"
