"""The pages of administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.kit.calls import together
from console.kit.forms import Field, Form
from console.kit.times import count
from console.kit.visit import Visit, needs_confirmation, submit
from makeready.identity.v1 import administrators_pb2 as pb
from makeready.identity.v1 import identity_pb2

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
            Field("email", "E-mail", "They sign in with it. You hand the link over yourself: nothing is mailed.",
                  required=True, more={"maxlength": "320"}),
        ],
    )  # fmt: skip


async def show_administrators(visit: Visit) -> web.StreamResponse:
    return await _administrators(visit)


async def _administrators(visit: Visit, status: int = 200, **more: Any) -> web.Response:
    response = await visit.call(LIST, pb.ListAdministratorsRequest())
    values = {"form": _invite_form(), "link": None, **more}
    return visit.render("company/administrators.html", status, here=HERE, people=response.administrators, **values)


async def invite(visit: Visit) -> web.StreamResponse:
    """Shows the invitation's link once."""
    form = _invite_form()
    if not form.read(visit.form):
        return await _administrators(visit, 422, form=form)
    form.message.idempotency_key = visit.act
    try:
        invitation = await visit.call(INVITE, form.message)
    except Refusal as refusal:
        if needs_confirmation(refusal):
            raise
        form.refuse(refusal)
        return await _administrators(visit, refusal.status, form=form)
    return await _administrators(visit, link=invitation.link, link_name=invitation.administrator.name)


def _person_form(person: pb.Administrator) -> Form:
    message = pb.UpdateAdministratorRequest(name=person.name, email=person.email)
    names = [Field("name", "Name", required=True, more=TEXT_MAX), Field("email", "E-mail", required=True)]
    return Form(message, names)


async def show_administrator(visit: Visit) -> web.StreamResponse:
    return await _administrator(visit)


async def _administrator(visit: Visit, status: int = 200, **more: Any) -> web.Response:
    """Raises HTTPNotFound."""
    administrator_id = visit.number("administrator_id")
    response, keys = await together(
        visit.call(LIST, pb.ListAdministratorsRequest()), _working_keys(visit, administrator_id)
    )
    person = next(
        (
            administrator
            for administrator in response.administrators
            if administrator.administrator_id == administrator_id
        ),
        None,
    )
    if person is None:
        raise web.HTTPNotFound
    values = {"form": _person_form(person), "link": None, "error": "", **more}
    is_self = visit.who is not None and visit.who.person_id == administrator_id
    return visit.render(
        "company/administrator.html", status, here=HERE, person=person, keys=keys, is_self=is_self, **values
    )


async def _working_keys(visit: Visit, administrator_id: int) -> Sequence[identity_pb2.Key]:
    """The administrator's keys that are neither revoked nor expired."""
    assert visit.who is not None
    request = identity_pb2.ListKeysRequest(
        company_id=visit.who.company_id, administrator_id=administrator_id, active_only=True
    )
    keys: list[identity_pb2.Key] = []
    while True:
        page = await visit.call(KEYS, request)
        keys += page.keys
        if not page.HasField("next_after_id"):
            return keys
        request.after_id = page.next_after_id


async def update(visit: Visit) -> web.StreamResponse:
    form = _person_form(pb.Administrator())
    if not form.read(visit.form):
        return await _administrator(visit, 422, form=form)
    number = visit.number("administrator_id")
    form.message.administrator_id, form.message.idempotency_key = number, visit.act
    try:
        await visit.call(UPDATE, form.message)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        form.refuse(refusal)
        return await _administrator(visit, refusal.status, form=form)
    visit.site.sessions.forget(visit.session)
    return visit.redirect(f"{PATH}/{number}", "Saved.")


async def deactivate(visit: Visit) -> web.StreamResponse:
    request = pb.DeactivateAdministratorRequest(administrator_id=visit.number("administrator_id"))
    path = f"{PATH}/{request.administrator_id}"
    return await submit(
        visit, DEACTIVATE, request, path, "Deactivated. They are signed out everywhere.", _administrator
    )


async def reactivate(visit: Visit) -> web.StreamResponse:
    request = pb.ReactivateAdministratorRequest(administrator_id=visit.number("administrator_id"))
    path = f"{PATH}/{request.administrator_id}"
    return await submit(visit, REACTIVATE, request, path, "Reactivated. They can sign in again.", _administrator)


async def take_over_keys(visit: Visit) -> web.StreamResponse:
    request = identity_pb2.TakeOverKeysRequest(
        of_administrator_id=visit.number("administrator_id"), idempotency_key=visit.act
    )
    return await _of_keys(visit, TAKE_OVER, request, "taken over. What is written with them from now on names you.")


async def revoke_keys(visit: Visit) -> web.StreamResponse:
    """Wants the administrator's e-mail typed."""
    number = visit.number("administrator_id")
    response = await visit.call(LIST, pb.ListAdministratorsRequest())
    email = next(
        (administrator.email for administrator in response.administrators if administrator.administrator_id == number),
        "",
    )
    if visit.form.get("email", "").strip().lower() != email:
        return await _administrator(visit, 422, error="Type the e-mail as it stands here, to revoke the keys.")
    request = identity_pb2.RevokeKeysRequest(of_administrator_id=number, idempotency_key=visit.act)
    return await _of_keys(visit, REVOKE, request, "revoked. Requests with them are refused from now on.")


async def _of_keys(visit: Visit, rpc: str, request: Any, done: str) -> web.StreamResponse:
    try:
        changed = await visit.call(rpc, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await _administrator(visit, refusal.status, error=refusal.message)
    message = f"{count(len(changed.keys), 'key')} {'is' if len(changed.keys) == 1 else 'are'} {done}"
    return visit.redirect(f"{PATH}/{request.of_administrator_id}", message)


async def make_link(visit: Visit) -> web.StreamResponse:
    """Shows the link once."""
    request = pb.MakeLinkRequest(
        administrator_id=visit.number("administrator_id"), remove_second_factor=bool(visit.form.get("remove"))
    )
    try:
        response = await visit.call(LINK, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await _administrator(visit, refusal.status, error=refusal.message)
    return await _administrator(visit, link=response.link)
