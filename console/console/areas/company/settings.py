"""The pages of the company's settings. Each change is one form, with what it does said before it is done."""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass

from aiohttp import web

from chassis.refusals import Refusal
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.sending import needs_confirmation
from console.kit.texts import _, ngettext
from console.kit.times import clock
from makeready.identity.v1 import identity_pb2 as pb
from makeready.tickets.v1 import tickets_pb2

HERE = "Settings"
PATH = "/settings"
GET = "identity.CompaniesService/GetCompany"
UPDATE = "identity.CompaniesService/UpdateCompany"
POLICY = "tickets.TicketsService/GetTicketPolicy"
STALE = "tickets.TicketsService/CountStaleTickets"
UPDATE_POLICY = "tickets.TicketsService/UpdateTicketPolicy"
SHOWS = (GET, POLICY)

ZONES_HINT = _("Used for dates and for the daily checks at 06:00.")


def _company_form(company: pb.Company) -> Form:
    message = pb.UpdateCompanyRequest(name=company.name, timezone=company.timezone)
    return Form(
        message,
        [
            Field("name", "Name", _("Shown in the console and in invitations."), required=True,
                  more={"maxlength": "200"}),
            Field("timezone", _("Time zone"), ZONES_HINT, required=True, more={"list": "zones"}),
        ],
    )  # fmt: skip


def _factor_form(company: pb.Company) -> Form:
    message = pb.UpdateCompanyRequest(second_factor_required=company.second_factor_required)
    words = _("Require two-factor authentication for administrators")
    hint = _("A passkey or an authenticator app. Administrators without one must add it before they can continue.")
    return Form(message, [Field("second_factor_required", words, hint)])


def _policy_form(policy: tickets_pb2.GetTicketPolicyResponse) -> Form:
    return Form(
        tickets_pb2.UpdateTicketPolicyRequest(
            photo_required_to_complete=policy.photo_required_to_complete, stale_after_hours=policy.stale_after_hours
        ),
        [
            Field("photo_required_to_complete", _("Require a photo to complete a ticket"),
                  _("Applies to staff, vendors and integrations.")),
            Field("stale_after_hours", _("Response is overdue after (hours)"),
                  _("Counted without activity, for tickets that residents report. Integrations then get ticket.stale."),
                  required=True),
        ],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SentForms:
    """The forms that were sent and could not be done, or that show what they would do: newly_stale tickets."""

    company: Form | None = None
    factor: Form | None = None
    policy: Form | None = None
    newly_stale: int | None = None


async def show_settings(context: PageContext) -> web.StreamResponse:
    return await _settings(context, SentForms())


async def _settings(context: PageContext, sent: SentForms, status: int = 200) -> web.Response:
    company, policy = await together(
        context.rpcs.call(GET, pb.GetCompanyRequest(company_id=context.session.person.company_id)),
        context.rpcs.panel(POLICY, tickets_pb2.GetTicketPolicyRequest()),
    )
    return context.render(
        "company/settings.html", status, here=HERE, found_policy=policy,
        company=sent.company or _company_form(company.company), factor=sent.factor or _factor_form(company.company),
        policy=sent.policy or (_policy_form(policy.value) if policy.ok else None), newly_stale=sent.newly_stale,
        zones=sorted(zoneinfo.available_timezones()),
    )  # fmt: skip


async def update_company(context: PageContext) -> web.StreamResponse:
    form = _company_form(pb.Company())
    is_read = form.read(context.form)
    if is_read and form.message.timezone not in zoneinfo.available_timezones():
        form.errors["timezone"] = _("Unknown time zone. Choose one such as America/New_York.")
    else:
        six = _utc_of_six(form.message.timezone)
        message = f"Saved. 06:00 in {form.message.timezone} is {six} UTC today."
        return await _update(context, form, SentForms(company=form), message)
    return await _settings(context, SentForms(company=form), 422)


def _utc_of_six(timezone: str) -> str:
    try:
        now = datetime.datetime.now(zoneinfo.ZoneInfo(timezone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return "06:00"
    return clock(now.replace(hour=6, minute=0).astimezone(datetime.UTC))


async def update_factor(context: PageContext) -> web.StreamResponse:
    form = _factor_form(pb.Company())
    form.read(context.form)
    is_required = form.message.second_factor_required
    message = (
        _("Two-factor authentication is now required for administrators.")
        if is_required
        else _("Two-factor authentication is now optional.")
    )
    context.site.sessions.forget(context.session.text)
    return await _update(context, form, SentForms(factor=form), message)


async def _update(context: PageContext, form: Form, sent: SentForms, message: str) -> web.StreamResponse:
    if form.has_errors:
        return await _settings(context, sent, 422)
    form.message.company_id = context.session.person.company_id
    try:
        await context.rpcs.call(UPDATE, form.message)
    except Refusal as refusal:
        if needs_confirmation(refusal):
            raise
        form.refuse(refusal)
        return await _settings(context, sent, refusal.status)
    context.site.sessions.forget(context.session.text)
    return context.redirect(PATH, message)


async def update_policy(context: PageContext) -> web.StreamResponse:
    """Says first how many tickets become stale, if any do."""
    form = _policy_form(tickets_pb2.GetTicketPolicyResponse())
    if not form.read(context.form):
        return await _settings(context, SentForms(policy=form), 422)
    hours = form.message.stale_after_hours
    try:
        if context.form.get("sure") != str(hours):
            counted = await context.rpcs.call(STALE, tickets_pb2.CountStaleTicketsRequest(stale_after_hours=hours))
            if counted.newly_stale:
                return await _settings(context, SentForms(policy=form, newly_stale=counted.newly_stale))
        await context.rpcs.call(UPDATE_POLICY, form.message)
    except Refusal as refusal:
        if needs_confirmation(refusal):
            raise
        form.refuse(refusal)
        return await _settings(context, SentForms(policy=form), refusal.status)
    return context.redirect(
        PATH,
        ngettext(
            "Saved. Response is overdue after %(num)s hour.", "Saved. Response is overdue after %(num)s hours.", hours
        )
        % {"num": hours},
    )
