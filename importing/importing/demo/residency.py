"""The demo company's turns: who has lived in which unit since when. `rows/turns.jsonl` has the special cases; every
other unit has a resident who moved in some day and stays. Those of `residents.py` move in over the API."""

import zlib
from collections.abc import Collection, Iterator

from importing.demo import residents
from importing.demo.units import Row

# By property: the system that feeds its turns, None if staff enter them; the most days since a resident moved in.
_FED_BY = {
    "P-100": ("yardi", 1400),
    "P-200": (None, 1300),
    "P-300": ("entrata", 1000),
    "P-400": (None, 740),
    "P-500": ("realpage", 170),
    "P-600": ("appfolio", 900),
    "P-700": (None, 320),
}
# Units that are in no list yet since the builder handed them over, or that were never rented out.
_NEVER_RENTED = ("P-500-10", "P-500-11", "P-700-5A", "P-700-CH", "P-700-BALL", "P-800")
# Every third unit has had an earlier resident, too.
_HAD_ANOTHER_ONE_IN = 3


def rows(units: Collection[Row], written: Collection[Row]) -> Iterator[Row]:
    """Turns of the units that the written rows do not cover, with days counted from the story's day."""
    with_turns = {row["unit"] for row in written if row["status"] != "Cancelled"}
    for unit in units:
        name = unit["external_id"]
        if name not in with_turns and not name.startswith(_NEVER_RENTED):
            yield from _lived_in(unit)


def _lived_in(unit: Row) -> Iterator[Row]:
    name = unit["external_id"]
    fed_by, longest = _FED_BY[unit["property"]]
    chance = zlib.crc32(name.encode())
    moved_in = residents.MOVED_IN.get(name, 25 + chance % (longest - 50))
    if moved_in + 60 < longest and chance % _HAD_ANOTHER_ONE_IN == 0:
        moved_out = moved_in + 9 + chance % 23
        came = moved_out + 330 + chance % 500
        yield {
            "external_id": f"R-{name[2:]}-1",
            "unit": name,
            "status": "Completed",
            "move_in_date": f"-{came}",
            "move_out_date": f"-{moved_out}",
            "projected_ready_on": f"-{moved_out - 7}" if chance % 2 else None,
            "created_at": f"-{min(came + 14, longest)} 09:20",
            "updated_at": f"-{moved_in} 08:45",
        } | _fed(fed_by, moved_in)
    if name in residents.MOVED_IN:
        return
    yield {
        "external_id": f"R-{name[2:]}-2",
        "unit": name,
        "status": "Active",
        "move_in_date": f"-{moved_in}",
        "created_at": f"-{min(moved_in + 19, longest)} 11:05",
        "updated_at": f"-{moved_in} 14:40",
    } | _fed(fed_by, 1)


def _fed(fed_by: str | None, days: int) -> Row:
    return {"occupancy_source": fed_by, "occupancy_fed_at": f"-{days} 04:30" if fed_by else None}
