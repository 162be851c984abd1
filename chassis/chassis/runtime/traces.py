"""The trace that the present work belongs to: W3C Trace Context, level 1.

Work has a traceparent, `00-TRACE_ID-PARENT_ID-FLAGS`, whose parent id is its own. It is sent with calls, stored with
events, and its trace id is in every log line (docs/decisions/monitoring.md). No spans are recorded here.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

HEADER = "traceparent"

# Digits in lower case; no version ff; ids that are not all zeros. Later versions may add fields.
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]([0-9a-f])(?:-.*)?")
_LENGTH = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
_ODD = frozenset("13579bdf")  # the flag `sampled` is the last bit

_current: ContextVar[str] = ContextVar(HEADER, default="")


def current() -> str:
    """The traceparent of the present work; "" outside a trace."""
    return _current.get()


def id_of(traceparent: str) -> str:
    """The trace id of a valid traceparent: 32 hex digits."""
    return traceparent[3:35]


def accepted(traceparent: str) -> str:
    """The traceparent with the one flag that version 00 knows; "" if it is not as the standard says."""
    match = _FORM.fullmatch(traceparent)
    if match is None or (traceparent.startswith("00") and len(traceparent) != _LENGTH):
        return ""
    return f"00{traceparent[2:53]}{'01' if match[1] in _ODD else '00'}"


def started() -> str:
    """The traceparent of a new trace. It is sampled, because every log line of it is kept."""
    return f"00-{_digits(128):032x}-{_digits(64):016x}-01"


def with_parent(traceparent: str, parent_id: str) -> str:
    """The same trace, with another parent id of 16 hex digits."""
    return f"{traceparent[:36]}{parent_id}{traceparent[52:]}"


def begin() -> None:
    """The present task's work begins a new trace."""
    _current.set(started())


def enter(traceparents: Sequence[str]) -> None:
    """The present task's work belongs to the trace of the caller's header; to a new one unless there is exactly one,
    and it is valid."""
    taken = accepted(traceparents[0]) if len(traceparents) == 1 else ""
    _current.set(with_parent(taken, f"{_digits(64):016x}") if taken else started())


@contextlib.contextmanager
def within(traceparent: str) -> Iterator[None]:
    """The work of the block belongs to the trace of a stored traceparent, or to a new one if it is not valid."""
    before = _current.set(accepted(traceparent) or started())
    try:
        yield
    finally:
        _current.reset(before)


def _digits(bits: int) -> int:
    """Digits of an id, which is no secret; the standard forbids zero alone."""
    return random.getrandbits(bits) or 1
