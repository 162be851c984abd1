"""The daily work of the demo company's people, after its files are imported: each act is a command of `makeready`.

In the words of a command `T-0002` stands for the id of the record with that external_id, `row:I-101:2` for the id of an
inspection's second row, and `task:R-600-C01-2:Clean` for that of a make-ready task.
"""

import datetime
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

OPERATOR, ADMINISTRATOR = "", "administrator"
STAFF_WHO_SIGN_IN = ("S-04", "S-05")
Photo = Callable[[str], str]


@dataclass(frozen=True)
class Act:
    """One command. who: ADMINISTRATOR, OPERATOR or the external_id of a member of staff; words: without the
    company's id, which stands after the first two."""

    who: str
    words: tuple[str, ...]

    @property
    def key(self) -> str:
        """The idempotency key: a load that was interrupted does not act twice."""
        return "demo-" + hashlib.sha256("\0".join((self.who, *self.words)).encode()).hexdigest()[:24]


def _by(who: str, *words: str) -> Act:
    return Act(who, words)


def vendors(day: datetime.date) -> Iterator[Act]:
    """Insurance that lapses soon, or has lapsed, and a hold."""
    for vendor, days in {"V-01": 290, "V-05": 121, "V-09": 5, "V-03": 16, "V-07": -20}.items():
        yield _by(ADMINISTRATOR, "vendor", "insurance", vendor, "--expires-on", _date(day, days))
    reason = "Walked off two jobs at the Kessler Block. No new work until Tomás has spoken to them."
    yield _by(ADMINISTRATOR, "vendor", "hold", "V-11", "--reason", reason)


def inspections(day: datetime.date) -> Iterator[Act]:
    """One walked with failures, one half walked, two planned."""
    yield _scheduled("S-11", "I-101", "P-600", "Life safety, buildings A and B", day, -2, (
        "Smoke detectors, stairs", "Emergency lights", "Extinguishers", "Exit doors", "CO detectors",
    ), "--inspection-type", "Life Safety", "--is-compliance-inspection", "--compliance-type", "NFPA 101")  # fmt: skip
    yield _by("S-11", "inspection", "start", "I-101")
    for row in ("1", "3", "5"):
        yield _by("S-11", "inspection", "pass-row", "I-101", f"row:I-101:{row}")
    yield _failed("I-101", 2, "Building B, second landing: dark when the breaker is off.", "Electrical", "High")
    yield _failed("I-101", 4, "Building A: the closer is bent, the door stays open.", "Doors/Windows", "Medium")
    yield _by("S-11", "inspection", "complete", "I-101", "--completed-date", _working_day(day, -1))

    yield _scheduled("S-05", "I-102", "P-100", "Common areas, monthly", day, 0, (
        "Lobby", "Stairs and handrails", "Laundry", "Roof drains", "Garage", "Pool gate",
    ), "--inspection-type", "Common Area")  # fmt: skip
    yield _by("S-05", "inspection", "start", "I-102")
    for row in ("1", "2"):
        yield _by("S-05", "inspection", "pass-row", "I-102", f"row:I-102:{row}")
    yield _failed("I-102", 3, "Dryer 2: lint behind the drum, smells hot.", "Appliance", "High", "S-05")

    yield _scheduled("S-02", "I-103", "P-100", "Move-out walk, 403", day, 1, (
        "Kitchen", "Bathroom", "Living room", "Bedroom", "Balcony", "Keys and fobs returned",
    ), "--unit-id", "P-100-403", "--inspection-type", "Move-out")  # fmt: skip
    yield _scheduled("S-02", "I-105", "P-100", "Pre-move-out walk, 104", day, 11, (
        "Walls and floors", "Appliances", "What the deposit may cover",
    ), "--unit-id", "P-100-104", "--inspection-type", "Pre-move-out")  # fmt: skip
    yield _scheduled("S-11", "I-104", "P-300", "Smoke and CO detectors, both rows", day, 12, (
        "North row", "South row",
    ), "--inspection-type", "Fire Alarm", "--is-compliance-inspection", "--compliance-type", "NFPA 72")  # fmt: skip


def turns(day: datetime.date) -> Iterator[Act]:
    """Ready dates of the units whose residents have given notice, tasks in them, and templates of tasks."""
    yield _by(ADMINISTRATOR, "turn-template", "add", "Standard turn", *_tasks(
        ("Trash-out", 1), ("Paint", 2), ("Clean", 4), ("Final walk", 5),
    ))  # fmt: skip
    yield _by(ADMINISTRATOR, "turn-template", "add", "Tower turn", "--property-id", "P-500", *_tasks(
        ("Key fobs returned", 0), ("Clean", 1), ("Filter change", 1), ("Final walk", 2),
    ))  # fmt: skip
    for turn, days in {"R-300-6-2": 20, "R-500-0601-2": 41, "R-600-B04-2": 29}.items():
        yield _by("S-04", "turn", "schedule", turn, "--projected-ready-on", _date(day, days))
    yield _task("R-600-B04-2", "Pre-move-out walk", _date(day, 14))
    yield _task("R-600-B04-2", "Paint", _date(day, 23))
    yield _task("R-300-6-2", "Pre-move-out walk", _date(day, 5))
    yield _task("R-500-0703-1", "Carpet", _date(day, -1))
    yield _by("S-05", "turn", "complete-task", "task:R-500-0703-1:Clean")
    yield _by("S-04", "turn", "schedule", "R-100-403-2", "--projected-ready-on", _date(day, 4))


def _tasks(*several: tuple[str, int]) -> Iterator[str]:
    """The tasks of a template, each with its days after the move-out."""
    for task_type, days in several:
        yield from ("--task", json.dumps({"task_type": task_type, "days_after_move_out": days}))


def upkeep(day: datetime.date) -> Iterator[Act]:
    """Maintenance that is done, which makes its successor, and some that is new; notices to residents."""
    yield _by(
        "S-04", "pm", "add", "--property-id", "P-100", "--task-name", "Test the generator transfer switch",
        "--due-date", _date(day, 3), "--repeat-months", "1", "--external-id", "PM-17", "--area", "Electrical room",
    )  # fmt: skip
    yield _by("S-05", "pm", "complete", "PM-02")
    yield _by(
        "S-02", "notice", "compose", "--property-id", "P-100", "--subject", "Water off on Thursday",
        "--body", "The plumber replaces the main valve. Please fill a pot or two the evening before.",
        "--when", "Thursday, 9 am to noon", "--external-id", "N-06",
    )  # fmt: skip
    yield _by("S-02", "notice", "publish", "N-06")
    yield _by(
        "S-02", "notice", "compose", "--property-id", "P-100", "--subject", "Garage is cleaned",
        "--body", "Please move your car by 8 am. Cars that stay are not moved, and not cleaned around.",
        "--when", "Next Saturday, 8 am to 2 pm", "--area", "Garage", "--external-id", "N-07",
    )  # fmt: skip
    yield _by(
        "S-03", "notice", "compose", "--property-id", "P-200", "--subject", "Ramonage de la cheminée",
        "--body", "Les foyers ne peuvent pas servir ce jour-là.", "--when", "Date à confirmer", "--external-id", "N-08",
    )  # fmt: skip


def reports(day: datetime.date, photo: Photo) -> Iterator[Act]:
    """What is said, photographed and done about tickets."""
    del day
    yield _photograph("S-05", "T-0002", photo("water-heater"), "resident")
    yield _assign("S-04", "T-0002", "--assignee-id", "S-05")
    yield _comment(
        "S-05", "T-0002", "Thermocouple is gone, the pilot won't hold. Part is at Northeast Supply, back at nine. "
        "Gave the family a fan heater for the bathroom.",
    )  # fmt: skip
    yield _photograph("S-05", "T-0002", photo("thermocouple"), "staff")
    yield _comment("S-02", "T-0002", "Nobody came this morning. When?", "resident")
    yield _photograph(OPERATOR, "T-0008", photo("dishwasher"), "resident")
    yield _comment("S-04", "T-0008", "E24 is the drain. Check the hose for a kink before ordering the pump.")
    yield _photograph("S-02", "T-0009", photo("ceiling-stain"), "resident")
    yield _comment(OPERATOR, "T-0009", "Opened the ceiling: 401's shower pan leaks. We need both on one day.", "vendor")
    yield _comment("S-04", "T-0009", "Asked 401 for Tuesday. 301 may stay in 302 meanwhile.")
    yield _photograph(OPERATOR, "T-0046", photo("garage-door"), "resident")
    yield _photograph(OPERATOR, "T-0064", photo("floor-plank"), "resident")
    yield _photograph("S-06", "T-0077", photo("furnace"), "staff")
    yield _comment(
        "S-06", "T-0077", "Red-tagged: cracked heat exchanger. New furnace ordered; two space heaters are there."
    )
    yield _comment("S-02", "T-0077", "Пожалуйста, сообщите точную дату. Детям холодно.", "resident")
    yield _photograph("S-10", "T-0090", photo("plaster"), "resident")
    yield _assign("S-10", "T-0090", "--assignee-id", "S-10")
    yield _photograph("S-10", "T-0094", photo("alarm-panel"), "staff")
    yield _photograph("S-12", "T-0051", photo("air-conditioner"), "resident")
    yield _comment("S-12", "T-0051", "تم طلب القطعة، ستصل يوم الخميس.")
    yield _comment("S-07", "T-0053", "水曜の午前に伺います。", "vendor")
    yield _comment("S-03", "T-0025", "Le siphon est changé, reste à vérifier dimanche.")
    yield _status("S-05", "T-0001", "In Progress")
    yield _status("S-04", "T-0017", "On Hold")
    yield _comment(OPERATOR, "T-0017", "Leveling encoder is on order, eight working days.", "vendor")


def endings(day: datetime.date) -> Iterator[Act]:
    """What is done once deliveries have been parked: its own wait."""
    del day
    yield _status("S-06", "T-0042", "Completed", "--note", "Cleaned the vent and its flap, airflow is normal again.")
    yield _status("S-02", "T-0106", "Cancelled", "--cancellation-reason-code", "resolved_independently")
    yield _open("S-02", "P-100", "P-100-402", "Key turns only if the door is pulled", "Security", "Medium", "resident")
    yield _assign("S-04", "T-0040", "--assignee-id", "S-04", "--vendor-id", "V-09")


def lately(day: datetime.date) -> Iterator[Act]:
    """What no sweep has come by yet."""
    del day
    yield _open("S-04", "P-500", "P-500-0804", "Bathroom light goes off by itself", "Electrical", "High", "resident")
    yield _status("S-04", "T-0040", "In Progress")
    yield _comment("S-02", "T-0101", "The towel bar took tiles with it. Sharp edges, there is a child.", "resident")


def _date(day: datetime.date, days: int) -> str:
    return (day + datetime.timedelta(days=days)).isoformat()


def _working_day(day: datetime.date, days: int) -> str:
    """A day on which inspections are walked; of the past, the Friday before a weekend."""
    date = day + datetime.timedelta(days=days)
    while date.weekday() > 4:
        date += datetime.timedelta(days=1 if days > 0 else -1)
    return date.isoformat()


def _scheduled(
    who: str, key: str, place: str, title: str, day: datetime.date, days: int, rows: tuple[str, ...], *more: str
) -> Act:
    words = [
        "inspection",
        "schedule",
        "--property-id",
        place,
        "--title",
        title,
        "--assignee-id",
        who,
        "--external-id",
        key,
    ]
    words += ["--scheduled-date", _working_day(day, days)]
    for row in rows:
        words += ["--row", row]
    return Act(who, (*words, *more))


def _failed(inspection: str, row: int, note: str, category: str, priority: str, who: str = "S-11") -> Act:
    words = ("inspection", "fail-row", inspection, f"row:{inspection}:{row}", "--note", note, "--category", category)
    return Act(who, (*words, "--priority", priority))


def _task(turn: str, task: str, date: str) -> Act:
    return _by("S-04", "turn", "add-task", turn, "--task-type", task, "--scheduled-date", date)


def _comment(who: str, ticket: str, text: str, by: str = "staff") -> Act:
    return _by(who, "ticket", "comment", ticket, "--body", text, "--by", by)


def _photograph(who: str, ticket: str, url: str, by: str) -> Act:
    return _by(who, "ticket", "photograph", ticket, "--photo-url", url, "--by", by)


def _assign(who: str, ticket: str, *whom: str) -> Act:
    return _by(who, "ticket", "assign", ticket, *whom)


def _status(who: str, ticket: str, status: str, *more: str) -> Act:
    return _by(who, "ticket", "status", ticket, "--status", status, *more)


def _open(who: str, place: str, unit: str, title: str, category: str, priority: str, by: str) -> Act:
    words = ("ticket", "open", "--property-id", place, "--unit-id", unit, "--title", title, "--category", category)
    return Act(who, (*words, "--priority", priority, "--by", by))
