"""The month of the two small companies: the same work in two other time zones."""

from __future__ import annotations

from .month_houses import LAGOON, SUMMIT
from .month_inspections import Inspections, Vendors
from .month_tickets import Desk
from .month_turns import Turns
from .month_upkeep import Upkeep
from .month_walk import Month

AWAY = range(10, 13)
"""The days on which Summit Stays is inactive."""


def lord_howe(month: Month) -> None:
    """All due dates fall around the night in which the clocks go back by half an hour."""
    day, on = month.calendar.day, month.on
    eve = (month.calendar.back - month.calendar.first).days - 1
    walks, turns, upkeep = Inspections(month, LAGOON), Turns(month, LAGOON), Upkeep(month, LAGOON)
    vendors, desk = Vendors(month, LAGOON), Desk(month, LAGOON)
    on(1, lambda: vendors.add("V1"), lambda: vendors.insure("V1", day(eve)))
    on(2, lambda: desk.open("drips", "resident", "U1"))
    on(3, *(lambda n=n: walks.schedule(f"walk {n}", day(eve + n)) for n in (-1, 0, 1)))
    on(3, lambda: turns.notice("U1", day(eve)), lambda: turns.task("Sand", "U1", day(eve)))
    on(4, lambda: upkeep.pm("Tanks", day(eve), "U2"), lambda: turns.ready("U1", day(eve + 2)))
    on(4, lambda: upkeep.notice("Storm", "Cabin 2", unit_id=[month.players[LAGOON].id("unit", "U2")]))


def kathmandu(month: Month) -> None:
    """The company is inactive for some days: what falls due then is announced once, when it is active again."""
    day, on = month.calendar.day, month.on
    us = month.players[SUMMIT]
    walks, turns, upkeep = Inspections(month, SUMMIT), Turns(month, SUMMIT), Upkeep(month, SUMMIT)
    walked = (7, AWAY.start + 1, AWAY.stop + 3)
    on(1, *(lambda n=n: walks.schedule(f"walk {n}", day(n)) for n in walked))
    on(1, lambda: turns.notice("U1", day(8)), lambda: turns.task("Sweep", "U1", day(9)))
    on(1, lambda: upkeep.pm("Roofs", day(8), "U2"), lambda: upkeep.pm("Wells", day(AWAY.start), area="Yard"))
    on(2, lambda: turns.notice("U2", day(AWAY.start)))

    def is_active(active: bool) -> None:
        us.system.makeready("company", "update", str(us.company.company_id), "--active" if active else "--inactive")
        us.system.makeready("wait")
        us.model.is_active = active

    on(AWAY.start, lambda: is_active(False))
    on(AWAY.start + 1, lambda: us.get("/tickets", status=403))
    on(AWAY.stop, lambda: is_active(True))
