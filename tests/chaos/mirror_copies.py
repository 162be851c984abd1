"""Copies of a company's records: by `/changes` from the beginning, by the guide's program, by the TypeScript client."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from testkit.patience import PATIENCE_SECONDS
from testkit.typescript import node_command

from .harness import Harness

KINDS = ("properties", "units", "assets", "vendors", "inspections", "meters", "readings", "tickets", "turns")
TYPES = dict(zip(KINDS, ("property", "unit", "asset", "vendor", "inspection", "utility_meter"), strict=False)) | {
    "readings": "utility_reading",
    "tickets": "ticket",
    "turns": "turn",
}
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "docs" / "sync" / "copy.py"
FOLLOWER = ROOT / "sdk" / "typescript" / "tests" / "follow.ts"

Records = dict[str, dict[int, bytes]]
"""By kind and id, the bytes of each record."""


class Item(msgspec.Struct, forbid_unknown_fields=True):
    """A change."""

    schema_version: int
    entity_type: str
    entity_id: int
    gone: bool
    record: msgspec.Raw


class Changes(msgspec.Struct, forbid_unknown_fields=True):
    """A page of changes."""

    data: list[Item]
    next_cursor: str | None
    resume_cursor: str
    limit: int


class Page(msgspec.Struct):
    """A page of a list."""

    data: list[msgspec.Raw]
    next_cursor: str | None


class Headed(msgspec.Struct):
    """The id of a record."""

    entity_id: int


class ExpiredError(Exception):
    """The cursor has expired."""


class Reader:
    """Reads the API with several keys, and repeats what a kill has broken off."""

    def __init__(self, harness: Harness, session: aiohttp.ClientSession, keys: list[str]) -> None:
        self.answers: Counter[str] = Counter()
        self._base_url = harness.system.base_url
        self._session = session
        self._keys = itertools.cycle(keys)

    async def get(self, path: str, **query: str | int) -> bytes:
        while True:
            headers = {"Authorization": f"Bearer {next(self._keys)}"}
            try:
                async with self._session.get(self._base_url + path, params=query, headers=headers) as answer:
                    body = await answer.read()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                self.answers[type(error).__name__] += 1
                await asyncio.sleep(0.1)
                continue
            self.answers[f"{answer.status}"] += 1
            if answer.status == 200:
                return body
            if answer.status == 410:
                assert msgspec.json.decode(body)["error"]["code"] == "cursor_expired"
                raise ExpiredError
            assert answer.status in (429, 500, 503), (path, query, answer.status, body)
            await asyncio.sleep(0.2)

    async def walked(self, path: str) -> dict[int, bytes]:
        """Every record of a list."""
        records: dict[int, bytes] = {}
        more: dict[str, str] = {}
        while True:
            page = msgspec.json.decode(await self.get(path, limit=200, **more), type=Page)
            records |= {msgspec.json.decode(document, type=Headed).entity_id: bytes(document) for document in page.data}
            if page.next_cursor is None:
                return records
            more = {"cursor": page.next_cursor}

    async def listed(self) -> Records:
        """Every record of every kind, as the lists have it."""
        records = {kind: await self.walked(f"/{kind}") for kind in KINDS if kind != "readings"}
        readings = [await self.walked(f"/meters/{meter_id}/readings") for meter_id in records["meters"]]
        return records | {"readings": {key: reading for each in readings for key, reading in each.items()}}


class Follower:
    """A copy by `/changes` without a snapshot, in small pages of changing size."""

    def __init__(self, reader: Reader, chance: random.Random) -> None:
        self.records: Records = {kind: {} for kind in KINDS}
        self.gone: dict[str, set[int]] = {kind: set() for kind in KINDS}
        """The records that came as gone last."""
        self.pages = self.changes = self.expired = 0
        self.begun = {kind: asyncio.Event() for kind in KINDS}
        """Set once it has a cursor of the kind."""
        self._reader = reader
        self._chance = chance
        self._cursors: dict[str, str] = {}

    async def run(self) -> None:
        """Follows every kind until it is cancelled."""
        async with asyncio.TaskGroup() as together:
            for kind in KINDS:
                together.create_task(self._follow(kind))

    async def _follow(self, kind: str) -> None:
        while True:
            if not await self.step(kind):
                await asyncio.sleep(self._chance.uniform(0, 1))

    async def step(self, kind: str) -> bool:
        """One page. Returns whether more waits. After an expired cursor it begins again."""
        limit = self._chance.choice([1, 7, 50, 200])
        at = {"cursor": self._cursors[kind]} if kind in self._cursors else {}
        try:
            page = msgspec.json.decode(await self._reader.get(f"/changes/{kind}", limit=limit, **at), type=Changes)
        except ExpiredError:
            self.records[kind].clear()
            self.gone[kind].clear()
            del self._cursors[kind]
            self.expired += 1
            return True
        ids = [change.entity_id for change in page.data]
        assert len(set(ids)) == len(ids) <= limit == page.limit, page
        assert page.next_cursor is None or len(ids) == limit, "more waits behind a page that is not full"
        for change in page.data:
            assert (change.schema_version, change.entity_type) == (1, TYPES[kind]), change
            assert change.gone == (bytes(change.record) == b"null"), change
            if change.gone:
                self.records[kind].pop(change.entity_id, None)
                self.gone[kind].add(change.entity_id)
            else:
                assert msgspec.json.decode(change.record, type=Headed).entity_id == change.entity_id
                self.records[kind][change.entity_id] = bytes(change.record)
                self.gone[kind].discard(change.entity_id)
        self._cursors[kind] = page.resume_cursor
        self.begun[kind].set()
        self.pages += 1
        self.changes += len(page.data)
        return page.next_cursor is not None


class Program:
    """The guide's program, run as it stands there, and killed now and then."""

    name = "the program"

    def __init__(self, folder: Path, base_url: str, keys: list[str]) -> None:
        self.kills = 0
        self._file = folder / f"{self.name}.sqlite"
        self._log = folder / f"{self.name}.log"
        self._command = self._words(folder, base_url, keys)
        self._environment = {"PATH": os.environ["PATH"], "API_KEY": keys[0], "MAKEREADY_BASE_URL": base_url}
        self._process: subprocess.Popen[bytes] | None = None

    def _words(self, folder: Path, base_url: str, keys: list[str]) -> list[str]:
        return [sys.executable, str(PROGRAM), base_url, str(self._file)]

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """Ends it at once, if it runs."""
        if self._process is not None:
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            self._process.kill()
            self._process.wait(PATIENCE_SECONDS)
            self._process = None
            self.kills += 1
            assert "Traceback" not in self._log.read_text(), self._log.read_text()[-2000:]

    async def run(self, chance: random.Random, apart_seconds: tuple[float, float]) -> None:
        """Kills it and starts it again, until cancelled."""
        while True:
            await asyncio.sleep(chance.uniform(*apart_seconds))
            self.kill()
            self.start()

    @property
    def records(self) -> Records:
        records: Records = {kind: {} for kind in KINDS}
        with sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=60) as copy:
            for kind, entity_id, record in copy.execute("SELECT kind, id, json FROM record"):
                records[kind][entity_id] = record.encode()
        return records

    def form(self, record: bytes) -> bytes:
        """A record as this copy spells it."""
        return record


class TypeScriptProgram(Program):
    """The Mirror of the TypeScript client, with its store in SQLite."""

    name = "TypeScript"

    def _words(self, folder: Path, base_url: str, keys: list[str]) -> list[str]:
        return [*node_command(folder, FOLLOWER), str(self._file), *keys]

    @property
    def records(self) -> Records:
        records: Records = {kind: {} for kind in KINDS}
        with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=60)) as copy:
            for kind in KINDS:
                rows = copy.execute(f"SELECT entity_id, record FROM {kind}")
                records[kind] = {entity_id: self.form(record.encode()) for entity_id, record in rows}
        return records

    def form(self, record: bytes) -> bytes:
        # JavaScript has one kind of number: 12.0 is 12 there.
        return json.dumps(json.loads(record, parse_int=float), ensure_ascii=False).encode()


def differences(copy: Records, lists: Records) -> list[str]:
    """Each record that differs, in words."""
    sentences = []
    for kind, listed in lists.items():
        copied = copy[kind]
        sentences += [f"{kind} {entity_id}: missing" for entity_id in listed.keys() - copied.keys()]
        sentences += [f"{kind} {entity_id}: not in the list" for entity_id in copied.keys() - listed.keys()]
        sentences += [
            f"{kind} {entity_id}:\n  copied {copied[entity_id].decode()}\n  listed {listed[entity_id].decode()}"
            for entity_id in listed.keys() & copied.keys()
            if copied[entity_id] != listed[entity_id]
        ]
    return sentences


def formed(records: Records, form: Callable[[bytes], bytes]) -> Records:
    return {kind: {key: form(document) for key, document in of_kind.items()} for kind, of_kind in records.items()}


async def equal_at_last(
    lists: Callable[[], Any], follower: Follower, programs: Sequence[Program], seconds: float
) -> tuple[Records, dict[str, list[str]]]:
    """Waits until every copy equals the lists. Returns the lists, and the differences after the last look."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        truth: Records = await lists()
        differing = {"changes": differences(follower.records, truth)}
        differing |= {program.name: differences(program.records, formed(truth, program.form)) for program in programs}
        if not any(differing.values()) or asyncio.get_running_loop().time() > deadline:
            return truth, differing
        await asyncio.sleep(1)
