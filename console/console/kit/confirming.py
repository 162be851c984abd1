"""Acts that ask their person to confirm who they are (step-up).

Where an RPC refuses with `step_up_required`, a page asks for the password or a passkey and bears all fields of the form
along. Sent again with `confirm`, the session is confirmed first and the same act goes on.
"""

from __future__ import annotations

from aiohttp import web

from chassis.refusals import Refusal
from console.kit.visit import Visit
from makeready.identity.v1 import sessions_pb2 as pb

SENT, PASSWORD, CODE = "confirm", "confirm.password", "confirm.code"
CEREMONY, CREDENTIAL = "confirm.ceremony", "confirm.credential"
OWN = (SENT, PASSWORD, CODE, CEREMONY, CREDENTIAL, "act")


def is_sent(visit: Visit) -> bool:
    """Whether the form bears a confirmation."""
    return visit.who is not None and SENT in visit.form


def page(visit: Visit, error: str = "") -> web.Response:
    """Asks for the confirmation of the form that was sent."""
    fields = [(name, value) for name, value in visit.form.items() if name not in OWN]
    return visit.render("confirm.html", 403, fields=fields, error=error, here="", act=visit.act)


async def confirm(visit: Visit) -> web.Response | None:
    """Confirms the session with what was sent. Returns the page that asks again if that failed."""
    assert visit.who is not None
    try:
        if visit.form.get(CREDENTIAL):
            finish = pb.FinishPasskeyRequest(
                ceremony=visit.form.get(CEREMONY, ""), credential_json=visit.form[CREDENTIAL], client=visit.client
            )
            new = (await visit.site.sessions.call(finish, pb.FinishPasskeyResponse)).session
            if new.session.actor != visit.who.actor:
                return page(visit, "That passkey is another account's.")
        else:
            step_up = pb.StepUpRequest(
                session=visit.session,
                password=visit.form.get(PASSWORD, ""),
                code=visit.form.get(CODE, ""),
                client=visit.client,
            )
            new = (await visit.site.sessions.call(step_up, pb.StepUpResponse)).session
    except Refusal as refusal:
        if refusal.code == "no_session":
            raise
        return page(visit, refusal.message)
    visit.begin(new)
    return None
