"""Notices and move-ins that staff record, now or ahead of time, and another date of a move-in."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from aiohttp import web
from multidict import MultiDict, MultiDictProxy

from chassis.refusals import Refusal
from console.areas.board import residencies
from console.areas.board.endings import turn_of
from console.areas.board.pages import HERE, UNIT, render, today
from console.areas.board.plans import DATE
from console.areas.board.rows import (
    PLANNED,
    Effect,
    Stay,
    UnitResponse,
    can_be_let,
    effect_of_change,
    effect_of_move_in,
    effect_of_notice,
    last_of,
    left_over,
    notice_of,
    open_tasks,
    row_of,
    stay_of,
)
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.forms import Field, Form
from console.kit.records import Record
from console.kit.sending import send
from console.kit.texts import _
from makeready.occupancy.v1 import residency_commands_pb2 as pb
from makeready.occupancy.v1 import turn_board_pb2

NOTICE = "occupancy.ResidencyCommandsService/AddNotice"
MOVE_IN = "occupancy.ResidencyCommandsService/AddMoveIn"
CHANGE = "occupancy.ResidencyCommandsService/ChangeMoveIn"
PARTIES_MAX = 20
LONG, EXTERNAL_ID = {"maxlength": "20000"}, {"maxlength": "120"}
PARTY_NAMES = ("first_name", "last_name", "email", "phone", "role")
ROLES = (("leaseholder", "Leaseholder"), ("guarantor", "Guarantor"))


async def _unit_of(context: PageContext) -> UnitResponse:
    request = turn_board_pb2.GetBoardUnitRequest(unit_id=context.number("unit_id"))
    response: UnitResponse = await context.rpcs.call(UNIT, request)
    return response


def _notice_form(notice: turn_board_pb2.NoticeToVacate) -> Form:
    message = pb.AddNoticeRequest(move_out_date=notice.move_out_date)
    for name in ("ntv_reason_code", "departure_destination_code", "notes", "external_id"):
        if notice.HasField(name):
            setattr(message, name, getattr(notice, name))
    return Form(
        message,
        [
            Field("move_out_date", _("Move-out date"), _("The day the resident moves out or moved out."), kind=DATE,
                  required=True),
            Field("ntv_reason_code", _("Reason"), _("Optional reason code, for example NEW_JOB."),
                  more=LONG),
            Field("departure_destination_code", _("Moving to"), _("Optional, for example OUT_OF_STATE."), more=LONG),
            Field("notes", _("Notes"), kind="area", more=LONG | {"rows": "4"}),
            Field("external_id", _("External ID"), _("Optional: its ID in another system."), more=EXTERNAL_ID),
        ],
    )  # fmt: skip


def _notice(
    context: PageContext, response: UnitResponse, form: Form, status: int = 200, *, asks: bool = False
) -> web.Response:
    """asks: whether the form comes back because its person has to look at what it does."""
    days, leaves = today(context), readable_date(form.values["move_out_date"])
    return render(
        context, "notice", status, here=HERE, unit=response.unit, residents=response.residents, form=form,
        row=row_of(response), stay=notice_of(response, leaves, days.today),
        effect=effect_of_notice(response, leaves, days), had=response.notice.move_out_date,
        party_name=residencies.party_name, next=context.next_path(""), asks=asks,
    )  # fmt: skip


def readable_date(text: str) -> datetime.date | None:
    """The date of an input; None while it is none."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


async def show_notice(context: PageContext) -> web.StreamResponse:
    response = await _unit_of(context)
    form = _notice_form(response.notice)
    form.preset(context.query, "move_out_date")
    return _notice(context, response, form)


async def add_notice(context: PageContext) -> web.StreamResponse:
    response = await _unit_of(context)
    form = _notice_form(response.notice)
    if form.read(context.form):
        request, days = form.message, today(context)
        leaves = readable_date(request.move_out_date)
        effect = effect_of_notice(response, leaves, days)
        if not effect.is_seen(context.form):
            return _notice(context, response, form, 422, asks=True)
        request.unit_id = response.unit.unit_id
        request.expected_move_out_date = context.form.get("seen_move_out_date", "")
        turn_id = number(effect.kind) or 0
        if turn_id:
            request.expected_turn_id = turn_id
        if await send(context, NOTICE, form):
            words = days.words(leaves) if leaves else request.move_out_date
            is_current = turn_id == response.unit.turn_id
            recorded = (
                _("Notice recorded: %(unit)s, moving out %(day)s.")
                if is_current
                else _("Notice of the next resident recorded: %(unit)s, moving out %(day)s.")
            )
            message = recorded % {"unit": response.unit.name, "day": words}
            return context.redirect(context.next_path(f"/turns/{turn_id}"), message)
    return _notice(context, response, form, 422)


def _move_in_form() -> Form:
    return Form(
        pb.AddMoveInRequest(),
        [
            Field("move_in_date", _("Move-in date"), kind=DATE, required=True),
            Field("lease_start_date", _("Lease start"), kind=DATE, required=True),
            Field("lease_end_date", _("Lease end (optional)"), kind=DATE),
            Field("external_id", _("External ID"), _("Optional: its ID in another system."), more=EXTERNAL_ID),
        ],
    )  # fmt: skip


def _party_form(index: int) -> Form:
    """index: from 0. The first party is the leaseholder without whom there is no lease."""
    is_first = index == 0
    return Form(
        pb.NewParty(role="leaseholder"),
        [
            Field("first_name", _("First name"), required=is_first, more={"maxlength": "80"}),
            Field("last_name", _("Last name"), required=is_first, more={"maxlength": "80"}),
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
    parties: list[tuple[Form, bool]] = []
    for row in range(rows):
        texts = {name: column[row] if row < len(column) else "" for name, column in columns.items()}
        if row and not any(text.strip() for name, text in texts.items() if name != "role"):
            continue
        form = _party_form(len(parties))
        parties.append((form, form.read(MultiDictProxy(MultiDict(texts)))))
    return parties or [(_party_form(0), False)]


def _move_in(
    context: PageContext,
    response: UnitResponse,
    form: Form,
    parties: Sequence[Form],
    status: int = 200,
    *,
    asks: bool = False,
) -> web.Response:
    """asks: as of `_notice`."""
    last = last_of(response)
    return render(
        context, "move_in", status, here=HERE, unit=response.unit, residents=response.residents, form=form,
        parties=parties, more=len(parties) < PARTIES_MAX, party_name=residencies.party_name,
        next=context.next_path(""), stays=not can_be_let(response), last=last, row=row_of(response),
        left_over=left_over(response),
        effect=effect_of_move_in(response, readable_date(form.values["move_in_date"]), today(context)),
        to_do=open_tasks(response, last.turn_id) if last else [], date=readable_date(form.values["move_in_date"]),
        asks=asks,
    )  # fmt: skip


async def show_move_in(context: PageContext) -> web.StreamResponse:
    response, form = await _unit_of(context), _move_in_form()
    form.preset(context.query, "move_in_date")
    return _move_in(context, response, form, [_party_form(0)])


async def add_move_in(context: PageContext) -> web.StreamResponse:
    response = await _unit_of(context)
    form, parties = _move_in_form(), _parties_of(context.form)
    forms = [party for party, _ in parties]
    is_read = form.read(context.form)
    if "more" in context.form:  # the button that asks for the inputs of another party
        for sent_form in (form, *forms):
            sent_form.errors.clear()
        return _move_in(context, response, form, [*forms, _party_form(len(forms))][:PARTIES_MAX])
    if is_read and all(good for _, good in parties):
        request, days = form.message, today(context)
        came = readable_date(request.move_in_date)
        effect, last = effect_of_move_in(response, came, days), last_of(response)
        turn_id = number(context.form.get("turn_id", ""))
        # Behind another turn than the person saw, it is this form sent twice, or the service says what has changed.
        if turn_id == (last.turn_id if last else None) and not effect.is_seen(context.form):
            return _move_in(context, response, form, forms, 422, asks=True)
        request.unit_id, request.idempotency_key = response.unit.unit_id, context.form_token
        request.parties.extend(party.message for party in forms)
        if turn_id:
            request.predecessor_transition_id = turn_id
        try:
            document = (await context.rpcs.call(MOVE_IN, request)).document
        except Refusal as refusal:
            _refuse(refusal, form, forms)
        else:
            path = f"/turns/{document.entity_id}" if document.entity_id else f"/board/units/{response.unit.unit_id}"
            message = _("Move-in to %(unit)s recorded. The unit is Occupied.") % {"unit": response.unit.name}
            if effect.kind == PLANNED and came:
                message = _("Move-in to %(unit)s scheduled for %(day)s. Until then the unit does not change.") % {
                    "unit": response.unit.name, "day": days.words(came),
                }  # fmt: skip
            return context.redirect(context.next_path(path), message)
    return _move_in(context, response, form, forms, 422)


# The move-in date of a turn that is planned, or that began by itself


def _change_form(stay: Stay | None, turn_id: int) -> Form:
    message = pb.ChangeMoveInRequest(turn_id=turn_id)
    if stay is not None and stay.came is not None:
        message.move_in_date = stay.came.isoformat()
    return Form(message, [Field("move_in_date", _("Move-in date"), kind=DATE, required=True)])


def _change(
    context: PageContext, turn: Record, response: UnitResponse, form: Form, status: int = 200, *, asks: bool = False
) -> web.Response:
    """asks: as of `_notice`."""
    stay, before, behind = stay_of(response, turn["entity_id"])
    came = readable_date(form.values["move_in_date"])
    return render(
        context, "change_move_in", status, here=HERE, turn=turn, unit=response.unit, form=form, stay=stay,
        before=before, date=came,
        effect=effect_of_change(stay, before, behind, came, today(context)) if stay else Effect(""),
        party_name=residencies.party_name, next=context.next_path(""), asks=asks,
        is_as_it_was=stay is not None and came == stay.came,
    )  # fmt: skip


async def show_change(context: PageContext) -> web.StreamResponse:
    turn, response = await turn_of(context)
    form = _change_form(stay_of(response, turn["entity_id"])[0], turn["entity_id"])
    form.preset(context.query, "move_in_date")
    return _change(context, turn, response, form)


async def change_move_in(context: PageContext) -> web.StreamResponse:
    turn, response = await turn_of(context)
    stay, before, behind = stay_of(response, turn["entity_id"])
    form, days = _change_form(stay, turn["entity_id"]), today(context)
    if form.read(context.form) and stay is not None:
        came = readable_date(form.message.move_in_date)
        if not effect_of_change(stay, before, behind, came, days).is_seen(context.form):
            return _change(context, turn, response, form, 422, asks=True)
        form.message.expected_move_in_date = context.form.get("seen_move_in_date", "")
        if await send(context, CHANGE, form):
            words = days.words(came) if came else form.message.move_in_date
            message = _("%(unit)s: move-in date set to %(day)s.") % {"unit": turn["unit"]["name"], "day": words}
            return context.redirect(context.next_path(f"/turns/{turn['entity_id']}"), message)
    return _change(context, turn, response, form, 422)


def _refuse(refusal: Refusal, form: Form, parties: Sequence[Form]) -> None:
    """Shows a refusal beside its field: `parties[1].email` is the e-mail of the second party."""
    index, _, name = refusal.field.removeprefix("parties[").partition("].")
    if name and index.isdigit() and int(index) < len(parties):
        party = parties[int(index)]
        party.refuse(Refusal(refusal.status, refusal.code, refusal.message.replace(f"{refusal.field} ", "It "), name))
    else:
        form.refuse(refusal)
