"""The pages of administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.sending import needs_confirmation, submit
from console.kit.texts import _
from makeready.identity.v1 import administrators_pb2 as pb
from makeready.identity.v1 import identity_pb2, sessions_pb2

HERE = "Administrators"
PATH = "/settings/administrators"
LIST = "identity.AdministratorsService/ListAdministrators"
INVITE = "identity.AdministratorsService/InviteAdministrator"
UPDATE = "identity.AdministratorsService/UpdateAdministrator"
DEACTIVATE = "identity.AdministratorsService/DeactivateAdministrator"
REACTIVATE = "identity.AdministratorsService/ReactivateAdministrator"
LINK = "identity.AdministratorsService/MakeLink"
KEYS = "identity.KeysService/ListKeys"
TAKE_OVER = "identity.KeysService/TakeOverKeys"
REVOKE = "identity.KeysService/RevokeKeys"
SHOWS = (LIST, KEYS)
TEXT_MAX = {"maxlength": "200"}


def _invite_form() -> Form:
    return Form(
        pb.InviteAdministratorRequest(),
        [
            Field("name", "Name", required=True, more=TEXT_MAX),
            Field("email", "E-mail", _("They sign in with it. Send them the link yourself: no e-mail is sent."),
                  required=True, more={"maxlength": "320"}),
        ],
    )  # fmt: skip


async def show_administrators(context: PageContext) -> web.StreamResponse:
    return await _administrators(context)


async def _administrators(
    context: PageContext,
    status: int = 200,
    *,
    form: Form | None = None,
    link: sessions_pb2.Link | None = None,
) -> web.Response:
    """link: of an invitation, to be shown once."""
    response = await context.rpcs.call(LIST, pb.ListAdministratorsRequest())
    return context.render(
        "company/administrators.html", status, here=HERE, people=response.administrators, form=form or _invite_form(),
        link=link,
    )  # fmt: skip


async def invite(context: PageContext) -> web.StreamResponse:
    """Shows the invitation's link once."""
    form = _invite_form()
    if not form.read(context.form):
        return await _administrators(context, 422, form=form)
    form.message.idempotency_key = context.form_token
    try:
        invitation = await context.rpcs.call(INVITE, form.message)
    except Refusal as refusal:
        if needs_confirmation(refusal):
            raise
        form.refuse(refusal)
        return await _administrators(context, refusal.status, form=form)
    return await _administrators(context, link=invitation.link)


def _person_form(person: pb.Administrator) -> Form:
    message = pb.UpdateAdministratorRequest(name=person.name, email=person.email)
    names = [Field("name", "Name", required=True, more=TEXT_MAX), Field("email", "E-mail", required=True)]
    return Form(message, names)


async def show_administrator(context: PageContext) -> web.StreamResponse:
    return await _administrator(context)


async def _administrator(
    context: PageContext,
    status: int = 200,
    *,
    form: Form | None = None,
    link: sessions_pb2.Link | None = None,
    error: str = "",
) -> web.Response:
    """link: to be shown once. Raises HTTPNotFound."""
    administrator_id = context.number("administrator_id")
    response, keys = await together(
        context.rpcs.call(LIST, pb.ListAdministratorsRequest()), _working_keys(context, administrator_id)
    )
    people = {administrator.administrator_id: administrator for administrator in response.administrators}
    person = people.get(administrator_id)
    if person is None:
        raise web.HTTPNotFound
    return context.render(
        "company/administrator.html", status, here=HERE, person=person, keys=keys, form=form or _person_form(person),
        is_self=context.session.person.person_id == administrator_id, link=link, error=error,
    )  # fmt: skip


async def _working_keys(context: PageContext, administrator_id: int) -> Sequence[identity_pb2.Key]:
    """The administrator's keys that are neither revoked nor expired."""
    request = identity_pb2.ListKeysRequest(
        company_id=context.session.person.company_id, administrator_id=administrator_id, active_only=True
    )
    keys: list[identity_pb2.Key] = []
    while True:
        page = await context.rpcs.call(KEYS, request)
        keys += page.keys
        if not page.HasField("next_after_id"):
            return keys
        request.after_id = page.next_after_id


async def update(context: PageContext) -> web.StreamResponse:
    form = _person_form(pb.Administrator())
    if not form.read(context.form):
        return await _administrator(context, 422, form=form)
    number = context.number("administrator_id")
    form.message.administrator_id, form.message.idempotency_key = number, context.form_token
    try:
        await context.rpcs.call(UPDATE, form.message)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        form.refuse(refusal)
        return await _administrator(context, refusal.status, form=form)
    context.site.sessions.forget(context.session.text)
    return context.redirect(f"{PATH}/{number}", _("Saved."))


async def deactivate(context: PageContext) -> web.StreamResponse:
    request = pb.DeactivateAdministratorRequest(administrator_id=context.number("administrator_id"))
    path = f"{PATH}/{request.administrator_id}"
    return await submit(
        context, DEACTIVATE, request, path, _("Administrator deactivated and signed out everywhere."), _administrator
    )


async def reactivate(context: PageContext) -> web.StreamResponse:
    request = pb.ReactivateAdministratorRequest(administrator_id=context.number("administrator_id"))
    path = f"{PATH}/{request.administrator_id}"
    return await submit(
        context, REACTIVATE, request, path, _("Administrator reactivated. They can sign in again."), _administrator
    )


async def take_over_keys(context: PageContext) -> web.StreamResponse:
    request = identity_pb2.TakeOverKeysRequest(
        of_administrator_id=context.number("administrator_id"), idempotency_key=context.form_token
    )
    done = _("Keys taken over. Their changes are now recorded under your name.")
    return await _of_keys(context, TAKE_OVER, request, done)


async def revoke_keys(context: PageContext) -> web.StreamResponse:
    """Wants the administrator's e-mail typed."""
    number = context.number("administrator_id")
    response = await context.rpcs.call(LIST, pb.ListAdministratorsRequest())
    email = next(
        (administrator.email for administrator in response.administrators if administrator.administrator_id == number),
        "",
    )
    if context.form.get("email", "").strip().lower() != email:
        return await _administrator(context, 422, error=_("Type the e-mail exactly as shown to revoke the keys."))
    request = identity_pb2.RevokeKeysRequest(of_administrator_id=number, idempotency_key=context.form_token)
    return await _of_keys(context, REVOKE, request, _("Keys revoked. Requests with them are refused."))


async def _of_keys(context: PageContext, rpc: str, request: Any, done: str) -> web.StreamResponse:
    try:
        await context.rpcs.call(rpc, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await _administrator(context, refusal.status, error=refusal.message)
    return context.redirect(f"{PATH}/{request.of_administrator_id}", done)


async def make_link(context: PageContext) -> web.StreamResponse:
    """Shows the link once."""
    request = pb.MakeLinkRequest(
        administrator_id=context.number("administrator_id"), remove_second_factor=bool(context.form.get("remove"))
    )
    try:
        response = await context.rpcs.call(LINK, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await _administrator(context, refusal.status, error=refusal.message)
    return await _administrator(context, link=response.link)
