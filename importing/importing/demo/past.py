"""The tickets of the year before the story: all closed, so that months can be compared."""

import zlib
from collections.abc import Collection, Iterator
from typing import NamedTuple

from importing.demo.units import Row

MONTHS = 12
DAYS_A_MONTH = 30
_FIRST_DAY = 32  # days before the story's day, whose own tickets are newer


class _Work(NamedTuple):
    """Work that comes up again and again. hours: how long it takes as a rule; months: those of most of it, before the
    story's day, if it has a season."""

    title: str
    category: str
    room: str
    hours: int
    assignee: str
    vendor: str | None = None
    months: range = range(MONTHS)


_WORKS = (
    _Work("Toilet keeps running", "Plumbing", "Bathroom", 20, "S-05"),
    _Work("Sink drains slowly", "Plumbing", "Bathroom", 30, "S-05"),
    _Work("Garbage disposal is stuck", "Plumbing", "Kitchen", 16, "S-05"),
    _Work("Radiator stays cold", "HVAC", "Living Room", 40, "S-04", "V-09", range(9, 12)),
    _Work("Air conditioner blows warm air", "HVAC", "Bedroom", 52, "S-04", "V-09", range(3, 7)),
    _Work("Refrigerator is not cold", "Appliance", "Kitchen", 70, "S-06", "V-07"),
    _Work("Dishwasher leaves water in the tub", "Appliance", "Kitchen", 90, "S-06", "V-07"),
    _Work("Outlet has no power", "Electrical", "Living Room", 26, "S-07", "V-05"),
    _Work("Window does not lock", "Doors/Windows", "Bedroom", 60, "S-08"),
    _Work("Front door lock turns hard", "Doors/Windows", "Hallway", 24, "S-08", "V-10"),
    _Work("Ants in the kitchen", "Pest Control", "Kitchen", 110, "S-03", "V-11", range(2, 8)),
    _Work("Stain on the ceiling after rain", "Leak", "Bedroom", 130, "S-10", "V-14"),
)


def tickets(homes: Collection[Row]) -> Iterator[Row]:
    """The rows, with instants that are counted from the story's day. homes: the rows of units."""
    units = [unit for unit in homes if unit.get("unit_number")]
    for number in range(MONTHS * 11):
        month, place = divmod(number, 11)
        pick = _Picks(number)
        works = [work for work in _WORKS if month in work.months]
        work = works[pick.of(len(works))]
        # More of them in the older buildings, whose units come first.
        unit = units[min(pick.of(len(units)), pick.of(len(units)))]
        opened = _FIRST_DAY + month * DAYS_A_MONTH + (place * 29 + pick.of(9)) % DAYS_A_MONTH
        # The team became faster during the year, and now and then something takes weeks.
        hours = max(work.hours * (60 + pick.of(90) + 6 * month) // 100, 2) * (9 if pick.of(13) == 0 else 1)
        closed_day, closed_hour = divmod(9 + hours, 24)
        row: Row = {
            "external_id": f"T-Y{number:03}",
            "property": unit["property"],
            "unit": unit["external_id"],
            "title": work.title,
            "category": work.category,
            "priority": ("Medium", "Low", "High", "Medium")[pick.of(4)],
            "source": "staff" if pick.of(5) == 0 else "resident_portal",
            "room": work.room,
            "permission_to_enter": pick.of(3) > 0,
            "assignee": work.assignee,
            "created_at": f"-{opened} {9 + pick.of(9):02}:{pick.of(60):02}",
        }
        closed_at = f"-{opened - closed_day} {max(closed_hour, 8):02}:{pick.of(60):02}"
        if opened - closed_day < 1:
            closed_at = f"-1 10:{pick.of(60):02}"
        if closed_day == 0:
            closed_at = f"-{opened} 20:{pick.of(60):02}"
        if pick.of(14) == 0:
            yield row | {
                "status": "Cancelled",
                "cancelled_at": closed_at,
                "cancellation_reason_code": "resolved_independently",
            }
        elif work.vendor is None:
            yield row | {"status": "Completed", "completed_at": closed_at}
        else:
            yield row | {"status": "Completed", "completed_at": closed_at, "assigned_vendor": work.vendor}


class _Picks:
    """Numbers that look as if by chance, and are the same each time."""

    def __init__(self, seed: int) -> None:
        self._seed, self._count = seed, 0

    def of(self, many: int) -> int:
        """The next one, below `many`."""
        self._count += 1
        return zlib.crc32(f"{self._seed} {self._count}".encode()) % many
