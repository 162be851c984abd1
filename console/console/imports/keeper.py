"""Starts a process for each task that nobody works on, and deletes old jobs with their files.

The keeper holds the claim of a task, and its process the file: reading may take so long that the process could not
renew a claim meanwhile. A process ends with the task's claim, with the keeper's own process, and with a person's word.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence

import structlog
from aiohttp import web
from prometheus_client import Gauge

from chassis.db.database import Database, DatabaseUnavailable
from chassis.db.revisions import open_migrated
from chassis.refusals import Unavailable
from console.files import Files
from console.imports import copies
from console.imports.jobs import CLAIM, ClaimLost, Jobs

WORKER = (sys.executable, "-P", "-m", "console.imports.worker")
LOOK_SECONDS = 2.0
PURGE_SECONDS = 3600.0
RENEW_SECONDS = 3.0
PATIENCE_SECONDS = 10.0
"""How long a process may go on that has no claim, or was cancelled: until the end of its batch, as a rule."""
AWAY = 1
"""The exit status of a process whose database or store was away."""
TOO_COSTLY = (
    "It took minutes of computing without getting further: a part of the file, or a rule of the mapping for it, costs "
    "too much."
)

log = structlog.stdlib.get_logger(__name__)
TASKS = Gauge("makeready_console_import_tasks", "Tasks of imports that this process has started and that go on")


class Keeper:
    """Runs beside the pages."""

    def __init__(
        self,
        jobs: Jobs,
        files: Files,
        at_once: int,
        worker: Sequence[str] = WORKER,
    ) -> None:
        """at_once: tasks that this process works on at once; others wait. worker: the program that does a task."""
        self.jobs, self._files = jobs, files
        self._at_once = at_once
        self._worker = worker
        self._working: dict[str, asyncio.Task[None]] = {}
        self._due = asyncio.Event()
        self.is_open = False
        """Whether the database is open."""

    def wake(self) -> None:
        """There is a new task."""
        self._due.set()

    async def open(self, head: str) -> None:
        """Opens the database: see `open_migrated`, also for what it raises."""
        await open_migrated(self.jobs.database, head)
        self.is_open = True

    def open_database(self) -> Database:
        """The console's own database. Raises DatabaseUnavailable before it is open."""
        if not self.is_open:
            raise DatabaseUnavailable("the console's database is not open")
        return self.jobs.database

    async def run(self) -> None:
        """Works until cancelled. Tasks under way then end, and another console goes on with them at once."""
        try:
            purged = float("-inf")
            while True:
                try:
                    await self.jobs.end_cancelled()
                    while len(self._working) < self._at_once and await self._start():
                        pass
                    if self._at_once and len(self._working) == self._at_once:
                        await self._make_room()
                    if asyncio.get_running_loop().time() - purged > PURGE_SECONDS:
                        purged = asyncio.get_running_loop().time()
                        await self._purge()
                except Unavailable as error:
                    log.warning("imports_wait", reason=str(error))
                except Exception:  # it is tried again: nobody else would start tasks
                    log.exception("imports_failed")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._due.wait(), LOOK_SECONDS)
                self._due.clear()
        finally:
            for task in self._staying():
                task.cancel()
            if self._working:
                await asyncio.wait(self._working.values())

    async def close(self) -> None:
        self.is_open = False
        await self.jobs.database.close()

    async def _start(self) -> bool:
        """Starts the next task; returns whether there was one."""
        runner = secrets.token_hex(8)
        job_id = await self.jobs.claim(runner)
        if job_id is None:
            return False
        task = self._working[runner] = asyncio.create_task(self._work(job_id, runner))
        task.add_done_callback(lambda _done: self._ended(runner))
        return True

    def _staying(self) -> Sequence[asyncio.Task[None]]:
        """The tasks that go on."""
        return [task for task in self._working.values() if not task.cancelling()]

    async def _make_room(self) -> None:
        """Ends a process of a company that has several, if another company waits: its job goes on later."""
        if len(self._staying()) == len(self._working) and (runner := await self.jobs.room(list(self._working))):
            log.info("import_makes_room", runner=runner)
            self._working[runner].cancel()

    def _ended(self, runner: str) -> None:
        del self._working[runner]
        self._due.set()

    async def _work(self, job_id: int, runner: str) -> None:
        """One process, to its end. Its copy of the file is deleted then, however it ended."""
        with TASKS.track_inprogress(), copies.folder() as folder:
            words = (*self._worker, str(job_id), runner, str(os.getpid()), str(folder))
            process = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL)
            watching = asyncio.create_task(self._watch(job_id, runner, process))
            try:
                status = await process.wait()
            except asyncio.CancelledError:
                _kill(process)
                await process.wait()
                await self._give_back(runner, forgives=True, at_once=True)
                raise
            finally:
                watching.cancel()
        if status == -signal.SIGXCPU:
            log.warning("import_too_costly", job_id=job_id)
            with contextlib.suppress(DatabaseUnavailable):
                await self.jobs.stop(runner, TOO_COSTLY)
        elif status:
            log.warning("import_task_ended", job_id=job_id, status=status)
            # A process that was killed has ended, so its claim protects nothing. One that found its database or the
            # store away leaves the claim to run out: they need a moment.
            await self._give_back(runner, forgives=status == AWAY, at_once=status != AWAY)

    async def _watch(self, job_id: int, runner: str, process: Process) -> None:
        """Renews the claim of a process. Kills one that has none, or was cancelled, for PATIENCE_SECONDS."""
        clock = asyncio.get_running_loop().time
        renewed = well = clock()
        ends = False
        while clock() - well <= PATIENCE_SECONDS:
            await asyncio.sleep(RENEW_SECONDS)
            asked_at = clock()
            try:
                ends = await self.jobs.renew(job_id, runner)
                renewed = asked_at
            except ClaimLost:
                ends = True
            except DatabaseUnavailable:
                ends = ends or asked_at - renewed > CLAIM.total_seconds()
            if not ends:
                well = asked_at
        log.warning("import_task_killed", job_id=job_id)
        _kill(process)

    async def _give_back(self, runner: str, *, forgives: bool, at_once: bool) -> None:
        with contextlib.suppress(DatabaseUnavailable):
            if forgives:
                await self.jobs.forgive(runner)
            if at_once:
                await self.jobs.release(runner)

    async def _purge(self) -> None:
        """Deletes old jobs with their files: the file first, so that none is left without a job. Deletes the copies of
        processes that were killed with their console."""
        await asyncio.to_thread(copies.delete_left)
        while old_jobs := await self.jobs.old():
            for job in old_jobs:
                await self._files.delete(job.stored_as)
                await self.jobs.delete(job.company_id, job.id)


KEEPER = web.AppKey("keeper", Keeper)


def _kill(process: Process) -> None:
    """It may be killed at any moment: what it has done is stored."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
