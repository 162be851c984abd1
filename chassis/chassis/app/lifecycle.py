"""The life of one process: it starts, serves until SIGTERM, runs background work, and stops without dropping a call."""

from __future__ import annotations

import asyncio
import gc
import itertools
import signal
from collections.abc import Awaitable, Callable, Iterable

import structlog

from chassis.app.health import Health
from chassis.app.rpc_server import RpcServer
from chassis.db import revisions
from chassis.db.database import ClockSkew, Database
from chassis.refusals import Unavailable
from chassis.runtime import traces
from chassis.runtime.settings import ServiceSettings

CANCEL_AGAIN_SECONDS = 0.5
CANCEL_ALL_EVERY = 6  # times; the rollback of a transaction takes less than 3 s
STEP_AGAIN_SECONDS = 1

log = structlog.stdlib.get_logger(__name__)

Work = Callable[[], Awaitable[None]]


class Lifecycle:
    """The steps of a process's start and stop, and its background work, in the order of their registration."""

    def __init__(self, rpcs: RpcServer, database: Database, settings: ServiceSettings) -> None:
        self._rpcs, self._database, self._settings = rpcs, database, settings
        self._health = Health()
        self._background: dict[str, Work] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._listening: list[Work] = []
        self._starting: list[Work] = []
        self._ready_steps: list[Work] = []
        self._ending: list[Work] = []
        self.stopping = asyncio.Event()
        """Set by SIGTERM or SIGINT, before any part stops."""

    @property
    def is_ready(self) -> bool:
        """Whether health says SERVING: the process has started and is not stopping."""
        return self._health.is_serving and not self.stopping.is_set()

    def background(self, name: str, work: Work) -> None:
        """Runs work next to the RPCs; restarts it if it fails."""
        self._background[name] = work

    def on_listening(self, step: Work) -> None:
        """A step once the gRPC port is open, before the database is."""
        self._listening.append(step)

    def on_start(self, step: Work) -> None:
        """A step after the database is open and before the RPCs are served; again until the database answers."""
        self._starting.append(step)

    def before_ready(self, step: Work) -> None:
        """A step while the RPCs are served, before health says SERVING."""
        self._ready_steps.append(step)

    def on_stop(self, step: Work) -> None:
        """A step after the RPCs have ended and before the database closes, in reverse order of registration.
        It also runs if the start fails half way."""
        self._ending.append(step)

    async def run(self, head: str) -> None:
        """Starts, serves until SIGTERM or SIGINT, and stops: it reports not ready, then finishes the calls under way.

        It serves once the database is there and has had the migration `head`.
        A signal during the start interrupts it. Raises SettingsError and Unavailable if it can't start.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        starting = asyncio.create_task(self._start(head))
        signalled = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait({starting, signalled}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await signalled
                log.info("stopping")
                await self._health.stop()
                await asyncio.sleep(self._settings.drain_seconds)
        finally:
            for task in (starting, signalled):
                task.cancel()
                await asyncio.wait({task})
            await self._stop()

    async def _start(self, head: str) -> None:
        await self._rpcs.listen(self._settings.grpc_listen, await self._health.handlers())
        for step in self._listening:
            await step()
        await revisions.open_migrated(self._database, head)
        self._tasks = [asyncio.create_task(_kept_up(name, work), name=name) for name, work in self._background.items()]
        for step in self._starting:
            await self._until_available(step)
        self._rpcs.open()
        for step in self._ready_steps:
            await step()
        gc.freeze()  # loaded objects stay: scanning them again took a fifth of an import's CPU
        await self._health.serve()
        log.info("serving", grpc=self._settings.grpc_listen)

    @staticmethod
    async def _until_available(step: Work) -> None:
        """The database may go away at any moment of a start."""
        while True:
            try:
                return await step()
            except Unavailable as error:
                log.warning("start_waits", reason=str(error))
                await asyncio.sleep(STEP_AGAIN_SECONDS)

    async def _stop(self) -> None:
        await self._rpcs.stop()
        await _end(self._tasks)
        for step in reversed(self._ending):
            await step()
        if self.stopping.is_set():  # a start that failed says why, in one line
            log.info("stopped")


async def _kept_up(name: str, work: Work) -> None:
    while True:
        traces.begin()
        try:
            await work()
            return
        except ClockSkew:  # logged once, where the clocks are compared
            pass
        except Unavailable as error:
            log.warning("background_waits", work=name, reason=str(error))
        except Exception:
            log.exception("background_failed", work=name)
        await asyncio.sleep(1)


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels background work until all of it has ended.

    Libraries swallow cancellations: the NATS client while it connects, `asyncio.wait_for` of Python 3.11 in the instant
    in which what it waits for ends. So work is cancelled again, the client's soon, other work once it has had time to
    clean up.
    """
    under_way = set(tasks)
    for times in itertools.count():
        if not under_way:
            return
        is_late = times > 0 and times % CANCEL_ALL_EVERY == 0
        if is_late:
            log.warning("background_ends_late", work=", ".join(sorted(task.get_name() for task in under_way)))
        for task in under_way:
            if times == 0 or is_late or task.get_name() == "nats":
                task.cancel()
        _, under_way = await asyncio.wait(under_way, timeout=CANCEL_AGAIN_SECONDS)
