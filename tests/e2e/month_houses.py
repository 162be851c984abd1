"""The companies of the month and their initial records, imported from files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from .month_calendar import DAY, KATHMANDU, LORD_HOWE, NEW_YORK, Calendar
from .month_company import Player, together
from .month_walk import Month
from .system import System

HUDSON, LAGOON, SUMMIT = "Hudson Homes", "Lagoon Lodges", "Summit Stays"
FLATS, HOUSES = 60, 40
STALE_AFTER_HOURS = 48
Rows = dict[str, list[dict[str, Any]]]


def begun(system: System, calendar: Calendar) -> Month:
    """Creates the three companies with their records. Imports fire no events."""
    month = Month(system, calendar)

    def found(name: str, zone: ZoneInfo) -> Player:
        player = Player.founded(system, name, zone, STALE_AFTER_HOURS)
        rows = _hudson(calendar) if name == HUDSON else _small(name)
        for kind, kind_rows in rows.items():
            player.fill(kind, kind_rows)
        return player

    zones = {HUDSON: NEW_YORK, LAGOON: LORD_HOWE, SUMMIT: KATHMANDU}
    players = together([partial(found, name, zone) for name, zone in zones.items()])
    month.players |= dict(zip(zones, players, strict=True))
    system.makeready("wait")
    together([partial(_learn, player) for player in players])
    _learn_of_tickets(month.players[HUDSON])
    _learn_of_inspections(month.players[HUDSON], calendar)
    _learn_of_work(month.players[HUDSON], calendar)
    return month


def _small(name: str) -> Rows:
    """One property with six units, four of them occupied."""
    return {
        "properties": [{"external_id": "P", "name": f"{name} I", "address": "1 Shore Road"}],
        "units": [{"external_id": f"U{n}", "property": "P", "name": f"Cabin {n}"} for n in range(6)],
        "turns": [{"external_id": f"T{n}", "unit": f"U{n}", "move_in_date": "2025-02-01"} for n in range(4)],
    }


def _hudson(calendar: Calendar) -> Rows:
    """Two properties with a hundred units, sixty of them occupied."""
    flats = [{"external_id": f"F{n}", "property": "P1", "name": f"Flat {n}", "building": "A"} for n in range(FLATS)]
    houses = [{"external_id": f"H{n}", "property": "P2", "name": f"House {n}"} for n in range(HOUSES)]
    lived_in = [f"F{n}" for n in range(40)] + [f"H{n}" for n in range(20)]
    silent = (datetime.now(UTC) - timedelta(hours=STALE_AFTER_HOURS) * 10.5).isoformat()
    sixth, ninth = calendar.day(6).isoformat(), calendar.day(9).isoformat()
    past = (datetime.now(UTC).date() - 9 * DAY).isoformat()
    return {
        "staff": [{"external_id": "S1", "name": "Ida Bell"}, {"external_id": "S2", "name": "Tom Reyes"}],
        "properties": [
            {"external_id": "P1", "name": "Hudson House", "address": "1 River Street"},
            {"external_id": "P2", "name": "Mohawk Row", "address": "2 Canal Street"},
        ],
        "units": [*flats, *houses],
        "turns": [{"external_id": f"T{unit}", "unit": unit, "move_in_date": "2025-02-01"} for unit in lived_in],
        "tickets": [
            {
                "external_id": "K1",
                "property": "P1",
                "unit": "F1",
                "title": "A door sticks",
                "category": "Doors/Windows",
                "status": "In Progress",
                "source": "resident_portal",
                "created_at": silent,
                "updated_at": silent,
            },
            {"external_id": "K2", "property": "P2", "title": "Moss on the roof", "category": "Roofing"},
        ],
        "inspections": [
            {"external_id": "I1", "property": "P1", "title": "Boilers", "scheduled_date": sixth},
            {"external_id": "I2", "property": "P1", "title": "Long forgotten", "scheduled_date": past},
            {
                "external_id": "I3",
                "property": "P2",
                "title": "A consultant's walk",
                "scheduled_date": sixth,
                "kind": "consulting_walk",
                "engagement": "E-1",
            },
            {
                "external_id": "I4",
                "property": "P2",
                "unit": "H1",
                "title": "Acceptance",
                "scheduled_date": sixth,
                "kind": "acceptance_walk",
            },
            {"external_id": "I5", "property": "P2", "title": "By hand", "scheduled_date": sixth, "status": "Finalized"},
        ],
        "turn-tasks": [
            {"external_id": "D1", "turn": "TF15", "task_type": "Windows", "scheduled_date": ninth},
            {"external_id": "D2", "turn": "TF15", "task_type": "Long forgotten", "scheduled_date": past},
            {"external_id": "D3", "turn": "TF15", "task_type": "Done", "scheduled_date": ninth, "status": "Completed"},
        ],
        "pm-tasks": [
            {"external_id": "M1", "property": "P2", "task_name": "Furnaces", "due_date": ninth},
            {"external_id": "M2", "property": "P2", "task_name": "Long forgotten", "due_date": past},
            {"external_id": "M3", "property": "P1", "task_name": "Dropped", "due_date": ninth, "status": "Cancelled"},
        ],
        "notices": [
            {
                "external_id": "N1",
                "property": "P1",
                "subject": "Welcome",
                "body": "We are new here.",
                "when": "Now",
                "published_at": silent,
            },
            {"external_id": "N2", "property": "P2", "subject": "Snow", "body": "Park inside.", "when": "Tonight"},
        ],
    }


def _learn(player: Player) -> None:
    """Passes the imported ids and residencies to the player and its model."""
    for kind, path in (("property", "/properties"), ("unit", "/units")):
        for record in player.all(path):
            player.name(kind, record["external_id"], record)
            if kind == "unit":
                player.model.unit(record["entity_id"], record["name"])
    for turn in player.all("/turns"):
        player.name("turn", turn["external_id"], turn)
        player.model.lived_in(turn["unit"]["id"], turn["entity_id"])


def _learn_of_tickets(player: Player) -> None:
    for ticket in player.all("/tickets"):
        number = player.name("ticket", ticket["external_id"], ticket)
        since = datetime.fromisoformat(ticket["updated_at"])
        player.model.opened(number, ticket["source"], since, fires=False, status=ticket["status"])
        player.model.silent_until(number, datetime.now(UTC))
    for member in player.ask("staff", "list")["staff"]:
        player.ids["staff", member["external_id"]] = int(member["staff_id"])


def _learn_of_inspections(player: Player, calendar: Calendar) -> None:
    served = {
        inspection["external_id"]: player.name("inspection", inspection["external_id"], inspection)
        for inspection in player.all("/inspections")
    }
    assert sorted(served) == ["I1", "I2", "I4", "I5"], "a consultant's walk is not served"
    for name in ("I1", "I4"):
        player.model.due("inspection.stale", served[name], calendar.day(6), {"status": "Scheduled"}, "inspection")


def _learn_of_work(player: Player, calendar: Calendar) -> None:
    """Adds the imported tasks that can still become overdue; those overdue at import count as announced."""
    turn_id = player.id("turn", "TF15")
    (task,) = (task for task in player.ask("turn", "tasks", turn_id)["tasks"] if task["external_id"] == "D1")
    number, facts = player.name("task", "D1", task), {"property": "Hudson House", "unit": "Flat 15"}
    player.model.due("turn.task.stale", number, calendar.day(9), {"task_type": "Windows", **facts}, turn_id=turn_id)
    (planned,) = (task for task in player.ask("pm", "list", open=True)["tasks"] if task["external_id"] == "M1")
    number, facts = player.name("pm_task", "M1", planned), {"property": "Mohawk Row", "unit": "Whole property"}
    due = calendar.day(9)
    player.model.due("pm.stale", number, due, {"task_name": "Furnaces", "due_date": due.isoformat(), **facts})
    (notice,) = (notice for notice in player.ask("notice", "list")["notices"] if notice["external_id"] == "N2")
    player.name("notice", "N2", notice)
