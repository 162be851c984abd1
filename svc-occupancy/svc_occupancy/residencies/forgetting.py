"""The RPCs of PartiesService: an administrator forgets a person.

One transaction removes all that this database says of who the party is, and tells svc-tickets which texts to remove by
an event. That event names texts and has none of them, so NATS and the outboxes never have what is removed.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence

import msgspec
from asyncpg import Record
from google.protobuf.message import DecodeError

from chassis.auth import identity
from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import encode
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.retention import KEPT
from makeready.events.v1.events_pb2 import Event, PersonForgotten
from makeready.occupancy.v1 import parties_pb2 as pb
from makeready.occupancy.v1 import turn_board_pb2
from svc_occupancy.messages import filled
from svc_occupancy.residencies import queries, rules
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.turns import rules as turn_rules
from svc_occupancy.turns.commands import hold_unit_of

# The ledger has the database's instants, a turn its process's: their clocks differ by less than five minutes.
REPLY_WITHIN = datetime.timedelta(minutes=10)


class PartiesService:
    """Forgets people."""

    def __init__(self, database: Database, commands: CommandRunner, outbox: Outbox) -> None:
        self.database, self.commands, self.outbox = database, commands, outbox

    async def GetParty(self, request: pb.GetPartyRequest, call: identity.Call) -> pb.GetPartyResponse:
        company_id = identity.company_id(call)
        party = await queries.party(self.database, company_id, request.party_id)
        if party is None:
            raise turn_rules.not_of_company("party")
        turn = await turn_queries.stored_turn(self.database, company_id, party["transition_id"])
        place = None if turn is None else await turn_queries.place(self.database, company_id, turn.unit_id)
        if turn is None or place is None:
            raise turn_rules.not_of_company("party")
        values: dict[str, object] = {
            **{name: party[name] for name in ("first_name", "last_name", "role", "forgotten_at")},
            **place._asdict(),
            "party_id": party["id"],
            "has_email": bool(party["email"]),
            "has_phone": bool(party["phone"]),
            "turn_id": turn.id,
            "turn_status": turn_rules.public_status(turn.status),
            "move_in_date": turn.move_in_date,
            "move_out_date": turn.move_out_date,
            "has_notice_words": queries.has_notice_words(turn),
            "same_email": None,
        }
        response = filled(pb.GetPartyResponse, values)
        same = await queries.same_email(self.database, company_id, party)
        response.same_email.extend(filled(pb.SameAddress, match._asdict()) for match in same)
        return response

    async def ForgetParty(self, request: pb.ForgetPartyRequest, call: identity.Call) -> pb.ForgetPartyResponse:
        """Again for a person who is forgotten already: removes the further texts that are marked."""
        texts = list(dict.fromkeys(request.ticket_texts))
        rules.check_ticket_texts(texts)

        async def work(command: Command) -> pb.ForgetPartyResponse:
            stored = await queries.party(command.connection, command.company_id, request.party_id)
            if stored is None:
                raise turn_rules.not_of_company("party")
            unit = await hold_unit_of(command, stored["transition_id"])
            party = await queries.locked_party(command.connection, command.company_id, request.party_id)
            turn = await turn_queries.stored_turn(command.connection, command.company_id, stored["transition_id"])
            assert party is not None and turn is not None
            response = pb.ForgetPartyResponse()
            response.forgotten_at.FromDatetime(party["forgotten_at"] or command.now)
            with_notice = request.with_notice and queries.has_notice_words(turn)
            is_first = party["forgotten_at"] is None
            if is_first:
                await queries.forget(command.connection, command.company_id, party["id"], command.now)
                await self._forget_replies(command, turn.id, turn.created_at, party["id"])
            elif not (texts or with_notice):
                return response
            if with_notice:
                await queries.forget_notice(command.connection, command.company_id, turn.id)
            after = {
                "party_id": party["id"], "turn_id": turn.id, "ticket_texts": len(texts), "notice": with_notice
            }  # fmt: skip
            await command.audit("unit.person_forgotten", "unit", unit.id, {}, after)
            command.connection.changed.add((command.company_id, "turn", turn.id))
            if texts or is_first:  # svc-tickets also keeps texts that nobody sees
                await self._publish(command, unit.id, party["id"], texts)
            return response

        return await self.commands.run(call, request, pb.ForgetPartyResponse, work)

    async def _publish(self, command: Command, unit_id: int, party_id: int, texts: list[str]) -> None:
        forgotten = PersonForgotten(
            party_id=party_id, unit_id=unit_id, ticket_texts=texts, actor=command.call.identity.actor
        )
        event = Event(company_id=command.company_id, request_id=command.call.request_id, person_forgotten=forgotten)
        event.occurred_at.FromDatetime(command.now)
        await self.outbox.add(command.connection, self.outbox.cause(event))

    async def _forget_replies(
        self, command: Command, turn_id: int, created_at: datetime.datetime, party_id: int
    ) -> None:
        """Removes the names from the stored reply of the move-in, which a replay returns for 30 days."""
        # In a sandbox the turn's instant is of a clock that was ahead of the ledger's, by no more than it is now.
        if created_at < command.real_now - KEPT - REPLY_WITHIN:
            return
        ahead = command.now - command.real_now
        window = created_at - ahead - REPLY_WITHIN, created_at + REPLY_WITHIN
        for stored in await queries.replies(command.connection, command.company_id, *window):
            reply = _without_party(stored["reply"], turn_id, party_id, is_command=stored["api_key_id"] == 0)
            if reply is not None:
                await queries.save_reply(command.connection, command.company_id, stored, reply)


def _without_party(reply: bytes, turn_id: int, party_id: int, *, is_command: bool) -> bytes | None:
    """The reply without the party; None if it has nothing of it. is_command: it is a person's, a message whose first
    field is the record's document; else it is the record."""
    try:
        # Any response with a document has it at this place.
        message = turn_board_pb2.ScheduleTurnResponse.FromString(reply) if is_command else None
        record = msgspec.json.decode(reply if message is None else message.document.json)
    except (DecodeError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not rules.without_party(record, turn_id, party_id):
        return None
    if message is None:
        return encode(record)
    message.document.json = encode(record)
    return message.SerializeToString()


async def removed_words(
    database: Database, company_id: int, entries: Sequence[Record]
) -> Mapping[int, Collection[str]]:
    """The words of notices that entries of the audit log quote, of people who were forgotten since: see `Removed`."""
    quoting = [entry for entry in entries if entry["subject"] == "turn" and _quotes(entry)]
    if not quoting:
        return {}
    forgotten = await queries.forgotten_at(database, company_id, list({entry["subject_id"] for entry in quoting}))
    return {
        entry["id"]: queries.NOTICE_WORDS
        for entry in quoting
        if entry["subject_id"] in forgotten and entry["recorded_at"] <= forgotten[entry["subject_id"]]
    }


def _quotes(entry: Record) -> bool:
    return any(f'"{name}"' in entry[side] for name in queries.NOTICE_WORDS for side in ("before", "after"))
