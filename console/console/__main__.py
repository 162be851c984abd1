"""The console: `python -m console` serves, `python -m console migrate` migrates its database."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys

import structlog
import uvloop
from prometheus_client import start_http_server

from chassis.app.health import SERVING
from chassis.app.process import migrate
from chassis.app.status import publish_build_info
from chassis.refusals import Unavailable
from chassis.runtime import logs
from chassis.runtime.scheduling import batch_scheduling
from chassis.runtime.settings import Environment, SettingsError
from console import config, tables
from console.app import Console
from console.kit.serving import Server

NAME = "console"
log = structlog.stdlib.get_logger(__name__)


async def serve(settings: config.Config) -> None:
    """Serves until SIGTERM or SIGINT, then finishes requests under way. Raises SettingsError and DatabaseRefused."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    console = Console(settings)
    server = Server(console.application(), settings)
    report = asyncio.create_task(logs.report_left_out())
    opening, signalled = asyncio.create_task(console.open()), asyncio.create_task(stopping.wait())
    try:
        await server.open()
        await asyncio.wait({opening, signalled}, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            opening.result()
            gc.freeze()  # loaded objects stay
            SERVING.set(1)
            log.info("serving", url=settings.url, host=settings.host, port=settings.port)
            await signalled
            log.info("stopping")
            console.is_ready = False
            SERVING.set(0)
            await asyncio.sleep(settings.drain_seconds)
    finally:
        for task in (opening, signalled, report):
            task.cancel()
        await asyncio.wait({opening, signalled, report})
        await server.close()


def main() -> None:
    """A bad setting prints one line on standard error and exits with status 2."""
    try:
        if sys.argv[1:] == ["migrate"]:
            migrate(NAME, tables.metadata, "console", Environment(os.environ))
            return
        if sys.argv[1:]:
            raise SettingsError("usage: python -m console [migrate]")
        environment = Environment(os.environ)
        settings = config.read(environment)
        logs.configure(NAME, settings.log_level)
        publish_build_info(environment)
        batch_scheduling()
        host, _, port = settings.metrics_listen.rpartition(":")
        try:
            start_http_server(int(port), host)
        except OSError as error:
            raise SettingsError(f"MAKEREADY_METRICS_LISTEN {settings.metrics_listen}: {error.strerror}.") from None
        uvloop.run(serve(settings))
    except (SettingsError, Unavailable) as error:
        print(f"{NAME}: {error}", file=sys.stderr)  # noqa: T201 - the operator's one line
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
