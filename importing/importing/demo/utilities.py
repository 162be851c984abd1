"""The demo company's meters, and their readings of the last two years."""

import datetime
import itertools
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from importing.demo.units import Row

Instant = Callable[[datetime.date, str], str]

MONTHS = 26
# A reading arrives three days after its period; the youngest period is one whose reading has arrived.
READ_AFTER_DAYS = 3
# By meter, how many months ago: a month that was never read, and a month with so many times its consumption (a toilet
# that ran, a chiller that was left on).
NEVER_READ = {("M-400-W", 8), ("M-300-3", 15)}
MANIFOLD = {("M-100-W", 5): 2.7, ("M-100-S", 5): 2.7, ("M-500-E", 3): 1.9, ("M-300-2", 20): 0.1}
# Of a row of an import, in the order of the file.
_COLUMNS = (
    *("external_id", "property", "name", "utility_type", "scope", "unit", "meter_number", "unit_of_measure"),
    "is_active",
)


@dataclass(frozen=True)
class Meter:
    """One meter. monthly: its average consumption in a month, 0 if it has no readings; winter: how much higher
    January's is, as a share, negative for summer consumption; price: of one unit of measure."""

    external_id: str
    name: str
    utility_type: str
    unit_of_measure: str | None
    monthly: float
    winter: float = 0
    price: float | None = None
    scope: str = "master"
    unit: str | None = None
    meter_number: str | None = None
    is_active: bool = True
    months: int = MONTHS

    @property
    def property(self) -> str:
        return f"P-{self.external_id[2:5]}"

    def row(self) -> Row:
        """The meter as a row of an import."""
        return {name: getattr(self, name) for name in _COLUMNS} | {"created_at": _since(self)}


def _since(meter: Meter) -> str:
    return {"P-500": "-200 10:30", "P-800": "-8 12:10"}.get(meter.property, f"-{meter.months * 31 + 30} 10:30")


# The meters of whole properties.
_OF_PROPERTIES = (
    Meter("M-100-E", "House electric", "electric", "kWh", 5200, 0.15, 0.19, "common_area", None, "CMP 60 441 207"),
    Meter("M-100-G", "Boiler gas", "gas", "therms", 1450, 0.85, 1.42, meter_number="UN-0098123"),
    Meter("M-100-W", "Domestic water", "water", "gal", 61000, -0.1, 0.006, meter_number="PWD-7714"),
    Meter("M-100-S", "Sewer (billed on water)", "sewer", "gal", 61000, -0.1, 0.011),
    Meter("M-100-T", "Trash and recycling", "trash", None, 13, 0, 48.5),
    Meter("M-200-E", "Électricité, services communs", "electric", "kWh", 1900, 0.35, 0.1, "common_area"),
    Meter("M-200-G", "Gaz naturel (chaufferie)", "gas", "m³", 2600, 0.9, 0.55, meter_number="ÉN-55.120-B"),
    Meter("M-200-O", "Mazout, ancien réservoir", "other", "L", 0, is_active=False, months=40),
    Meter("M-200-W", "Eau (compteur d'entrée)", "water", "m³", 190, meter_number="QC-2231"),
    Meter("M-300-T", "Trash, curb carts", "trash", "cart", 34, 0, 6.25),
    Meter(
        "M-400-E",
        "共用部 電気 / Common electric",
        "electric",
        "kWh",
        640,
        0.1,
        0.22,
        "common_area",
        None,
        "PSEG 42-118",
        months=22,
    ),
    Meter("M-400-W", "水道 / Water", "water", "CCF", 31, -0.05, 7.9, meter_number="VEO-3090", months=22),
    Meter("M-400-G", "ガス / Gas", "gas", "therms", 205, 0.6, 1.31, meter_number="PSEG 42-119", months=22),
    Meter(
        "M-500-E", "Tower main switchgear", "electric", "kWh", 148000, -0.2, 0.145, meter_number="HV-500-1", months=7
    ),
    Meter(
        "M-500-EV", "EV chargers B2", "electric", "kWh", 2100, 0.05, 0.145, "common_area", None, "CP-GRP-6", months=6
    ),
    Meter(
        "M-500-H", "Condenser loop heat meter", "other", "kWh (thermal)", 38500, 0.7, meter_number="KAM-0091", months=6
    ),
    Meter("M-500-W", "Domestic water, low zone", "water", "gal", 171000, 0, 0.0071, meter_number="VEO-8801", months=7),
    Meter("M-500-S", "Sewer", "sewer", "gal", 171000, 0, 0.0098, months=7),
    Meter("M-600-W", "Irrigation", "water", "gal", 24000, -1, 0.0064, "common_area", None, "PW-31-A"),
    Meter(
        "M-600-W0",
        "Irrigation (replaced, glass broken)",
        "water",
        "gal",
        0,
        0,
        None,
        "common_area",
        None,
        "PW-30-F",
        False,
    ),
    Meter("M-600-P", "Pool make-up water", "water", "gal", 3900, -1, 0.0064, "common_area"),
    Meter("M-600-T", "Compactor pulls", "trash", "pull", 5, 0, 310),
    Meter(
        "M-700-E",
        "Temporary construction power",
        "electric",
        "kWh",
        7400,
        0.4,
        0.24,
        meter_number="NG-T-2217",
        months=10,
    ),
    Meter("M-700-X", "Street steam (cut and capped)", "other", None, 0, is_active=False, months=11),
    Meter("M-800-W", "Well pump?", "water", None, 0),
)


def meters() -> list[Meter]:
    """All meters, including those of units."""
    return sorted([*_OF_PROPERTIES, *_of_townhomes(), *_of_heat_pumps()], key=lambda meter: meter.property)


def _of_townhomes() -> Iterator[Meter]:
    for number in range(1, 9):
        # The fifth has solar panels: in summer it feeds back more than it draws.
        monthly, winter = (120.0, 2.4) if number == 5 else (840.0 + 25 * number, 0.3)
        name, unit, meter_number = f"Townhome {number} electric", f"P-300-{number}", f"BGE-30{number:02}"
        yield Meter(f"M-300-{number}", name, "electric", "kWh", monthly, winter, 0.16, "unit", unit, meter_number)


def _of_heat_pumps() -> Iterator[Meter]:
    for door in range(1, 6):
        yield Meter(
            f"M-500-02{door:02}",
            f"Meridian 02{door:02} heat pump",
            "electric",
            "kWh",
            210 + 40 * door,
            winter=0.5,
            scope="unit",
            unit=f"P-500-02{door:02}",
            meter_number=f"SUB-02{door:02}",
            months=5,
        )


def readings(day: datetime.date, instant: Instant) -> Iterator[Row]:
    """Every meter's readings, month after month, as rows of an import of readings.

    instant: of a date and a time of day at the company.
    """
    end = (day - datetime.timedelta(days=2 * READ_AFTER_DAYS)).replace(day=1)
    for meter in meters():
        months = [end]
        for _ in range(meter.months):
            months.append((months[-1] - datetime.timedelta(days=1)).replace(day=1))
        months.reverse()
        for ago, (start, stop) in zip(range(meter.months, 0, -1), itertools.pairwise(months), strict=True):
            if meter.monthly and (meter.external_id, ago) not in NEVER_READ:
                yield _reading(meter, start, stop, MANIFOLD.get((meter.external_id, ago), 1), instant)


def _reading(meter: Meter, start: datetime.date, stop: datetime.date, times: float, instant: Instant) -> Row:
    chance = zlib.crc32(f"{meter.external_id} {start:%Y-%m}".encode())
    season = math.cos((start.month - 1) / 12 * math.tau)
    used = times * meter.monthly * (1 + meter.winter * season) * (0.94 + chance % 1000 / 8000)
    used = round(used, 1 if meter.monthly < 1000 else 0)
    if meter.utility_type == "trash":
        used = round(used)
    return {
        "external_id": f"{meter.external_id}-{start:%Y-%m}",
        "meter": meter.external_id,
        "period_start": instant(start, "00:00:00"),
        "period_end": instant(stop, "00:00:00"),
        "consumption": used,
        "cost": None if meter.price is None else round(used * meter.price, 2),
        "is_estimated": chance % 19 == 0,
        "created_at": instant(stop + datetime.timedelta(days=READ_AFTER_DAYS), f"06:{chance % 60:02}:{chance % 59:02}"),
    }
