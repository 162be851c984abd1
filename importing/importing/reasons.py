"""The reasons of rejected rows, each once: how many rows it has, and the first of them in full."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from importing.rows import Fault

FULL_MAX = 10
"""So many rows of each reason are reported in full."""
REASONS_MAX = 200
_OTHER = Fault("", "other reasons; the rejects file has them")


@dataclass(frozen=True, slots=True)
class Example:
    """A rejected row, with its line in the file. `value` is the text that was looked up or read, if there is one."""

    line: int
    reason: str
    value: str | None


@dataclass(slots=True)
class Reason:
    """Why rows of a kind were rejected. `field` is their public field, or empty; `columns` are those of the file."""

    kind: str
    field: str
    text: str
    columns: tuple[str, ...]
    rows: int = 0
    examples: list[Example] = dataclasses.field(default_factory=list)


class Reasons:
    """Counts rejected rows by their reason. Memory holds REASONS_MAX reasons with FULL_MAX rows each."""

    def __init__(self, before: Iterable[Reason] = ()) -> None:
        """`before` has the reasons of an import that was interrupted."""
        self._reasons = {(reason.kind, reason.field, reason.text, reason.columns): reason for reason in before}

    def add(self, kind: str, line: int, fault: Fault) -> tuple[Reason, Example] | None:
        """Counts a row. Returns its reason and itself if it is one of the reason's first."""
        key = (kind, fault.field, fault.cause or fault.reason, fault.columns)
        if key not in self._reasons and len(self._reasons) >= REASONS_MAX:
            fault, key = _OTHER, (kind, _OTHER.field, _OTHER.reason, ())
        reason = self._reasons.setdefault(key, Reason(*key))
        reason.rows += 1
        if len(reason.examples) >= FULL_MAX:
            return None
        reason.examples.append(example := Example(line, fault.reason, fault.value))
        return reason, example

    @property
    def found(self) -> list[Reason]:
        """All reasons, the most frequent first."""
        return sorted(self._reasons.values(), key=lambda reason: -reason.rows)
