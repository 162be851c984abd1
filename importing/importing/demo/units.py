"""The demo company's units: eight properties, each numbered and planned in its own way."""

from collections.abc import Iterator
from typing import Any

# A row of an import: a JSON object.
Row = dict[str, Any]
Plan = tuple[str, int | None, float | None, int | None]

_ORDINALS = ("1st", "2nd", "3rd", "4th")
_ETAGES = ("Rez-de-chaussée", "1er étage", "2e étage")
# In Québec a plan's name is its number of rooms, the bathroom counting as half. This house has no measured areas.
_QUEBEC: dict[str, Plan] = {
    "A": ("3½", 1, 1, None),
    "B": ("4½", 2, 1, None),
    "C": ("4½", 2, 1, None),
    "D": ("5½", 3, 1.5, None),
}
_ALDER: tuple[Plan, ...] = (("A1", 1, 1, 640), ("A2", 1, 1, 705), ("B1", 2, 1, 880), ("B2", 2, 2, 960))
_SAKURA: tuple[Plan, ...] = (("1LDK", 1, 1, 520), ("2DK", 2, 1, 655))
_MERIDIAN: tuple[Plan, ...] = (
    ("S", 0, 1, 465),
    ("A", 1, 1, 690),
    ("A-den", 1, 1.5, 780),
    ("B", 2, 2, 1040),
    ("C corner", 3, 2.5, 1465),
)
_WILLOW = {"A": "Ash", "B": "Birch", "C": "Cedar", "D": "Dogwood", "E": "Elm", "F": "Fir"}


def rows() -> list[Row]:
    """Every unit's row, in the order of the properties."""
    return [
        *_alder_court(),
        *_vieux_port(),
        *_harbor_point(),
        *_sakura_court(),
        *_meridian_tower(),
        *_willow_gardens(),
        *_kessler_block(),
        _unit("P-800", "House", "House", None, created_at="-9 17:50"),
    ]


def _unit(property_id: str, key: str, name: str, number: str | None, plan: Plan | None = None, **more: object) -> Row:
    row: Row = {"external_id": f"{property_id}-{key}", "property": property_id, "name": name, "unit_number": number}
    if plan is not None:
        row |= dict(zip(("floorplan", "bedrooms", "bathrooms", "square_feet"), plan, strict=True))
    return row | more


def _alder_court() -> Iterator[Row]:
    for floor in range(1, 5):
        for door in range(1, 5):
            number = f"{floor}{door:02}"
            where: Row = {"floor": f"{_ORDINALS[floor - 1]} floor", "created_at": "-1455 10:10"}
            yield _unit("P-100", number, f"Alder Court {number}", number, _ALDER[door - 1], **where)


def _vieux_port() -> Iterator[Row]:
    for floor, storey in enumerate(_ETAGES, 1):
        for letter, plan in _QUEBEC.items():
            number = f"{floor}{letter}"
            name = f"Logement {number}, {storey[0].lower()}{storey[1:]}"
            yield _unit("P-200", number, name, number, plan, floor=storey, created_at="-1310 11:52")


def _harbor_point() -> Iterator[Row]:
    for number in range(1, 9):
        plan: Plan = ("TH3", 3, 2.5, 1720) if number not in (1, 8) else ("TH4 end", 4, 3.5, 2085)
        row = "North row" if number <= 4 else "South row"
        yield _unit(
            "P-300", f"{number}", f"Townhome {number}", f"{number}", plan, building=row, created_at="-1050 09:31"
        )


def _sakura_court() -> Iterator[Row]:
    for floor in range(1, 4):
        for door in (1, 2):
            number = f"{floor}{door:02}"
            where: Row = {"floor": f"{floor}階 ({floor}F)", "created_at": "-770 14:40"}
            yield _unit("P-400", number, f"{number}号室", number, _SAKURA[door - 1], **where)


def _meridian_tower() -> Iterator[Row]:
    """The floors that the builder has handed over; the others have no units yet."""
    for floor in range(2, 12):
        for door in range(1, 6):
            number = f"{floor:02}{door:02}"
            where: Row = {"building": "Tower", "floor": f"Level {floor}", "created_at": f"-{236 - floor * 6} 08:30"}
            yield _unit("P-500", number, f"Meridian {number}", number, _MERIDIAN[door - 1], **where)


def _willow_gardens() -> Iterator[Row]:
    for letter, tree in _WILLOW.items():
        for door in range(1, 5):
            number = f"{letter}-{door:02}"
            plan: Plan = ("Willow 1", 1, 1, 610) if door % 2 else ("Willow 2", 2, 1.5, 845)
            where: Row = {"building": f"Building {letter}, {tree}", "floor": "Ground" if door <= 2 else "Upper"}
            yield _unit("P-600", number.replace("-", ""), number, number, plan, **where, created_at="-930 13:55")


def _kessler_block() -> Iterator[Row]:
    """Shops below, lofts above, and rooms without a number."""
    created: Row = {"created_at": "-345 16:20"}
    main: Row = {"building": "Main building", **created}
    for number, name in (("R1", "Retail 1 — Café Crème"), ("R2", 'Retail 2 — "Kessler & Daughter" Shoe Repair')):
        yield _unit("P-700", number, name, number, **main, floor="Street level")
    yield _unit("P-700", "R3", "Retail 3 — vacant shell", "R3", **main, floor="Street level")
    for floor in (2, 3, 4):
        for letter in "AB":
            number = f"{floor}{letter}"
            plan = (f"Loft {letter}", None, 1.0, 1310 if letter == "A" else 1180)
            yield _unit("P-700", number, f"Loft {number}", number, plan, **main, floor=f"Floor {floor}")
    yield _unit("P-700", "5A", "Penthouse (rooms to be divided)", "5A", **main, floor="Floor 5")
    yield _unit("P-700", "CH1", "Carriage house, ground", "CH-1", building="Carriage house", **created)
    yield _unit("P-700", "CH2", "Carriage house, hayloft", "CH-2", ("Studio", 0, None, None), **created)
    yield _unit("P-700", "BALL", "Old ballroom", None, **created)
