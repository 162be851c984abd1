"""Invented companies, buildings and tickets, the same ones in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]

_SUBJECTS = {
    "Plumbing": ("Kitchen faucet", "Shower drain", "Toilet tank", "Water heater valve", "Supply line under the sink"),
    "Electrical": ("Hallway light", "Bedroom outlet", "Breaker panel", "Bathroom fan switch"),
    "HVAC": ("Radiator", "Thermostat", "Air conditioner", "Furnace filter"),
    "Appliance": ("Dishwasher", "Refrigerator", "Oven door", "Washing machine"),
    "Doors/Windows": ("Balcony door", "Entry lock", "Bedroom window", "Window screen"),
    "Pest Control": ("Ants in the pantry", "Mice behind the stove", "Wasps at the balcony"),
    "Common Area": ("Lobby carpet", "Mail room shelf", "Stairwell handrail", "Laundry room sink"),
    "Life Safety": ("Smoke detector", "Emergency light", "Sprinkler head cover"),
}
_COMPLAINTS = (
    "drips through the night",
    "does not turn on",
    "is loose and rattles",
    "smells of burning when used for long",
    "leaks onto the floor below",
    "was reported twice before and came back",
    "makes a grinding noise",
    "is stuck halfway",
)
_SENTENCES = (
    "The resident says that it began after the storm last week.",
    "It was looked at in spring, but the part was never replaced.",
    "Please call before coming, there is a dog in the apartment.",
    "The neighbour on the floor below has noticed it too.",
    "Access is possible on weekdays after 16:00; the concierge has a key.",
    "A bucket is in place for now and is emptied in the evening.",
    "Photos were sent by e-mail; the damage can be seen on the left side.",
    "Le locataire préfère être contacté en français.",
    "It happens only when the unit above is running water.",
)
_DONE = (
    "Replaced the worn part and tested it twice.",
    "Cleaned and sealed; the resident was there and is content.",
    "Waited an hour for the pressure to settle, no leak since.",
    "The old wiring behind the plate was renewed as well.",
)
_STREETS = ("Alder", "Birch", "Cedar", "Dufferin", "Elm", "Front", "Gerrard", "Harbour", "Ivy", "Jarvis")
_ROOMS = ("Kitchen", "Bathroom", "Bedroom", "Living room", "Hallway", None)


def properties(count: int) -> Iterator[Row]:
    for number in range(1, count + 1):
        street = f"{100 + number} {_STREETS[number % len(_STREETS)]} Street"
        yield {
            "external_id": f"P-{number}",
            "name": f"{_STREETS[number % len(_STREETS)]} Court {number}",
            "address": street,
        }


def units(count: int, a_property: int) -> Iterator[Row]:
    for number in range(1, count + 1):
        for unit in range(1, a_property + 1):
            label = f"{unit // 10 + 1}{unit % 10:02}"
            external_id = f"U-{number}-{unit}"
            yield {
                "external_id": external_id,
                "property": f"P-{number}",
                "name": f"Unit {label}",
                "unit_number": label,
            }


def sentence(chance: random.Random) -> tuple[str, str, str]:
    """A category, a title and a description for it."""
    category = chance.choice(tuple(_SUBJECTS))
    title = f"{chance.choice(_SUBJECTS[category])} {chance.choice(_COMPLAINTS)}"
    return category, title, f"{title}. " + " ".join(chance.sample(_SENTENCES, chance.randint(1, 4)))


def change(chance: random.Random, status: str) -> Row:
    """The body of a change to this status."""
    row: Row = {"status": status}
    if status == "Completed":
        row["note"] = " ".join(chance.sample(_DONE, chance.randint(1, 3)))
    if status == "Cancelled":
        row["cancellation_reason_code"] = chance.choice(("resident_cancelled", "duplicate_ticket", "see_notes"))
        if row["cancellation_reason_code"] == "see_notes":
            row["cancellation_notes"] = chance.choice(_SENTENCES)
    return row


def tickets(seed: int, count: int, buildings: int, a_property: int) -> Iterator[Row]:
    chance = random.Random(seed)  # noqa: S311 - the same rows at every run
    for number in range(1, count + 1):
        building, unit = chance.randint(1, buildings), chance.randint(1, a_property)
        category, title, description = sentence(chance)
        status = chance.choices(("Open", "In Progress", "On Hold", "Completed", "Cancelled"), (25, 15, 5, 50, 5))[0]
        day, minute = chance.randint(1, 27), chance.randint(0, 59)
        row: Row = {
            "external_id": f"T-{number}",
            "property": f"P-{building}",
            "unit": f"U-{building}-{unit}",
            "title": title,
            "description": description,
            "category": category,
            "priority": chance.choices(("Low", "Medium", "High", "Emergency"), (20, 55, 20, 5))[0],
            "status": status,
            "room": chance.choice(_ROOMS),
            "permission_to_enter": chance.random() < 0.5,
            "created_at": f"2026-0{chance.randint(1, 6)}-{day:02}T{chance.randint(6, 21):02}:{minute:02}:30.250417Z",
            "updated_at": f"2026-07-{day:02}T12:{minute:02}:09.118233Z",
            "source": chance.choice(("staff", "resident_portal", "import")),
        }
        if status == "Cancelled":
            row["cancellation_reason_code"] = "resident_cancelled"
        yield {name: value for name, value in row.items() if value is not None}
