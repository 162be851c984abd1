"""The client of NATS without its websockets: services import this before all that use it, the command line never."""

from chassis import import_without

import_without("aiohttp", "nats.aio.client")
