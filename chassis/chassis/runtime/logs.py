"""Structured logs: one JSON object a line on standard error, never a secret in it."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

# Values logged under these names are hidden. Bodies too: they hold residents' data.
HIDDEN = frozenset("authorization key api_key secret password token cookie body data reply".split())  # noqa: SIM905


# Without the frames' local variables: they hold tokens, bodies and secrets.
_TRACEBACK = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)


def _hide(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in HIDDEN & event.keys():
        event[name] = "(hidden)"
    return event


def configure(service: str, level: str = "info") -> None:
    """Sets up logging for the process; libraries that use the standard library's logging get the same format."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hide,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.ExceptionRenderer(_TRACEBACK),
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # These log every request or reconnection at a level that would drown the service's own log.
    for library in ("nats", "grpc", "asyncio", "aiohttp.access", "alembic"):
        logging.getLogger(library).setLevel(logging.WARNING)
    structlog.contextvars.bind_contextvars(service=service)
