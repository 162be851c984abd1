"""Bulk acts: one act on several records that a person has ticked in a list, and its undo.

A list of `Records` has a checkbox a row and the bar of the macro `lists.bulk_bar`. A button of the bar leads to the
act's page, `/tickets/bulk?do=assign&ticket=1&ticket=2`, which names the records and has the act's form. Each record is
a write of its own: what is refused is listed with the reason, and stays selected. A person may undo an act for a
minute. `console.bulk_acts` has what the records were before; what has changed since is left, and named.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from chassis.refusals import Refusal, Unavailable
from console.bulk_acts import BulkAct
from console.kit import forms, links, pickers
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.flash import Undo
from console.kit.forms import Field, Form
from console.kit.texts import _, ngettext

RECORDS_MAX, AT_ONCE = 50, 8
SEEN = "seen."
"""A hidden field of each record: the values that the person saw, as JSON."""
TEXT_CHARACTERS_MAX = 200
_LISTED = (400, 404, 409, 422)
"""Refusals that concern one record; another one concerns the whole act."""

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One ticked record. values: of the fields that acts change, None for an empty one."""

    id: int
    title: str
    detail: str
    path: str
    values: Values


def _nothing(_value: Any) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Act:
    """One act. The request has the record's id, the fields, `from_FIELD` for what the person saw, and perhaps `clear`.

    words: of its button in the bar; title and done: of so many records. changes: the fields of a record that it may
    change. fault: what a form lacks; lasting: why a record with these values cannot be made so again, for the undo.
    """

    name: str
    icon: str
    words: str
    title: Callable[[int], str]
    done: Callable[[int], str]
    rpc: str
    request: type[Message]
    fields: Sequence[Field]
    changes: Sequence[str]
    fault: Callable[[Form], str] = _nothing
    lasting: Callable[[Values], str] = _nothing


@dataclass
class _Chosen:
    """What an act's page shows. errors: why a record was refused; token: of the form, if it is to be sent again."""

    act: Act
    records: Sequence[Record]
    seen: Mapping[int, Values]
    errors: dict[int, str] = field(default_factory=dict)
    token: str = ""
    undo: Undo | None = None

    def written(self, record_id: int) -> str:
        """What the person saw, as the hidden field has it."""
        return json.dumps(self.seen[record_id], separators=(",", ":"))


class Records:
    """The bulk acts of a list's records."""

    def __init__(
        self,
        here: str,
        list_path: str,
        tick: str,
        id_field: str,
        load: Callable[[PageContext, Sequence[int]], Awaitable[Sequence[Record]]],
        acts: Iterable[Act],
    ) -> None:
        """here: the menu's word; tick: the name of the rows' checkboxes; load: the records with these ids, without
        those that the company lacks."""
        self.here, self.list_path, self.path, self.tick = here, list_path, f"{list_path}/bulk", tick
        self.undo_path = f"{self.path}/undo"
        self._id_field, self._load = id_field, load
        self.acts = {act.name: act for act in acts}

    @property
    def rpcs(self) -> Sequence[str]:
        """Those of the acts."""
        return sorted({act.rpc for act in self.acts.values()})

    async def show(self, context: PageContext) -> web.StreamResponse:
        """The page of an act, for the records that are ticked."""
        act = self.acts.get(context.query.get("do", "")) or next(iter(self.acts.values()))
        records = await self.ticked(context, context.request.query.getall(self.tick, []))
        chosen = _Chosen(act, records, {record.id: _of(act, record) for record in records})
        return await self._page(context, chosen, self._form(act))

    async def ticked(self, context: PageContext, texts: Iterable[str]) -> Sequence[Record]:
        """The records with these ids, RECORDS_MAX at most."""
        ids = list(dict.fromkeys(record_id for text in texts if (record_id := number(text))))[:RECORDS_MAX]
        return await self._load(context, ids) if ids else []

    async def run(self, context: PageContext) -> web.StreamResponse:
        """Does the act on each record. The same form again finishes what is left to do."""
        act = self.acts.get(context.form.get("do", ""))
        if act is None:
            raise web.HTTPNotFound
        records = await self.ticked(context, context.form.getall(self.tick, []))
        chosen = _Chosen(act, records, {record.id: _seen(context, act, record) for record in records})
        form = self._form(act)
        if not form.read(context.form):
            return await self._page(context, chosen, form, form.status)
        form.fault = act.fault(form) if records else _("Select at least one.")
        if form.fault:
            return await self._page(context, chosen, form, 422)
        person = context.session.person
        started = await context.site.bulk_acts.begin(
            person.company_id, person.actor, self.path, context.form_token, act.name, chosen.seen
        )
        requests = {
            record.id: self._request(act, form.message, record.id, chosen.seen[record.id]) for record in records
        }
        refusals = await self._write(context, act, requests, context.form_token)
        changed = _changed(act, form.message)
        after = dict(started.after) | {record.id: changed for record in records if record.id not in refusals}
        await context.site.bulk_acts.end(started.id, after)
        back, undo = self._back(context), Undo(self.undo_path, started.id, self._back(context)) if after else None
        if not refusals:
            return context.redirect(back, act.done(len(after)), undo=undo)
        return await self._refused(context, chosen, form, refusals, undo, len(after))

    async def _refused(
        self,
        context: PageContext,
        chosen: _Chosen,
        form: Form,
        refusals: Mapping[int, Refusal | Unavailable],
        undo: Undo | None,
        done: int,
    ) -> web.StreamResponse:
        """The act's page with what did not go. What a form says wrong stands beside its field."""
        first = next(iter(refusals.values()))
        is_of_form = isinstance(first, Refusal) and first.field in form.fields and not done
        if is_of_form and len({str(refusal) for refusal in refusals.values()}) == 1:
            assert isinstance(first, Refusal)
            form.refuse(first)
            return await self._page(context, chosen, form, 422)
        is_unknown = any(isinstance(refusal, Unavailable) for refusal in refusals.values())
        # Whether a write that had no answer was done, its service knows by the key: the same form says what was.
        records: Sequence[Record] = [record for record in chosen.records if record.id in refusals]
        if not is_unknown:
            records = await self._load(context, [record.id for record in records])
        act, seen = chosen.act, chosen.seen
        missing = _Chosen(
            act, records, seen if is_unknown else {record.id: _of(act, record) for record in records},
            {record_id: _why(refusal) for record_id, refusal in refusals.items()},
            context.form_token if is_unknown else "", undo,
        )  # fmt: skip
        form.fault = _("%(done)s of %(all)s done. The others are listed with the reason.") % {
            "done": f"{done:,}", "all": f"{done + len(refusals):,}"
        }  # fmt: skip
        return await self._page(context, missing, form, 422)

    async def undo(self, context: PageContext) -> web.StreamResponse:
        """Makes the records what they were, except those that have changed since."""
        person, back = context.session.person, self._back(context)
        act_id = number(context.form.get("bulk_act", "")) or 0
        done = await context.site.bulk_acts.undo(person.company_id, person.actor, self.path, act_id)
        if done is None or done.name not in self.acts:
            return context.redirect(back, _("It is too late to undo that. Nothing was changed."))
        act = self.acts[done.name]
        requests, refusals = self._inverse(act, done)
        refusals |= await self._write(context, act, requests, f"{done.act}.undo")
        undone = len(requests) - len(refusals.keys() & requests.keys())
        words = ngettext("Undone: %(count)s is as before.", "Undone: %(count)s are as before.", undone)
        words %= {"count": f"{undone:,}"}
        if not refusals:
            return context.redirect(back, words)
        records = await self._load(context, list(refusals))
        errors = {record_id: _why(refusal) for record_id, refusal in refusals.items()}
        return context.render(
            "bulk_undone.html", here=self.here, words=words, records=records, errors=errors, back=back, of=self
        )

    def _inverse(self, act: Act, done: BulkAct) -> tuple[dict[int, Message], dict[int, Refusal | Unavailable]]:
        """The requests that make records what they were, and why some cannot be made so."""
        requests: dict[int, Message] = {}
        lasting: dict[int, Refusal | Unavailable] = {}
        for record_id, after in done.after.items():
            before = done.before.get(record_id, after)
            different = {name: before[name] for name in after if name in before and before[name] != after[name]}
            if not different:
                continue
            if reason := act.lasting(different):
                lasting[record_id] = Refusal(422, "invalid_request", reason)
                continue
            request = act.request()
            forms.filled(request, different)
            cleared = [name for name, value in different.items() if value is None]
            if cleared:
                request.clear.extend(cleared)  # type: ignore[attr-defined]
            requests[record_id] = self._request(act, request, record_id, {name: after[name] for name in different})
        return requests, lasting

    async def _write(
        self, context: PageContext, act: Act, requests: Mapping[int, Any], key: str
    ) -> dict[int, Refusal | Unavailable]:
        """Sends the requests, AT_ONCE at once; returns what was not done."""
        refusals: dict[int, Refusal | Unavailable] = {}

        async def write(record_id: int) -> None:
            requests[record_id].idempotency_key = f"{key}.{record_id}"
            try:
                await context.rpcs.call(act.rpc, requests[record_id])
            except Refusal as refusal:
                if refusal.status not in _LISTED:
                    raise
                refusals[record_id] = refusal
            except Unavailable as fault:
                refusals[record_id] = fault

        ids = list(requests)
        for start in range(0, len(ids), AT_ONCE):
            await together(*(write(record_id) for record_id in ids[start : start + AT_ONCE]))
        return refusals

    def _request(self, act: Act, message: Message, record_id: int, seen: Values) -> Message:
        """The act's request for one record."""
        request = act.request()
        request.CopyFrom(message)
        setattr(request, self._id_field, record_id)
        fields = request.DESCRIPTOR.fields_by_name
        for name, value in seen.items():
            if f"from_{name}" in fields:
                is_number = fields[f"from_{name}"].type == FieldDescriptor.TYPE_INT64
                forms.filled(request, {f"from_{name}": value or 0 if is_number else value})
        return request

    def _form(self, act: Act) -> Form:
        return Form(act.request(), act.fields)

    def _back(self, context: PageContext) -> str:
        path = links.own_path((context.form or context.query).get("back", ""))
        return self.list_path if path == "/" else path

    async def _page(self, context: PageContext, chosen: _Chosen, form: Form, status: int = 200) -> web.StreamResponse:
        await pickers.fill(context, form)
        return context.render(
            "bulk.html", status, here=self.here, chosen=chosen, form=form, back=self._back(context), of=self
        )


def _of(act: Act, record: Record) -> Values:
    return {name: record.values[name] for name in act.changes}


def _seen(context: PageContext, act: Act, record: Record) -> Values:
    """What the person saw of a record, as the form says; what it is now, if the form does not."""
    now = _of(act, record)
    try:
        seen = json.loads(context.form.get(f"{SEEN}{record.id}", ""))
        return {name: _checked(act, name, seen[name]) for name in now}
    except (ValueError, TypeError, KeyError, RecursionError):
        return now


def _checked(act: Act, name: str, value: Any) -> Any:
    """The value, if the field can have it. Raises ValueError."""
    is_number = act.request.DESCRIPTOR.fields_by_name[name].type == FieldDescriptor.TYPE_INT64
    if value is None or (type(value) is int and is_number and 0 < value < 2**63):
        return value
    if isinstance(value, str) and not is_number and len(value) <= TEXT_CHARACTERS_MAX:
        return value
    raise ValueError


def _changed(act: Act, message: Any) -> Values:
    """The fields that a request sets or clears, as records have them."""
    changed: dict[str, Any] = {}
    for name in act.changes:
        descriptor = message.DESCRIPTOR.fields_by_name[name]
        if "clear" in message.DESCRIPTOR.fields_by_name and name in message.clear:
            changed[name] = None
        elif message.HasField(name) if descriptor.has_presence else getattr(message, name):
            value = getattr(message, name)
            changed[name] = forms.label(descriptor.enum_type.values_by_number[value]) if descriptor.enum_type else value
    return changed


def _why(refusal: Refusal | Unavailable) -> str:
    if isinstance(refusal, Refusal):
        return refusal.message
    return _("There was no answer in time, so it may have been done. Send again: nothing is done twice.")
