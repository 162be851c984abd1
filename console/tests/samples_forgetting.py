"""Answers about people who are to be forgotten: parties of unit 15 and, with hostile texts, of unit 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from makeready.occupancy.v1 import parties_pb2 as pb
from makeready.tickets.v1 import ticket_views_pb2 as views

from .samples_board import day
from .stubs import NOW, ago

FORGOTTEN, HOSTILE = 5, 9


def answers(hostile: str) -> Mapping[str, Any]:
    of_unit: Any = {"unit_id": 15, "unit": "Meridian Tower 403", "property_id": 5, "property": "Meridian Tower"}

    def get_party(request: Any, who: Identity) -> Any:
        if who.company_id != 1 or request.party_id not in (1, 2, 3, 4, FORGOTTEN, HOSTILE):
            raise Refusal(404, "not_found", "The company has no party with this id.")
        party = pb.GetPartyResponse(
            party_id=request.party_id, turn_id=5, turn_status="Active", move_in_date=day(-730), move_out_date=day(-7),
            role="leaseholder", **of_unit,
        )  # fmt: skip
        if request.party_id == FORGOTTEN:
            party.forgotten_at.CopyFrom(ago(days=2))
        elif request.party_id == HOSTILE:
            party.first_name, party.unit_id, party.unit, party.property = hostile, 3, hostile, hostile
        else:
            party.first_name, party.last_name, party.has_email, party.has_phone = (
                "Marguerite",
                "Okafor-Lindqvist",
                True,
                True,
            )
            party.has_notice_words = True
            party.same_email.add(
                party_id=FORGOTTEN, first_name="Marguerite", last_name="Okafor", turn_id=4, unit_id=15, unit="Alder 12"
            )
        return party

    def list_texts(request: Any, who: Identity) -> Any:
        if who.company_id != 1:
            raise Refusal(404, "not_found", "The company has no unit with that id.")
        texts = views.ListTicketTextsResponse(has_more=True)
        ticket = texts.tickets.add(
            ticket_id=102, ticket_number=418, title=hostile, status="Open", created_at=ago(days=9)
        )
        ticket.texts.add(name="102.title", field="title", text=f"Heating, ask for Marguerite {hostile}")
        ticket.texts.add(
            name="102.description", field="description",
            text="The radiator in the bedroom stays cold. Ms Okafor-Lindqvist works nights and sleeps until noon;"
            " she has asthma, so no sprays, please. Her sister (207 555 0177) has a key.",
        )  # fmt: skip
        ticket.texts.add(name="102.preferred_access_time", field="preferred_access_time", text="After 1 pm, call first")
        for number, author, words in (
            (7, "staff", "Spoke to Marguerite, she will be in on Thursday."),
            (8, "resident", "Nobody came this morning. When?"),
        ):
            text = ticket.texts.add(name=f"102.comment.{number}", field="comment", text=words, author=author)
            text.written_at.FromDatetime(NOW)
        older = texts.tickets.add(
            ticket_id=3, ticket_number=377, title="Tap", status="Completed", created_at=ago(days=90)
        )
        older.texts.add(name="3.title", field="title", text="Kitchen tap drips")
        return texts

    return {
        "occupancy.PartiesService/GetParty": get_party,
        "tickets.TicketViewsService/ListTicketTexts": list_texts,
    }
