"""Forms that are sent after their session has ended.

The answer is a sign-in that bears all fields of the form along, as `kit.confirming` does. Sent again to the same path
with `return`, it signs in first, and the same action goes on: with the same form token, so it happens once. Another
person's sign-in refuses the form, whose token is not theirs. Files are not borne along.
"""

from __future__ import annotations

from aiohttp import web
from multidict import MultiDict, MultiDictProxy

from chassis.refusals import Refusal
from console.kit import confirming, form_tokens
from console.kit.context import PageContext
from console.kit.sessions import in_sandbox, secret_of
from console.kit.signing_in import SESSION_COOKIE, begin, client_of, go_on
from makeready.identity.v1 import sessions_pb2 as pb

SENT, EMAIL, PASSWORD, STEP, CODE = "return", "return.email", "return.password", "return.step", "return.code"
CEREMONY, CREDENTIAL, SANDBOX, FILES = "return.ceremony", "return.credential", "return.sandbox", "return.files"
OWN = frozenset({SENT, EMAIL, PASSWORD, STEP, CODE, CEREMONY, CREDENTIAL, SANDBOX, FILES})
NOT_KEPT = OWN | set(confirming.OWN) - {form_tokens.FIELD}
"""No password is borne along."""
DISPLACED = "You were signed out here, because you have signed in on many other browsers since."
EMAIL_CHARACTERS_MAX, PASSWORD_CHARACTERS_MAX, STEP_CHARACTERS_MAX = 320, 1024, 200


def can_return(context: PageContext) -> bool:
    """Whether the form may be kept for the time of a sign-in: it is no form of the account, whose fields are secrets,
    and its browser has had a page of this console."""
    return context.page is not None and not context.page.is_secret and context.session.was_here


def page(context: PageContext, error: str = "", step: str = "") -> web.Response:
    """Asks for the sign-in that the form needs. step: of a sign-in that lacks the second factor."""
    fields = [(name, value) for name, value in context.form.items() if name not in NOT_KEPT]
    return context.render(
        "return.html", 401, here="", fields=fields, error=error, step=step,
        email=context.form.get(EMAIL, "")[:EMAIL_CHARACTERS_MAX], sandbox=_sandbox(context), displaced=DISPLACED,
        has_files=_has_files(context),
        token=form_tokens.new_token(context.form_key, context.request.path, context.site.now()),
    )  # fmt: skip


def _sandbox(context: PageContext) -> str:
    """The id of the sandbox that the session was in when it ended."""
    text = context.form.get(SANDBOX) or context.request.cookies.get(SESSION_COOKIE, "").partition(".")[2]
    return text if text.isascii() and text.isdigit() and len(text) < 19 else ""


def _has_files(context: PageContext) -> bool:
    return FILES in context.form or context.request.content_type == "multipart/form-data"


async def sign_in(context: PageContext) -> web.Response | None:
    """Signs in with what was sent. Returns the page that asks again if that failed, or if a second factor is due."""
    form, client = context.form, client_of(context)
    if not form_tokens.is_valid(form[SENT], context.form_key, context.request.path, context.site.now()):
        return page(context)
    step = form.get(STEP, "")[:STEP_CHARACTERS_MAX]
    try:
        if form.get(CREDENTIAL):
            finish = pb.FinishPasskeyRequest(
                ceremony=form.get(CEREMONY, ""), credential_json=form[CREDENTIAL], client=client
            )
            new = (await context.site.sessions.call(finish, pb.FinishPasskeyResponse)).session
        elif step:
            second = pb.SecondFactorRequest(step=step, code=form.get(CODE, "")[:100], client=client)
            new = (await context.site.sessions.call(second, pb.SecondFactorResponse)).session
        else:
            first = pb.SignInRequest(
                email=form.get(EMAIL, "").strip()[:EMAIL_CHARACTERS_MAX],
                password=form.get(PASSWORD, "")[:PASSWORD_CHARACTERS_MAX],
                client=client,
            )
            answer = await context.site.sessions.call(first, pb.SignInResponse)
            if answer.WhichOneof("outcome") == "step":
                return page(context, step=answer.step)
            new = answer.session
    except Refusal as refusal:
        return page(context, refusal.message, step)
    sandbox = _sandbox(context)
    begin(context, new)
    if sandbox:
        await _return_to(context, in_sandbox(secret_of(new.text), int(sandbox)))
    context.form = MultiDictProxy(MultiDict((name, value) for name, value in form.items() if name not in NOT_KEPT))
    return None


async def _return_to(context: PageContext, text: str) -> None:
    """To the sandbox in which the form was opened, if the person may work there."""
    who = await context.site.sessions.find(text)
    if who is not None:
        go_on(context, text, who)
