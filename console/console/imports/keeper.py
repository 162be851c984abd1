"""Starts a process for each task that nobody works on, and deletes old jobs with their files."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import secrets
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from tempfile import TemporaryDirectory

import structlog
from aiohttp import web
from prometheus_client import Gauge

from chassis.db.database import DatabaseUnavailable
from chassis.db.revisions import open_migrated
from chassis.refusals import Unavailable
from console.files import Files
from console.imports.jobs import Jobs

LOOK_SECONDS = 2.0
PURGE_SECONDS = 3600.0
STOP_SECONDS = 5.0
AWAY = 1
"""The exit status of a process whose database or store was away."""

log = structlog.stdlib.get_logger(__name__)
TASKS = Gauge("makeready_console_import_tasks", "Tasks of imports that this process has started and that go on")


class Keeper:
    """Runs beside the pages."""

    def __init__(self, jobs: Jobs, files: Files, now: Callable[[], datetime.datetime], at_once: int) -> None:
        """at_once: tasks that this process works on at once; others wait."""
        self.jobs, self._files, self._now = jobs, files, now
        self._at_once = at_once
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

    async def run(self) -> None:
        """Works until cancelled. Tasks under way then end, and another console goes on with them at once."""
        try:
            purged = float("-inf")
            while True:
                try:
                    while len(self._working) < self._at_once and await self._start():
                        pass
                    if asyncio.get_running_loop().time() - purged > PURGE_SECONDS:
                        purged = asyncio.get_running_loop().time()
                        await self._purge()
                except Unavailable as error:
                    log.warning("imports_wait", reason=str(error))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._due.wait(), LOOK_SECONDS)
                self._due.clear()
        finally:
            for task in self._working.values():
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

    def _ended(self, runner: str) -> None:
        del self._working[runner]
        self._due.set()

    async def _work(self, job_id: int, runner: str) -> None:
        """One process, to its end. Its copy of the file is deleted then, however it ended."""
        copies = TemporaryDirectory(prefix="makeready-import-", ignore_cleanup_errors=True)
        with TASKS.track_inprogress(), copies as folder:
            words = (sys.executable, "-P", "-m", "console.imports.worker", str(job_id), runner, folder)
            process = await asyncio.create_subprocess_exec(*words, stdin=PIPE)
            try:
                status = await process.wait()
            except asyncio.CancelledError:
                await _stop(process)
                await self._give_back(runner, forgives=True, at_once=True)
                raise
        if status:
            log.warning("import_task_ended", job_id=job_id, status=status)
            # A process that was killed has ended, so its lease protects nothing. One that found its database or the
            # store away leaves the lease to run out: they need a moment.
            await self._give_back(runner, forgives=status == AWAY, at_once=status != AWAY)

    async def _give_back(self, runner: str, *, forgives: bool, at_once: bool) -> None:
        with contextlib.suppress(DatabaseUnavailable):
            if forgives:
                await self.jobs.forgive(runner)
            if at_once:
                await self.jobs.release(runner)

    async def _purge(self) -> None:
        """Deletes old jobs with their files: the file first, so that none is left without a job."""
        while some := await self.jobs.old(self._now()):
            for job in some:
                await self._files.delete(job.stored_as)
                await self.jobs.delete(job.company_id, job.id)


KEEPER = web.AppKey("keeper", Keeper)


async def _stop(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
