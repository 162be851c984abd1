"""Structured logs: one JSON object a line on standard error, never a secret in it.

However often it happens, an event has at most LINES_MAX lines in WINDOW_SECONDS. The others are counted, and one line
says how many they were.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import structlog
from structlog.typing import EventDict

from chassis.runtime import traces

# Values logged under these names are hidden. Bodies too: they hold residents' data.
HIDDEN = frozenset("authorization key api_key secret password token cookie body data reply".split())  # noqa: SIM905


LINES_MAX, WINDOW_SECONDS = 20, 10.0
LEFT_OUT = "lines_left_out"
# The keys that name a part of the process. The lines of an event are limited for each part separately.
PARTS = ("rpc", "route", "work")

# Without the frames' local variables: they hold tokens, bodies and secrets.
_TRACEBACK = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)


def _hide(_logger: object, _method: str, event: EventDict) -> EventDict:
    for name in HIDDEN & event.keys():
        event[name] = "(hidden)"
    return event


@dataclass(slots=True)
class _Window:
    """The lines of one event since `begun`, by the monotonic clock."""

    begun: float
    lines: int = 0


class Flood(logging.Filter):
    """Passes LINES_MAX lines of an event in WINDOW_SECONDS. Debug lines are not counted: they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[tuple[Any, ...], _Window] = {}
        self._lock = threading.Lock()  # libraries log from threads of their own

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return True
        event = record.msg if isinstance(record.msg, dict) else {"event": f"{record.name}:{record.lineno}"}
        if event["event"] == LEFT_OUT:
            return True
        key = (record.levelno, event["event"], *(event.get(part) for part in PARTS))
        with self._lock:
            window, now = self._windows.get(key), time.monotonic()
            # A process that doesn't report still logs on in the next window.
            if window is None or now - window.begun >= 2 * WINDOW_SECONDS:
                window = self._windows[key] = _Window(now)
            window.lines += 1
            return window.lines <= LINES_MAX

    def report(self, *, at_once: bool = False) -> None:
        """Logs the counts of windows that have ended, or of all windows, and begins new ones."""
        now = time.monotonic()
        with self._lock:
            ended = {
                key: window for key, window in self._windows.items() if at_once or now - window.begun >= WINDOW_SECONDS
            }
            for key in ended:
                del self._windows[key]
        for (level, event, *parts), window in ended.items():
            if window.lines > LINES_MAX:
                named = {part: value for part, value in zip(PARTS, parts, strict=True) if value is not None}
                log = structlog.stdlib.get_logger(__name__)
                log.log(level, LEFT_OUT, of=event, lines=window.lines - LINES_MAX, **named)


_flood = Flood()


async def report_left_out() -> None:
    """Logs the counts of lines left out as their windows end, until cancelled, and then the rest."""
    try:
        while True:
            await asyncio.sleep(WINDOW_SECONDS / 10)
            _flood.report()
    finally:
        _flood.report(at_once=True)


def configure(service: str, level: str = "info") -> None:
    """Sets up logging for the process; libraries that use the standard library's logging get the same format.

    The process's start is a trace: the lines of its parts that begin none of their own belong to it, and those of other
    threads.
    """
    traces.begin()
    start = traces.current()

    def traced(_logger: object, _method: str, event: EventDict) -> EventDict:
        event["trace_id"] = traces.id_of(traces.current() or start)
        return event

    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        traced,
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
    handler.addFilter(_flood)
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # These log every request or reconnection at a level that would drown the service's own log.
    for library in ("nats", "grpc", "asyncio", "aiohttp.access", "alembic"):
        logging.getLogger(library).setLevel(logging.WARNING)
    structlog.contextvars.bind_contextvars(service=service)
