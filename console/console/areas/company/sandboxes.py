"""The sandboxes of a company: their list, a new one, and the switch between the company and its sandboxes."""

from __future__ import annotations

import zoneinfo

from aiohttp import web

from chassis.refusals import Refusal
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.sending import send
from console.kit.sessions import in_sandbox, secret_of
from console.kit.signing_in import go_on
from console.kit.texts import _
from makeready.identity.v1 import identity_pb2 as pb

HERE = "Sandboxes"
PATH, SWITCH_PATH = "/settings/sandboxes", "/switch"
LIST = "identity.CompaniesService/ListSandboxes"
CREATE = "identity.CompaniesService/CreateCompany"
END = "identity.CompaniesService/EndSandbox"
ID_DIGITS_MAX = 18


def _contents(live_name: str) -> tuple[tuple[str, str], ...]:
    """What a sandbox may start with."""
    return (
        ("empty", _("Empty")),
        ("demo", _("Demo records")),
        ("copy", _("A copy of %(company)s") % {"company": live_name}),
    )


def _form(live_name: str, timezone: str) -> Form:
    return Form(
        pb.CreateCompanyRequest(timezone=timezone, content=pb.SANDBOX_CONTENT_EMPTY),
        [
            Field("name", "Name", _("For example “Integration test”."), required=True,
                  more={"maxlength": "200"}),
            Field("timezone", "Time zone", _("Defaults to your live company's time zone."), required=True,
                  more={"list": "zones"}),
            Field("content", _("Starts with"),
                  _("A copy has properties, units and assets, but no people, tickets or leases."),
                  kind="select", choices=_contents(live_name), required=True),
        ],
    )  # fmt: skip


async def show_sandboxes(context: PageContext) -> web.StreamResponse:
    return await _sandboxes(context)


async def _sandboxes(context: PageContext, status: int = 200, form: Form | None = None) -> web.Response:
    """form: one that was refused."""
    answer = await context.rpcs.call(LIST, pb.ListSandboxesRequest())
    person = context.session.person
    return context.render(
        "company/sandboxes.html", status, here=HERE, sandboxes=answer.sandboxes, sandboxes_max=answer.sandboxes_max,
        live_id=_live_id(context), live_name=_live_name(context),
        form=form or _form(_live_name(context), person.timezone), zones=sorted(zoneinfo.available_timezones()),
    )  # fmt: skip


def _live_id(context: PageContext) -> int:
    """The live company that the person's account is of; 0: the account is of a sandbox."""
    person = context.session.person
    if person.HasField("live_company_id"):
        return person.live_company_id
    return 0 if person.is_sandbox else person.company_id


def _live_name(context: PageContext) -> str:
    person = context.session.person
    return person.live_company_name or person.company_name


async def create(context: PageContext) -> web.StreamResponse:
    form = _form(_live_name(context), "")
    if not form.read(context.form):
        return await _sandboxes(context, 422, form)
    form.message.is_sandbox = True
    created = await send(context, CREATE, form)
    if created is None:
        return await _sandboxes(context, form.status, form)
    is_empty = created.company.content == pb.SANDBOX_CONTENT_EMPTY
    message = _("%(name)s created.") if is_empty else _("%(name)s created. Its records arrive within minutes.")
    message += " " + _("Open it, then create an API key there.")
    return context.redirect(PATH, message % {"name": created.company.name})


async def show_end(context: PageContext) -> web.StreamResponse:
    """What ending the sandbox does, before it is done."""
    return context.render("company/end_sandbox.html", here=HERE, sandbox=await _sandbox(context))


async def end(context: PageContext) -> web.StreamResponse:
    sandbox = await _sandbox(context, must_exist=False)
    await context.rpcs.call(END, pb.EndSandboxRequest(company_id=context.number("company_id")))
    name = _("Sandbox") if sandbox is None else sandbox.name
    return context.redirect(PATH, _("%(name)s deleted. All its data is removed within a day.") % {"name": name})


async def _sandbox(context: PageContext, *, must_exist: bool = True) -> pb.Company | None:
    """The sandbox of the path. Raises HTTPNotFound unless the form was sent before, by which it may have ended."""
    # One is ended from the live company: nobody deletes the ground on which they stand.
    if context.session.person.is_sandbox:
        raise web.HTTPNotFound
    answer = await context.rpcs.call(LIST, pb.ListSandboxesRequest())
    sandboxes = {sandbox.id: sandbox for sandbox in answer.sandboxes}
    sandbox: pb.Company | None = sandboxes.get(context.number("company_id"))
    if sandbox is None and must_exist:
        raise web.HTTPNotFound
    return sandbox


async def switch(context: PageContext) -> web.StreamResponse:
    """Goes on in the live company or in a sandbox. Pages of the company before stay open in other tabs: their forms are
    refused from now on."""
    live_id, company_id = _live_id(context), context.form.get("company_id", "")
    if not live_id or not (company_id.isascii() and company_id.isdigit() and len(company_id) <= ID_DIGITS_MAX):
        raise web.HTTPNotFound
    text = context.session.text
    text = secret_of(text) if int(company_id) == live_id else in_sandbox(text, int(company_id))
    who = await context.site.sessions.find(text)
    if who is None:
        raise Refusal(404, "not_found", "The company has no sandbox with that id, or it was ended or is closed.")
    go_on(context, text, who)
    message = (
        _("You are now in the sandbox %(name)s.") if who.is_sandbox else _("You are now in the live company %(name)s.")
    )
    return context.redirect("/", message % {"name": who.company_name})
