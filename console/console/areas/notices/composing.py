"""Composing a notice: its text beside what residents read and what subscribers get; then changed, printed, published
once, or discarded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from multidict import MultiDict, MultiDictProxy

from chassis.refusals import Refusal
from console.areas.notices.pages import EVENT, GET, HERE, PATH, envelope, notice_page
from console.kit import filters, pickers
from console.kit.calls import Panel
from console.kit.context import PageContext
from console.kit.forms import FIND, Edit, Field, Form
from console.kit.panels import include
from console.kit.sending import send
from console.kit.texts import _
from makeready.catalog.v1 import notices_pb2 as pb
from makeready.catalog.v1 import place_search_pb2 as places_pb

COMPOSE = "catalog.NoticesService/ComposeNotice"
UPDATE = "catalog.NoticesService/UpdateNotice"
PUBLISH = "catalog.NoticesService/PublishNotice"
DISCARD = "catalog.NoticesService/DiscardNotice"
PREVIEW = "catalog.NoticesService/PreviewNotice"
UNITS = "catalog.PlaceSearchService/SearchUnits"
COMPOSES = (PREVIEW, UNITS)

LINE_MAX, BODY_MAX, WORDS_MAX = 200, 20_000, 100
UNITS_SHOWN = 300
WHOLE, SOME, AREA = "whole", "units", "area"
AUDIENCES = ((WHOLE, _("Whole property")), (SOME, _("Selected units")), (AREA, _("Part of the property")))


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a notice is for: `kind` is one of AUDIENCES."""

    kind: str = WHOLE
    unit_ids: tuple[int, ...] = ()
    area: str = ""

    @property
    def text(self) -> str:
        """One text for each audience: a form has it, so that a change by another person is noticed."""
        return {WHOLE: WHOLE, SOME: " ".join(map(str, self.unit_ids)), AREA: f"{AREA} {self.area}"}[self.kind]

    @property
    def error(self) -> str:
        if self.kind == SOME and not self.unit_ids:
            return _("Choose units.")
        return _("Enter which part of the property.") if self.kind == AREA and not self.area else ""

    def write(self, request: Any) -> None:
        """Writes the audience into a request that composes, changes or previews."""
        if self.kind == SOME:
            request.unit_id.extend(self.unit_ids)
        elif self.kind == AREA and self.area:
            request.area = self.area
        elif "whole_property" in request.DESCRIPTOR.fields_by_name:
            request.whole_property = True


def of_notice(notice: pb.Notice) -> Audience:
    if notice.unit_id:
        return Audience(SOME, tuple(sorted(notice.unit_id)))
    return Audience(AREA, area=notice.area) if notice.HasField("area") else Audience()


def sent(context: PageContext) -> Audience:
    kind = context.form.get("for", WHOLE)
    ids = {number for text in context.form.getall("unit_id", []) if (number := filters.number(text))}
    area = context.form.get("area", "").strip()[:LINE_MAX]
    return Audience(kind if kind in dict(AUDIENCES) else WHOLE, tuple(sorted(ids)), area)


def _fields() -> Sequence[Field]:
    line = {"maxlength": str(LINE_MAX)}
    return (
        Field("subject", _("Subject"), _("For example “Water shutoff on Thursday”."), required=True, more=line),
        Field("when", _("When"), _("For example “Thursday, November 26, 9 am to noon”."), required=True, more=line),
        Field("body", _("Message"), _("What residents need to know and do."), "area", required=True,
              more={"rows": "8", "maxlength": str(BODY_MAX)}),
    )  # fmt: skip


@dataclass
class Composer:
    """The state of the composer's page. notice_id: of the notice that is being changed; 0 for a new one."""

    form: Form
    audience: Audience
    property_id: int
    notice_id: int = 0
    seen: str = ""
    """The audience that the person saw, as `Audience.text`; "" for a new notice."""

    @property
    def path(self) -> str:
        return f"{PATH}/{self.notice_id}/edit" if self.notice_id else f"{PATH}/new"


async def show_compose(context: PageContext) -> web.StreamResponse:
    """First the property, then the composer."""
    property_id = filters.number(context.query.get("property_id", ""))
    if not property_id or FIND in context.query:
        picked = [Field("property_id", _("Property"), _("The notice is for its residents."), "picker", required=True)]
        form = Form(pb.ComposeNoticeRequest(), picked)
        if FIND in context.query:
            form.read(MultiDictProxy(MultiDict(context.request.query)))
        return context.render("notices/property.html", here=HERE, form=await pickers.fill(context, form))
    units = [number for text in context.request.query.getall("unit_id", []) if (number := filters.number(text))]
    audience = Audience(SOME, tuple(sorted(set(units)))) if units else Audience()
    form = Form(pb.ComposeNoticeRequest(property_id=property_id), _fields())
    return await _composer(context, Composer(form, audience, property_id))


async def compose(context: PageContext) -> web.StreamResponse:
    """Saves the draft; or only shows what it would be, for the button and the script that ask for that."""
    property_id = filters.number(context.form.get("property_id", ""))
    if not property_id:
        return context.redirect(f"{PATH}/new")
    form = Form(pb.ComposeNoticeRequest(property_id=property_id), _fields())
    composer = Composer(form, sent(context), property_id)
    if _is_preview(context):
        return await _preview_alone(context, composer)
    if form.read(context.form) & _fits(composer):
        composer.audience.write(form.message)
        if composed := await send(context, COMPOSE, form):
            return _saved(context, composed.notice.notice_id)
    return await _composer(context, composer, 422)


async def show_edit(context: PageContext) -> web.StreamResponse:
    notice = (await context.rpcs.call(GET, pb.GetNoticeRequest(notice_id=context.number("notice_id")))).notice
    if notice.HasField("published_at"):
        return context.redirect(
            f"{PATH}/{notice.notice_id}", _("This notice is published and can no longer be changed.")
        )
    return await _composer(context, _editor(notice))


def _editor(notice: pb.Notice) -> Composer:
    request = pb.UpdateNoticeRequest(
        notice_id=notice.notice_id, subject=notice.subject, when=notice.when, body=notice.body
    )
    form, audience = Edit(request, _fields()), of_notice(notice)
    return Composer(form, audience, notice.property_id, notice.notice_id, audience.text)


async def edit(context: PageContext) -> web.StreamResponse:
    notice = (await context.rpcs.call(GET, pb.GetNoticeRequest(notice_id=context.number("notice_id")))).notice
    composer = _editor(notice)
    now, composer.audience = composer.audience, sent(context)
    if _is_preview(context):
        return await _preview_alone(context, composer)
    form = composer.form
    assert isinstance(form, Edit)
    seen = context.form.get("seen.for", now.text)
    is_changed = composer.audience.text != seen
    if not is_changed:
        composer.audience = now
    fits = form.read(context.form) & _fits(composer)
    if is_changed and seen != now.text != composer.audience.text:
        form.errors["for"] = _("Meanwhile someone else changed the recipients. Submit again to replace that.")
        fits = False
    if notice.HasField("published_at"):
        form.errors, form.fault = (
            {},
            _("Meanwhile the notice was published and can no longer be changed. Write a new one."),
        )
    elif fits:
        if form.is_done and (not is_changed or composer.audience.text == now.text):
            return _saved(context, notice.notice_id)
        form.message.as_of.CopyFrom(notice.updated_at)
        if is_changed:
            composer.audience.write(form.message)
        if await send(context, UPDATE, form):
            return _saved(context, notice.notice_id)
    return await _composer(context, composer, 422)


def _is_preview(context: PageContext) -> bool:
    return context.form.get("then") == "preview"


def _fits(composer: Composer) -> bool:
    if composer.audience.error:
        composer.form.errors["for"] = composer.audience.error
    return not composer.audience.error


def _saved(context: PageContext, notice_id: int) -> web.Response:
    if context.form.get("then") == "publish":
        return context.redirect(f"{PATH}/{notice_id}/publish")
    return context.redirect(f"{PATH}/{notice_id}", _("Draft saved. It is not published yet."))


async def _preview_alone(context: PageContext, composer: Composer) -> web.Response:
    """The composer with what was typed, without an action and without errors about what is missing."""
    composer.form.read(context.form)
    composer.form.errors = {}
    return await _composer(context, composer)


async def _composer(context: PageContext, composer: Composer, status: int = 200) -> web.Response:
    request = pb.PreviewNoticeRequest(property_id=composer.property_id)
    if composer.notice_id:
        request.notice_id = composer.notice_id
    composer.audience.write(request)
    for name in ("subject", "when", "body"):
        setattr(request, name, composer.form.values[name].replace("\0", ""))
    try:
        preview = await context.rpcs.call(PREVIEW, request)
    except Refusal as refusal:
        if refusal.status == 404 and not composer.audience.unit_ids:
            raise
        if not composer.form.has_errors:
            composer.form.refuse(refusal)
        preview = await context.rpcs.call(PREVIEW, pb.PreviewNoticeRequest(property_id=composer.property_id))
    words = context.form.get("words", "").replace("\0", "").strip()[:WORDS_MAX]
    units_request = places_pb.SearchUnitsRequest(property_id=composer.property_id, limit=UNITS_SHOWN, words=words)
    units = await context.rpcs.panel(UNITS, units_request)
    return context.render(
        "notices/composer.html", status, here=HERE, composer=composer, form=composer.form, preview=preview.notice,
        chosen=preview.units, groups=_groups(units, preview.units),
        has_more=units.ok and (units.HasField("next_after_id") or bool(words)), words=words, found_units=units,
        data=envelope(context, preview.event_data, is_new=not composer.notice_id), audiences=AUDIENCES,
    )  # fmt: skip


def _groups(
    units: Panel[places_pb.SearchUnitsResponse], chosen: Sequence[pb.NoticeUnit]
) -> Mapping[str, list[tuple[int, str, bool]]]:
    """Id, name and whether it is chosen, by building and floor; first those chosen that the list does not have."""
    ids = {unit.unit_id for unit in chosen}
    listed = {unit.unit_id for unit in units.units} if units.ok else set()
    groups: dict[str, list[tuple[int, str, bool]]] = {}
    for unit in chosen:
        if unit.unit_id not in listed:
            groups.setdefault("Chosen", []).append((unit.unit_id, unit.name, True))
    for unit in units.units if units.ok else ():
        name = ", ".join(part for part in (unit.building.name, unit.floor.name) if part)
        groups.setdefault(name, []).append((unit.unit_id, unit.name, unit.unit_id in ids))
    return groups


# Publish, discard, print


async def show_publish(context: PageContext) -> web.StreamResponse:
    return await _publish(context)


async def _publish(context: PageContext, status: int = 200, error: str = "") -> web.Response:
    response = await context.rpcs.call(GET, pb.GetNoticeRequest(notice_id=context.number("notice_id")))
    notice = response.notice
    if notice.HasField("published_at"):
        return context.redirect(f"{PATH}/{notice.notice_id}", _("Notice published."))
    endpoints = await include(context, "/webhooks/panel", event=EVENT)
    return context.render(
        "notices/publish.html", status, here=HERE, notice=notice, data=envelope(context, response.event_data),
        endpoints=endpoints, error=error, as_of=notice.updated_at.ToJsonString(), count_of_units=len(response.units),
    )  # fmt: skip


async def publish(context: PageContext) -> web.StreamResponse:
    """Publishes what the person has read, and nothing that another one has changed since."""
    request = pb.PublishNoticeRequest(notice_id=context.number("notice_id"), idempotency_key=context.form_token)
    try:
        request.as_of.FromJsonString(context.form.get("as_of", "")[:40])
    except ValueError:
        return await _publish(context, 422, _("Review the notice, then publish it."))
    try:
        await context.rpcs.call(PUBLISH, request)
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        is_changed = refusal.field == "as_of"
        message = _("Meanwhile someone else changed it. Review it again, then publish.")
        return await _publish(context, 422, message if is_changed else refusal.message)
    return context.redirect(f"{PATH}/{request.notice_id}", "Published. Integrations get it with the next sweep.")


async def discard(context: PageContext) -> web.StreamResponse:
    notice_id = context.number("notice_id")
    try:
        done = await context.rpcs.call(
            DISCARD, pb.DiscardNoticeRequest(notice_id=notice_id, idempotency_key=context.form_token)
        )
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return await notice_page(context, refusal.status, refusal.message)
    return context.redirect(PATH, _("Draft “%(subject)s” discarded.") % {"subject": done.notice.subject})


async def show_print(context: PageContext) -> web.StreamResponse:
    """A sheet for the lobby."""
    response = await context.rpcs.call(GET, pb.GetNoticeRequest(notice_id=context.number("notice_id")))
    names = [unit.name for unit in response.units]
    return context.render("notices/print.html", here=HERE, notice=response.notice, names=names)
