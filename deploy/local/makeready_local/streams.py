"""Makes and keeps the stream of events and its consumers while the installation runs, in a separate thread."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from makeready_cli.streams import keep


@contextmanager
def kept_streams(url: str, replicas: int | None = None, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """url: with the operator's user. The server may be away, and come back without its data, at any time.

    replicas, tls: see `chassis.messaging.streams.keep`."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(keep(url, stop, replicas, tls)), name="streams", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
        if not thread.is_alive():
            loop.close()
