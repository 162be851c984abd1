"""The work of one task, in a process of its own: `python -m console.imports.worker JOB_ID RUNNER PARENT FOLDER`.

A file is read by no process that serves pages: reading takes all of a core, and a file or a mapping may be hostile. The
kernel ends the process with PARENT, the console that started it, and after CPU_SECONDS of computing without a pause,
and gives it MEMORY_BYTES_MAX. It may be killed at any moment: what it has done is stored with each batch, and a batch
that is sent again gets the outcomes of the first time. PARENT renews its claim. It copies the file into FOLDER, which
the console deletes afterwards.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import msgspec
import structlog
import uvloop

from chassis.auth.clients import ServiceClient, ServiceUnavailable
from chassis.auth.identity import TokenSigner
from chassis.auth.rpcs import response_to
from chassis.db.database import Database, DatabaseUnavailable
from chassis.refusals import Refusal
from chassis.runtime import logs
from chassis.runtime.pdeathsig import die_with
from chassis.runtime.settings import Environment, SettingsError
from console import config, files
from console.imports import jobs as states
from console.imports.jobs import ClaimLost, Job, Jobs
from console.imports.looking import look
from importing import mapping_file
from importing.errors import ImportFault
from importing.kinds import KINDS, Kind
from importing.passes import ImportStopped, Outcome, Passes
from importing.preview import Preview
from importing.reasons import Example, Reason
from importing.rejects import RejectsText
from importing.rows import Fault, Reading, Source, SourceRow
from importing.run import Record
from importing.sending import DEADLINE_SECONDS, NoAnswer, Sender
from importing.shapes import Mapped, Plain, Shape
from importing.undo import Undo, UndoOutcome
from makeready.identity.v1 import sessions_pb2

TOKEN_SECONDS = 15.0  # the gateway returns one that is valid for 20 s or more
CPU_SECONDS = 300
"""The longest part of the work without a pause is opening a file: 14 s for 512 MB in Windows-1252."""
PAUSE_SECONDS = 1.0
MEMORY_BYTES_MAX = 384 * 1024 * 1024
"""Honest files take 250 MB at most. A workbook of 300 KB can unpack to styles of 3 GB."""
REJECTS_CHARACTERS_MAX = 500_000_000
"""Of the rejected rows that one run of an import stores: a small file can unpack to any number of rows."""
CONNECTIONS = 2  # of each process that does a task
IN_PROGRESS = "idempotency_in_progress"
TOO_LARGE = "It takes more memory than an import may have. Save a workbook as CSV, or split the file."
TOO_MANY_REJECTS = (
    f"Its rejected rows have more than {REJECTS_CHARACTERS_MAX // 1_000_000} million characters: correct the file or "
    "its mapping, and begin anew."
)
SIGNED_OFF = "The permission of the administrator who started it has ended: another one can go on with it."

log = structlog.stdlib.get_logger(__name__)


class _Cancelled(Exception):  # noqa: N818 - a person asked for it
    """The import ends after this batch."""


class Rejects:
    """The rejected rows of one kind, until their batch is stored. parts: takes them; None: a dry run stores none."""

    def __init__(self, source: Source, kind: str, parts: list[tuple[str, str]] | None, has_some: set[str]) -> None:
        self._text, self._kind, self._parts, self._has_some = RejectsText(source), kind, parts, has_some
        self._lines: list[str] = []
        self.file: Path | None = None

    def add(self, row: SourceRow, fault: Fault) -> None:
        if self._parts is None:
            return
        if self._kind not in self._has_some:
            self._has_some.add(self._kind)
            self._lines.append(self._text.head)
        self._lines.append(self._text.line(row, fault))

    def flush(self) -> None:
        if self._lines and self._parts is not None:
            self._parts.append((self._kind, "".join(self._lines)))
            self._lines.clear()

    def close(self) -> None:
        self.flush()


class _Services:
    """The contexts, called as the administrator of a job."""

    def __init__(self, settings: config.Config, permit: str) -> None:
        signer = TokenSigner(settings.identity_key_file)
        self._clients = {name: ServiceClient(name, target, signer) for name, target in settings.addresses.items()}
        self._permit = permit
        self._tokens: dict[str, tuple[float, str]] = {}

    async def ask(self, kind: Kind, request: Any) -> Any:
        """See `importing.sending.Ask`."""
        return await self.ask_service(kind.service, request)

    async def ask_service(self, service: str, request: Any) -> Any:
        """See `importing.undo.AskService`."""
        response = response_to(type(request))
        try:
            token = await self._token(service)
            return await self._clients[service].call(request, response, token=token, deadline_seconds=DEADLINE_SECONDS)
        except Refusal as refusal:
            if refusal.code == IN_PROGRESS:  # the batch was sent by a process that was killed, and is still under way
                raise NoAnswer("The batch is still under way.", is_transient=True) from None
            raise ImportFault(SIGNED_OFF if refusal.code == "no_session" else refusal.message) from None
        except ServiceUnavailable as error:
            raise _no_answer(error) from None

    async def _token(self, audience: str) -> str:
        issued_at, token = self._tokens.get(audience, (float("-inf"), ""))
        if time.monotonic() - issued_at > TOKEN_SECONDS:
            issued_at, gateway = time.monotonic(), self._clients[config.GATEWAY]
            request = sessions_pb2.IssueTokenRequest(permit=self._permit, audience=audience)
            token = (await gateway.call(request, sessions_pb2.IssueTokenResponse)).token
            self._tokens[audience] = issued_at, token
        return token

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


def _no_answer(error: ServiceUnavailable) -> NoAnswer:
    log.warning("unavailable", reason=str(error))
    if error.disk_full:
        return NoAnswer("The disk of a database is full: the operator must make room.", is_transient=False)
    is_transient = error.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return NoAnswer("A part of Makeready does not answer.", is_transient=is_transient)


def import_key(job: Job) -> str:
    """What all runs of a job can be undone by."""
    return f"job-{job.id}"


class Worker:
    """One task of one job."""

    def __init__(self, settings: config.Config, jobs: Jobs, job: Job, runner: str, folder: Path) -> None:
        self._settings, self._jobs, self._job, self._runner = settings, jobs, job, runner
        self._folder = folder

    async def run(self) -> None:
        """Does the task. Raises ClaimLost."""
        job = self._job
        if job.attempts > states.ATTEMPTS_MAX:
            fault = "It was begun several times and never got further. The log of the console says more."
            await self._stop(job.result, fault)
            return
        if job.undoes:
            await self._undo()
            return
        path = self._folder / job.file_name
        try:
            await self._fetch(path)
        except FileNotFoundError:
            await self._stop(job.result, "The file is no longer in the store: bring it again.")
            return
        task = self._read if job.state == states.READING else self._import
        try:
            await task(path)
        except MemoryError:
            has_memory = False
        else:
            has_memory = True
        if not has_memory:  # now, as all that the task held is freed
            await self._stop((await self._jobs.claimed(job.id)).result, TOO_LARGE)

    async def _fetch(self, path: Path) -> None:
        """Copies the file from the store."""
        store = files.at(self._settings.files_url)
        with path.open("wb") as copy:
            async for part in store.read(self._job.stored_as):
                await asyncio.to_thread(copy.write, part)

    async def _read(self, path: Path) -> None:
        reading = msgspec.json.decode(self._job.reading, type=Reading)
        try:
            facts = look(path, reading)
        except ImportFault as fault:
            await self._stop(Outcome(), self._fault_text(fault, path))
            return
        # The sheet that was read is the one that is imported. A mapping may still name an encoding.
        reading = replace(reading, sheet=facts.reading.sheet)
        texts = (msgspec.json.encode(value).decode() for value in (facts, reading))
        await self._jobs.has_read(self._job.id, self._runner, *texts)

    async def _import(self, path: Path) -> None:
        job, dry_run = self._job, self._job.state == states.CHECKING
        before = Outcome() if dry_run else job.result
        parts: list[tuple[str, str]] = []
        has_some = set(await self._jobs.kinds_of_rejects(job.id))
        services = _Services(self._settings, job.permit)
        outcome, rejects_characters = before, 0
        previews: list[Preview] = []

        def rejects(source: Source, kind: str) -> Rejects:
            return Rejects(source, kind, None if dry_run else parts, has_some)

        async def progress(result: Outcome, position: int) -> None:
            nonlocal outcome, rejects_characters
            outcome = result
            outcome.previews = previews
            rejects_characters += sum(len(text) for _, text in parts)
            if await self._jobs.acknowledge(job.id, self._runner, result, position, parts):
                raise _Cancelled
            parts.clear()
            if rejects_characters > REJECTS_CHARACTERS_MAX:
                raise ImportFault(TOO_MANY_REJECTS)

        try:
            shapes, reading = self._shapes()
            key = f"job-{job.id}-{job.run}"
            records = [
                Record(kind, shape, Sender(services.ask, kind, dry_run, job.events, f"{key}-{number}", import_key(job)))
                for number, (kind, shape) in enumerate(shapes)
            ]
            passes = Passes(path, reading, records, rejects)
            previews = passes.previews() if dry_run else []
            outcome = await passes.run(_unreported, progress, before)
            outcome.previews = previews
        except _Cancelled:
            await self._jobs.end(job.id, self._runner, states.CANCELLED, outcome, stopped_in=job.state)
        except ImportStopped as stopped:
            await self._stop(stopped.outcome, self._fault_text(stopped, path), parts)
        except ImportFault as fault:
            await self._stop(outcome, self._fault_text(fault, path))
        else:
            state = states.CHECKED if dry_run else states.DONE
            await self._jobs.end(job.id, self._runner, state, outcome, rejects=parts)
        finally:
            await services.close()

    async def _undo(self) -> None:
        """Undoes the import, or says what that would do."""
        job, is_check = self._job, self._job.state == states.CHECKING
        services = _Services(self._settings, job.permit)
        assert job.started_at is not None, "its task has begun"
        # Another undo of the same import does other parts.
        key = f"u{job.id}-{int(job.started_at.timestamp())}"
        undo = Undo(services.ask_service, import_key(job), dry_run=is_check, key=key)

        async def progress(outcome: UndoOutcome) -> None:
            if await self._jobs.has_undone(job.id, self._runner, outcome):
                raise _Cancelled

        state, fault = states.CHECKED if is_check else states.DONE, ""
        try:
            await undo.run(KINDS, progress, job.undone)
        except _Cancelled:
            state = states.CANCELLED
        except ImportFault as error:
            state, fault = states.STOPPED, str(error)
        finally:
            await services.close()
        stopped_in = "" if state in (states.CHECKED, states.DONE) else job.state
        await self._jobs.end(job.id, self._runner, state, job.result, fault=fault, stopped_in=stopped_in)

    def _shapes(self) -> tuple[list[tuple[Kind, Shape]], Reading]:
        """The kinds to import, each with the shape of its rows, and how the file is read. Raises ImportFault."""
        job, reading = self._job, msgspec.json.decode(self._job.reading, type=Reading)
        kind_of_job = KINDS.get(job.kind)
        if not job.mapping:
            assert kind_of_job is not None
            return [(kind_of_job, Plain(kind_of_job))], reading
        mapping = mapping_file.parsed(job.mapping, "The mapping", kind_of_job)
        shapes: list[tuple[Kind, Shape]] = [(kind, Mapped(rules, job.file_name)) for kind, rules in mapping.records]
        return shapes, reading.or_else(mapping.reading)

    async def _stop(self, outcome: Outcome, fault: str, rejects: list[tuple[str, str]] | None = None) -> None:
        values = {"fault": fault, "stopped_in": self._job.state, "rejects": rejects or []}
        await self._jobs.end(self._job.id, self._runner, states.STOPPED, outcome, **values)  # type: ignore[arg-type]

    def _fault_text(self, fault: ImportFault, path: Path) -> str:
        """The sentence, without the folder of this process."""
        return str(fault).replace(str(path), self._job.file_name)


def _unreported(_reason: Reason, _example: Example) -> None:
    """The outcome has all reasons."""


def _allow_cpu() -> None:
    """From now on the process may compute for CPU_SECONDS; then the kernel ends it with SIGXCPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_SECONDS, most))


async def _pause() -> None:
    """Allows more CPU time as long as the event loop goes round."""
    while True:
        _allow_cpu()
        await asyncio.sleep(PAUSE_SECONDS)


async def work(environment: Mapping[str, str], job_id: int, runner: str, folder: Path) -> None:
    """Does the task of a job whose claim the runner has, with a copy of the file in the folder.

    Raises ClaimLost, SettingsError, DatabaseUnavailable.
    """
    settings = config.read(Environment(environment))
    at = settings.database
    database = Database(
        at.url, application="console-import", connections=CONNECTIONS, pooler=at.pooler, direct_url=at.direct_url
    )
    await database.open()
    pauses = asyncio.create_task(_pause())
    try:
        jobs = Jobs(database)
        job = await jobs.claimed(job_id)
        structlog.contextvars.bind_contextvars(request_id=f"import-{job.id}-{job.run}", job_id=job.id)
        log.info("import_task", task=job.state, attempt=job.attempts)
        await Worker(settings, jobs, job, runner, folder).run()
    finally:
        pauses.cancel()
        await database.close()


def main() -> None:
    """Ends with 0 if the task is done, 1 if another runner should go on, 2 for a bad setting."""
    die_with(int(sys.argv[3]), signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold the rows of a file
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    _allow_cpu()
    os.nice(5)  # pages go first
    warnings.filterwarnings("ignore", module="openpyxl")  # parts of a workbook that it leaves out; no row is in them
    try:
        logs.configure("console", config.read(Environment(os.environ)).log_level)
        uvloop.run(work(os.environ, int(sys.argv[1]), sys.argv[2], Path(sys.argv[4])))
    except ClaimLost:
        log.warning("import_lease_lost", job_id=int(sys.argv[1]))
        raise SystemExit(1) from None
    except (DatabaseUnavailable, files.FilesUnavailable) as error:
        log.warning("unavailable", job_id=int(sys.argv[1]), reason=str(error))
        raise SystemExit(1) from None
    except SettingsError as error:
        print(f"console: {error}", file=sys.stderr)  # noqa: T201 - the operator's one line
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
