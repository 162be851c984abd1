"""Notices and move-ins that staff record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web
from multidict import MultiDict, MultiDictProxy

from chassis.refusals import Refusal
from console.areas.board import cards, residencies
from console.areas.board.acts import next_path
from console.areas.board.pages import HERE, UNIT, render, today
from console.areas.board.plans import DATE
from console.kit.filters import number
from console.kit.forms import Field, Form
from console.kit.visit import Visit
from makeready.occupancy.v1 import residency_commands_pb2 as pb
from makeready.occupancy.v1 import turn_board_pb2

NOTICE = "occupancy.ResidencyCommandsService/AddNotice"
MOVE_IN = "occupancy.ResidencyCommandsService/AddMoveIn"
PARTIES_MAX = 20
LONG, EXTERNAL_ID = {"maxlength": "20000"}, {"maxlength": "120"}
PARTY_NAMES = ("first_name", "last_name", "email", "phone", "role")
ROLES = (("leaseholder", "Leaseholder"), ("guarantor", "Guarantor"))


async def _unit_of(visit: Visit) -> Any:
    return await visit.call(UNIT, turn_board_pb2.GetBoardUnitRequest(unit_id=visit.number("unit_id")))


def _notice_form(notice: turn_board_pb2.NoticeToVacate) -> Form:
    message = pb.AddNoticeRequest(move_out_date=notice.move_out_date)
    for name in ("ntv_reason_code", "departure_destination_code", "notes", "external_id"):
        if notice.HasField(name):
            setattr(message, name, getattr(notice, name))
    return Form(
        message,
        [
            Field("move_out_date", "Moves out on", "The day on which the resident leaves or has left.", kind=DATE,
                  required=True),
            Field("ntv_reason_code", "Reason", "Optional, as your other systems spell it, for example NEW_JOB.",
                  more=LONG),
            Field("departure_destination_code", "Goes to", "Optional, for example OUT_OF_STATE.", more=LONG),
            Field("notes", "Notes", kind="area", more=LONG | {"rows": "4"}),
            Field("external_id", "External id", "Optional: the notice's id in your other system.", more=EXTERNAL_ID),
        ],
    )  # fmt: skip


def _notice(visit: Visit, found: Any, form: Form, status: int = 200) -> web.Response:
    return render(
        visit, "notice", status, here=HERE, unit=found.unit, residents=found.residents, form=form,
        had=found.notice.move_out_date, party_name=residencies.party_name, next=next_path(visit, ""),
    )  # fmt: skip


async def show_notice(visit: Visit) -> web.StreamResponse:
    found = await _unit_of(visit)
    return _notice(visit, found, _notice_form(found.notice))


async def add_notice(visit: Visit) -> web.StreamResponse:
    found = await _unit_of(visit)
    form = _notice_form(found.notice)
    if form.read(visit.form):
        request = form.message
        request.unit_id = found.unit.unit_id
        request.expected_move_out_date = visit.form.get("seen_move_out_date", "")
        if turn_id := number(visit.form.get("turn_id", "")):
            request.expected_turn_id = turn_id
        if await visit.send(NOTICE, form):
            left = cards.date_of(request.move_out_date)
            words = today(visit).words(left) if left else request.move_out_date
            said = f"The notice is recorded: the resident of {found.unit.name} leaves on {words}."
            return visit.redirect(next_path(visit, f"/turns/{found.unit.turn_id}"), said)
    return _notice(visit, found, form, 422)


def _move_in_form() -> Form:
    return Form(
        pb.AddMoveInRequest(),
        [
            Field("move_in_date", "Moves in on", kind=DATE, required=True),
            Field("lease_start_date", "Lease begins on", kind=DATE, required=True),
            Field("lease_end_date", "Lease ends on (optional)", kind=DATE),
            Field("external_id", "External id", "Optional: the residency's id in your other system.", more=EXTERNAL_ID),
        ],
    )  # fmt: skip


def _party_form(place: int) -> Form:
    """place: from 0. The first party is the leaseholder without whom there is no lease."""
    is_first = place == 0
    return Form(
        pb.NewParty(role="leaseholder"),
        [
            Field("first_name", "First name", required=is_first, more={"maxlength": "80"}),
            Field("last_name", "Last name", required=is_first, more={"maxlength": "80"}),
            Field("email", "E-mail", more={"maxlength": "150"}),
            Field("phone", "Phone", kind="tel", more={"maxlength": "20"}),
            Field("role", "Role", kind="select", choices=ROLES, required=True),
        ],
    )  # fmt: skip


def _parties_of(sent: MultiDictProxy[str]) -> list[tuple[Form, bool]]:
    """The parties of the form that was sent, each with whether it could be read. Blank ones are left out, except the
    first."""
    columns = {name: sent.getall(name, []) for name in PARTY_NAMES}
    rows = min(max(map(len, columns.values())), PARTIES_MAX)
    found: list[tuple[Form, bool]] = []
    for row in range(rows):
        texts = {name: column[row] if row < len(column) else "" for name, column in columns.items()}
        if row and not any(text.strip() for name, text in texts.items() if name != "role"):
            continue
        form = _party_form(len(found))
        found.append((form, form.read(MultiDictProxy(MultiDict(texts)))))
    return found or [(_party_form(0), False)]


def _move_in(visit: Visit, found: Any, form: Form, parties: Sequence[Form], status: int = 200) -> web.Response:
    return render(
        visit, "move_in", status, here=HERE, unit=found.unit, residents=found.residents, form=form, parties=parties,
        more=len(parties) < PARTIES_MAX, party_name=residencies.party_name, next=next_path(visit, ""),
        stays=bool(found.unit.turn_id) and not found.unit.move_out_date,
    )  # fmt: skip


async def show_move_in(visit: Visit) -> web.StreamResponse:
    return _move_in(visit, await _unit_of(visit), _move_in_form(), [_party_form(0)])


async def add_move_in(visit: Visit) -> web.StreamResponse:
    found = await _unit_of(visit)
    form, parties = _move_in_form(), _parties_of(visit.form)
    forms = [party for party, _ in parties]
    is_read = form.read(visit.form)
    if "more" in visit.form:  # the button that asks for the inputs of another party
        for one in (form, *forms):
            one.errors.clear()
        return _move_in(visit, found, form, [*forms, _party_form(len(forms))][:PARTIES_MAX])
    if is_read and all(good for _, good in parties):
        request = form.message
        request.unit_id, request.idempotency_key = found.unit.unit_id, visit.act
        request.parties.extend(party.message for party in forms)
        if turn_id := number(visit.form.get("turn_id", "")):
            request.predecessor_transition_id = turn_id
        try:
            document = (await visit.call(MOVE_IN, request)).document
        except Refusal as refusal:
            _refuse(refusal, form, forms)
        else:
            path = f"/turns/{document.entity_id}" if document.entity_id else f"/board/units/{found.unit.unit_id}"
            said = f"The move-in to {found.unit.name} is recorded. The unit is Occupied."
            return visit.redirect(next_path(visit, path), said)
    return _move_in(visit, found, form, forms, 422)


def _refuse(refusal: Refusal, form: Form, parties: Sequence[Form]) -> None:
    """Shows a refusal beside its field: `parties[1].email` is the e-mail of the second party."""
    place, _, name = refusal.field.removeprefix("parties[").partition("].")
    if name and place.isdigit() and int(place) < len(parties):
        party = parties[int(place)]
        party.refuse(Refusal(refusal.status, refusal.code, refusal.message.replace(f"{refusal.field} ", "It "), name))
    else:
        form.refuse(refusal)
