"""A company of the month: its staff use the command line, its integrations the API."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from testkit.event_contract import published

from .month_model import Model
from .receiver import Delivery, Receiver
from .system import Answer, Company, System

Record = dict[str, Any]
EVENTS = tuple(sorted(published().document["webhooks"]))
AT_ONCE = 3  # parallel processes of the command line, which spend most of their time in starting


def together(acts: Iterable[Callable[[], Any]]) -> list[Any]:
    """Runs the functions in parallel; returns their results in order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [future.result() for future in [pool.submit(act) for act in acts]]


@dataclass(frozen=True)
class Command:
    """One command that changed something, and what it printed."""

    words: tuple[str, ...]
    printed: Any

    @property
    def verb(self) -> str:
        return " ".join(self.words[:2])


@dataclass(frozen=True)
class Request:
    """One write over the API, and its answer."""

    method: str
    path: str
    body: Record
    idempotency_key: str
    key: str
    answer: Answer


@dataclass
class Player:
    """One company. ids: its records' ids, by kind and by their name in the script."""

    system: System
    company: Company
    model: Model
    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    """The signing secret by the receiver's path."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: int = 0

    @classmethod
    def founded(cls, system: System, name: str, zone: ZoneInfo, stale_after_hours: int) -> Player:
        """Creates a company in a time zone, with an administrator and keys."""
        words = ("--ticket-stale-after-hours", str(stale_after_hours))
        company = system.company(name, "--timezone", zone.key)
        system.makeready("company", "update", str(company.company_id), *words)
        return cls(system, company, Model(zone, stale_after_hours))

    @property
    def home(self) -> str:
        """The external_id of its first property."""
        return "P1" if ("property", "P1") in self.ids else "P"

    def number(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def key(self, requests: int = 1, scope: str = "write") -> str:
        with self._lock:
            return self.company.key_for(requests, scope)

    # The command line

    def words(self, noun: str, verb: str, *places: object, **options: object) -> tuple[str, ...]:
        """The words of a back office command. `who` becomes --as; a list becomes one option for each entry."""
        words = [noun, verb, str(self.company.company_id), *map(str, places)]
        for name, value in options.items():
            option = "--" + ("as" if name == "who" else name.replace("_", "-"))
            if value is True:
                words.append(option)
            elif value is False:
                words.append("--no" + option[1:])
            else:
                values = value if isinstance(value, list | tuple) else [value]
                words += [word for text in values for word in (option, str(text))]
        return tuple(words)

    def do(self, noun: str, verb: str, *places: object, **options: object) -> Any:
        """Runs a command that changes something, and records it for the retry at the end."""
        words = (*self.words(noun, verb, *places, **options), "--idempotency-key", f"month {self.number()}")
        printed = self.system.makeready(*words)
        self.commands.append(Command(words, printed))
        return printed

    def ask(self, noun: str, verb: str, *places: object, **options: object) -> Any:
        """Runs a command that changes nothing."""
        return self.system.makeready(*self.words(noun, verb, *places, **options))

    def refused(self, noun: str, verb: str, *places: object, **options: object) -> str:
        """Runs a command that must fail; returns its error line."""
        done = self.system.run(*self.words(noun, verb, *places, **options))
        assert done.returncode == 1 and not done.stdout, (noun, verb, places, options, done)
        (line,) = done.stderr.splitlines()
        assert line.startswith("makeready: ") and line.endswith("."), line
        return line

    # The API

    def write(self, method: str, path: str, body: Record) -> Record:
        """Sends a write that must succeed, and records it for the retry at the end."""
        key, idempotency_key = self.key(), f"month {self.number()}"
        answer = self.system.call(method, path, key, body, {"Idempotency-Key": idempotency_key})
        assert answer.status in (200, 201), (path, body, answer)
        self.requests.append(Request(method, path, body, idempotency_key, key, answer))
        record: Record = answer.json
        return record

    def get(self, path: str, status: int = 200) -> Record:
        answer = self.system.get(path, self.key(scope="read"))
        assert answer.status == status, (path, answer)
        record: Record = answer.json
        return record

    def all(self, path: str) -> list[Record]:
        """Every record of a list."""
        with self._lock:
            return list(self.company.walk(path))

    def subscribe(self, path: str, events: Iterable[str]) -> None:
        body = {"destination_url": f"https://receiver.test{path}", "events": list(events)}
        answer = self.system.post("/webhooks", self.key(), body, f"month {path}")
        assert answer.status == 201, answer
        self.secrets[path] = answer.json["secret"]

    def arrived(self, receiver: Receiver, path: str) -> list[Delivery]:
        """All deliveries at a path, with verified signatures; repeated attempts are included."""
        deliveries = receiver.at(path)
        assert all(delivery.is_signed_with(self.secrets[path]) for delivery in deliveries)
        return deliveries

    # Names in the script

    def id(self, kind: str, name: str) -> int:
        return self.ids[kind, name]

    def name(self, kind: str, name: str, record: Mapping[str, Any]) -> int:
        """Gives a record a name in the script."""
        entity_id = record["entity_id"] if "entity_id" in record else record[f"{kind}_id"]
        self.ids[kind, name] = entity_id
        return int(entity_id)

    def fill(self, kind: str, rows: list[Record], *options: str) -> None:
        done = self.company.import_rows(kind, rows, *options)
        assert done["created"] == len(rows), done


def instant(text: str) -> datetime:
    """A time as the API prints it."""
    return datetime.fromisoformat(text)


def text(day: date) -> str:
    return day.isoformat()
