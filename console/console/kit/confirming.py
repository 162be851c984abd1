"""Actions that ask their person to confirm who they are (step-up).

Where an RPC refuses with `step_up_required`, a page asks for the password or a passkey and bears all fields of the form
along. Sent again with `confirm`, the session is confirmed first and the same action goes on.
"""

from __future__ import annotations

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import form_tokens
from console.kit.context import PageContext
from console.kit.signing_in import begin, client_of
from makeready.identity.v1 import sessions_pb2 as pb

SENT, PASSWORD, CODE = "confirm", "confirm.password", "confirm.code"
CEREMONY, CREDENTIAL = "confirm.ceremony", "confirm.credential"
OWN = (SENT, PASSWORD, CODE, CEREMONY, CREDENTIAL, form_tokens.FIELD)


def is_sent(context: PageContext) -> bool:
    """Whether the form bears a confirmation."""
    return context.session.who is not None and SENT in context.form


def page(context: PageContext, error: str = "") -> web.Response:
    """Asks for the confirmation of the form that was sent."""
    fields = [(name, value) for name, value in context.form.items() if name not in OWN]
    return context.render("confirm.html", 403, fields=fields, error=error, here="", token=context.form_token)


async def confirm(context: PageContext) -> web.Response | None:
    """Confirms the session with what was sent. Returns the page that asks again if that failed."""
    try:
        if context.form.get(CREDENTIAL):
            finish = pb.FinishPasskeyRequest(
                ceremony=context.form.get(CEREMONY, ""),
                credential_json=context.form[CREDENTIAL],
                client=client_of(context),
                session=context.session.text,
            )
            new = (await context.site.sessions.call(finish, pb.FinishPasskeyResponse)).session
            if new.session.actor != context.session.person.actor:
                return page(context, "That passkey is another account's.")
        else:
            step_up = pb.StepUpRequest(
                session=context.session.text,
                password=context.form.get(PASSWORD, ""),
                code=context.form.get(CODE, ""),
                client=client_of(context),
            )
            new = (await context.site.sessions.call(step_up, pb.StepUpResponse)).session
    except Refusal as refusal:
        if refusal.code == "no_session":
            raise
        return page(context, refusal.message)
    begin(context, new)
    return None
