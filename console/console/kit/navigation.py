"""Where a person may go: the menu, the shortcuts of a phone, the pages of records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.kit import links
from console.kit.browser_session import STAFF

# The words of the menu in their order. An area's pages stand together in pages.py, and may be of several groups.
MENU = (
    *("Home", "My work"),
    *("Tickets", "Turn board", "Inspections", "Preventive maintenance", "Notices", "Reports"),
    *("Properties", "Units", "Assets", "Meters", "Vendors", "Staff"),
    *("API keys", "Webhooks", "Events", "API requests", "Clock", "Imports"),
    *("Settings", "Sandboxes", "Administrators", "Audit log"),
)
# The key that goes there after "g".
KEYS = {
    "Home": "h", "My work": "y", "Tickets": "t", "Turn board": "b", "Inspections": "i",
    "Preventive maintenance": "m", "Notices": "n",
    "Reports": "r", "Properties": "p", "Units": "u", "Assets": "a", "Meters": "e", "Vendors": "v", "Staff": "s",
    "API keys": "k", "Webhooks": "w", "Events": "d", "API requests": "q", "Clock": "c", "Imports": "o", "Settings": "g",
    "Sandboxes": "x", "Administrators": "j", "Audit log": "l",
}  # fmt: skip
# The entries at the bottom of a phone: staff have their own work there.
SHORTCUTS, STAFF_SHORTCUTS = ("/", "/tickets", "/board"), ("/", "/my-work", "/board")


class Line(Protocol):
    """What a line of pages.py says of who may go there. menu: its group, its word and its icon."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def kinds(self) -> Collection[str]: ...
    @property
    def menu(self) -> tuple[str, str, str] | None: ...
    @property
    def in_sandboxes(self) -> bool: ...
    @property
    def views(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the menu. address: its path; of a list with saved views, the one that opens the default view."""

    path: str
    group: str
    words: str
    icon: str
    address: str

    @property
    def key(self) -> str:
        """The key that goes there after "g"; empty if there is none."""
        return KEYS.get(self.words, "")


@dataclass(frozen=True, slots=True)
class Navigation:
    """Where a person of this kind may go."""

    lines: Sequence[Line]
    kind: str
    is_sandbox: bool
    """Whether they work in a sandbox."""

    @property
    def menu(self) -> Mapping[str, Sequence[Entry]]:
        """The entries by group, in the order of MENU."""
        groups: dict[str, list[Entry]] = {}
        entries = [
            Entry(line.path, *line.menu, f"{line.path}?{links.DEFAULT}=1" if line.views else line.path)
            for line in self.lines
            if line.menu and self.kind in line.kinds and (self.is_sandbox or not line.in_sandboxes)
        ]
        for entry in sorted(entries, key=lambda entry: MENU.index(entry.words)):
            groups.setdefault(entry.group, []).append(entry)
        return groups

    @property
    def shortcuts(self) -> Sequence[Entry]:
        """The entries at the bottom of a phone, besides the search."""
        entries = [entry for group in self.menu.values() for entry in group]
        paths = STAFF_SHORTCUTS if self.kind == STAFF else SHORTCUTS
        return [entry for entry in entries if entry.path in paths] or entries[:1]

    def opens(self, path: str) -> bool:
        """Whether the person may open the page with this path, as pages.py spells it: a link elsewhere asks first."""
        return path in self._paths()

    def path_of(self, kind: str, record_id: int) -> str:
        """The path of a record's page that the person may open; empty if there is none."""
        return links.of_record(kind, record_id, self._paths())

    def _paths(self) -> Collection[str]:
        return {line.path for line in self.lines if line.method == "GET" and self.kind in line.kinds}
