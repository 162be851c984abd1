"""The stream of events of an installation and its consumers, which the operator's user of NATS makes and keeps.

`python -m makeready_cli.streams` makes them on the servers at MAKEREADY_NATS_URL, on MAKEREADY_NATS_REPLICAS of them,
checks every 5 s that they are there, and makes them again if not, until SIGTERM. `make run` does the same by itself; on
Kubernetes a Deployment runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys

# By consuming service and producer, the contents of the events that it consumes. The services have the same lists.
CONSUMERS = {
    "svc-catalog": {"gateway": ["references"], "svc-occupancy": ["references"]},
    "svc-tickets": {"gateway": ["references"], "svc-catalog": ["references", "causes"], "svc-occupancy": ["causes"]},
    "svc-occupancy": {"gateway": ["references"], "svc-catalog": ["references"]},
    "svc-webhooks": {
        "gateway": ["references"],
        "svc-catalog": ["public.vendor.hold", "public.inspection.stale", "public.property.notice.published"],
        "svc-tickets": [
            "public.ticket.created",
            "public.ticket.status_changed",
            "public.ticket.stale",
            "public.pm.stale",
        ],
        "svc-occupancy": ["public.turn.status_changed", "public.turn.schedule_changed", "public.turn.task.stale"],
    },
}
# The users of NATS besides the operator's: services, and the console. It and the gateway listen to hints.
GATEWAY = "gateway"
SERVICES = (GATEWAY, *CONSUMERS)
CONSOLE = "console"


async def keep(url: str, stop: asyncio.Event, replicas: int | None = None, tls: ssl.SSLContext | None = None) -> None:
    """Makes and keeps them until `stop` is set. See `chassis.messaging.streams.keep`."""
    from chassis.messaging import streams  # noqa: PLC0415 - the table is read where no client of NATS is needed

    keeping = asyncio.create_task(streams.keep(url, CONSUMERS, replicas, tls))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (keeping, stopping):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _alive(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    writer.close()


async def _main(url: str, replicas: int | None, tls: ssl.SSLContext | None) -> None:
    # Answers the probes of Kubernetes, on the loop that does the work.
    if listen := os.environ.get("MAKEREADY_PROBE_LISTEN"):
        host, _, port = listen.rpartition(":")
        await asyncio.start_server(_alive, host, int(port))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await keep(url, stop, replicas, tls)


if __name__ == "__main__":
    from chassis.runtime import logs
    from chassis.runtime.settings import Environment, SettingsError, nats_replicas, nats_url

    environment = Environment(os.environ)
    try:
        settings = nats_url(environment), nats_replicas(environment), environment.nats_tls()
    except SettingsError as error:
        sys.exit(f"streams: {error}")
    logs.configure("streams")
    asyncio.run(_main(*settings))
