"""The residents whose leases the company knows: move-ins and notices, as the feed of a property's system reports them
over the API. E-mail addresses and phone numbers are of the ranges that belong to nobody."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LEASE_DAYS = 365
Body = dict[str, Any]
Party = tuple[str, str, str, str]


@dataclass(frozen=True)
class Residency:
    """A unit's present residents, or those to come. moved_in: days before the story's day; of a move-in that is planned
    below 0. number: which of the unit's residencies it is; each party: role, first name, last name, mailbox."""

    unit: str
    provider: str
    moved_in: int
    parties: tuple[Party, ...]
    month_to_month: bool = False
    number: int = 2

    @property
    def external_id(self) -> str:
        """The turn's own, as in the rows of a file."""
        return f"R-{self.unit[2:]}-{self.number}"

    def body(self, day: datetime.date, number: int) -> Body:
        """The body of POST /units/{unit_id}/move-in. number: of the residency, from 0."""
        start = day - datetime.timedelta(days=self.moved_in)
        # A lease that has ended was renewed for a year, as often as needed.
        years = max(self.moved_in, 0) // LEASE_DAYS + 1
        lease: Body = {"lease_start_date": start.isoformat()}
        if not self.month_to_month:
            lease["lease_end_date"] = (start + datetime.timedelta(days=years * LEASE_DAYS - 1)).isoformat()
        return {
            "move_in_date": start.isoformat(),
            **lease,
            "provider": self.provider,
            "external_id": self.external_id,
            "parties": [
                {
                    "role": role,
                    "first_name": first,
                    "last_name": last,
                    "email": f"{mailbox}@example.com",
                    "phone": f"+1 555 01{number:02} {place}",
                    "external_id": f"{self.external_id}-{place}",
                }
                for place, (role, first, last, mailbox) in enumerate(self.parties, 1)
            ],
        }


def _holder(first: str, last: str, mailbox: str) -> Party:
    return "leaseholder", first, last, mailbox


def _guarantor(first: str, last: str, mailbox: str) -> Party:
    return "guarantor", first, last, mailbox


RESIDENCIES = (
    Residency(
        "P-100-102", "yardi", 251, (_holder("Maya", "Lindqvist", "maya.l"), _holder("Jonah", "Lindqvist", "jonah.l"))
    ),
    Residency("P-100-103", "yardi", 820, (_holder("Chukwuemeka", "Nwosu", "emeka.nwosu"),), month_to_month=True),
    Residency(
        "P-100-203",
        "yardi",
        94,
        (_holder("Zoë", "Van der Meer", "zoe.vdm"), _guarantor("Pieter", "Van der Meer", "pieter.v")),
    ),
    Residency("P-100-204", "yardi", 430, (_holder("Wilhelmina", "Ostrowska-Hughes", "wilhelmina.oh"),)),
    Residency(
        "P-100-301",
        "yardi",
        605,
        (_holder("Δήμητρα", "Παπαδοπούλου", "dimitra.p"), _holder("Νίκος", "Παππάς", "nikos.p")),
    ),
    Residency("P-100-402", "yardi", 1111, (_holder("Teodoro", "De la Cruz", "teo.delacruz"),), month_to_month=True),
    Residency(
        "P-300-1", "entrata", 700, (_holder("Aoife", "Ní Bhriain", "aoife"), _holder("Cian", "Ó Briain", "cian"))
    ),
    Residency("P-300-2", "entrata", 388, (_holder("נועה", "ברקוביץ", "noa.b"), _holder("איתן", "ברקוביץ", "eitan.b"))),
    Residency("P-300-5", "entrata", 129, (_holder("ليلى", "حداد", "layla.h"), _guarantor("سامي", "حداد", "sami.h"))),
    Residency("P-300-6", "entrata", 511, (_holder("अनिल", "शर्मा", "anil.s"), _holder("मीरा", "शर्मा", "meera.s"))),
    Residency("P-500-0204", "realpage", 118, (_holder("Quentin", "Abernathy", "q.abernathy"),)),
    Residency("P-500-0501", "realpage", 77, (_holder("김", "서연", "seoyeon.kim"), _holder("이", "도윤", "doyun.lee"))),
    Residency("P-500-0601", "realpage", 140, (_holder("ธนากร", "วงศ์สวัสดิ์", "thanakorn.w"),)),
    Residency("P-500-0804", "realpage", 41, (_holder("王", "小明", "wang.xm"), _guarantor("王", "建国", "wang.jg"))),
    Residency("P-600-A01", "appfolio", 266, (_holder("Оксана", "Шевченко", "oksana.s"),)),
    Residency(
        "P-600-A03", "appfolio", 733, (_holder("Dolores", "Huerta-Quiñones", "dolores.hq"),), month_to_month=True
    ),
    Residency("P-600-B04", "appfolio", 344, (_holder("Rosalind", "Achterberg", "r.achterberg"),)),
    Residency(
        "P-600-D04",
        "appfolio",
        59,
        (
            _holder("Sipho", "Mthembu", "sipho.m"),
            _holder("Thandiwe", "Mthembu", "thandi.m"),
            _guarantor("Nomsa", "Mthembu", "nomsa.m"),
        ),
    ),
    Residency("P-600-E01", "appfolio", 480, (_holder("Håkon", "Bjørnstad", "hakon.b"),)),
    Residency("P-600-F01", "appfolio", 212, (_holder("Xiomara", "Peña Ñáñez", "xiomara.pn"),)),
)
MOVED_IN = {residency.unit: residency.moved_in for residency in RESIDENCIES}
_BY_UNIT = {residency.unit: residency for residency in RESIDENCIES}

# By unit: in how many days its residents leave, why, where to, and what they said.
NOTICES = {
    "P-300-6": (12, "job_transfer", "out_of_state", "Start in Pune in January. Would like to leave the curtains."),
    "P-500-0601": (26, "bought_home", "same_city", "Asked whether the deposit can go to the new address."),
    "P-600-B04": (21, "family", "same_state", ""),
}
# Who is to move in next: behind two of these residents in time, behind one too early, and tomorrow into an empty unit.
SUCCESSORS = (
    Residency(
        "P-300-6",
        "entrata",
        -24,
        (_holder("Ngozi", "Adeyemi", "ngozi.a"), _holder("Tobias", "Lang", "t.lang")),
        number=3,
    ),
    Residency("P-600-B04", "appfolio", -33, (_holder("Inés", "Carvalho-Reyes", "ines.cr"),), number=3),
    Residency("P-500-0601", "realpage", -30, (_holder("Marek", "Dvořák", "marek.d"),), number=3),
    Residency("P-600-A02", "appfolio", -1, (_holder("Leilani", "Kealoha", "leilani.k"),), number=3),
)
# By unit: the notices that are corrected after the unit is let again. This one makes the clash.
CORRECTED = {
    "P-500-0601": (33, "bought_home", "same_city", "The house is not ready: a week more, please."),
}


@dataclass(frozen=True)
class Move:
    """One call of a feed. key: its idempotency key. predecessor: the external_id of the turn that a move-in names."""

    unit: str
    verb: str
    body: Body
    key: str
    predecessor: str = ""


def moves(day: datetime.date) -> Iterator[Move]:
    """The calls of the feeds about those who live there, in their order."""
    for number, residency in enumerate(RESIDENCIES):
        yield Move(residency.unit, "move-in", residency.body(day, number), f"demo-move-in-{residency.unit}")
    for unit, notice in NOTICES.items():
        yield Move(unit, "notice", _notice(day, unit, *notice), f"demo-notice-{unit}")


def moves_ahead(day: datetime.date) -> Iterator[Move]:
    """The calls of the feeds about those who come next, in their order."""
    for number, residency in enumerate(SUCCESSORS, len(RESIDENCIES)):
        predecessor = _BY_UNIT[residency.unit].external_id if residency.unit in _BY_UNIT else ""
        yield Move(residency.unit, "move-in", residency.body(day, number), f"demo-next-{residency.unit}", predecessor)
    for unit, notice in CORRECTED.items():
        yield Move(unit, "notice", _notice(day, unit, *notice), f"demo-notice-again-{unit}")


def _notice(day: datetime.date, unit: str, days: int, reason: str, destination: str, notes: str) -> Body:
    return {
        "move_out_date": (day + datetime.timedelta(days=days)).isoformat(),
        "provider": _BY_UNIT[unit].provider,
        "ntv_reason_code": reason,
        "departure_destination_code": destination,
        "external_id": f"{_BY_UNIT[unit].external_id}-notice",
        **({"notes": notes} if notes else {}),
    }
