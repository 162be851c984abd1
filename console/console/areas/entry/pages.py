"""Signing in with a password, a second factor or a passkey; signing out; invitations and resets."""

from __future__ import annotations

import json

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import browser_secret, links
from console.kit.context import PageContext
from console.kit.signing_in import begin, client_of, end
from console.kit.texts import _
from makeready.identity.v1 import sessions_pb2 as pb

HERE = ""
OTHERS = "others"
"""The field of a sign-out in a browser that stores, sealed, what another person has not sent yet: its script has
deleted what is the own."""
EMAIL_CHARACTERS_MAX, PASSWORD_CHARACTERS_MAX, LINK_CHARACTERS_MAX = 320, 1024, 200


def _next_path(context: PageContext) -> str:
    """The page that the person wanted before the sign-in."""
    return links.own_path(context.form.get("next") or context.query.get("next") or "/")


async def show_sign_in(context: PageContext) -> web.StreamResponse:
    return _sign_in(context)


def _sign_in(context: PageContext, status: int = 200, error: str = "", email: str = "") -> web.Response:
    return context.render(
        "entry/sign_in.html", status, here=HERE, next=_next_path(context), error=error, email=email,
        over_an_address=_is_an_address(context),
    )  # fmt: skip


async def sign_in(context: PageContext) -> web.StreamResponse:
    email = context.form.get("email", "").strip()[:EMAIL_CHARACTERS_MAX]
    request = pb.SignInRequest(
        email=email, password=context.form.get("password", "")[:PASSWORD_CHARACTERS_MAX], client=client_of(context)
    )
    try:
        answer = await context.site.sessions.call(request, pb.SignInResponse)
    except Refusal as refusal:
        return _sign_in(context, refusal.status, refusal.message, email)
    return _begun(context, answer)


def _begun(context: PageContext, answer: pb.SignInResponse | pb.UseLinkResponse) -> web.Response:
    """To the page that was wanted, or to the second factor."""
    if answer.WhichOneof("outcome") == "step":
        return _second_factor(context, answer.step)
    begin(context, answer.session)
    return context.redirect(_next_path(context))


def _second_factor(context: PageContext, step: str, status: int = 200, error: str = "") -> web.Response:
    return context.render(
        "entry/second_factor.html", status, here=HERE, next=_next_path(context), step=step, error=error
    )


async def second_factor(context: PageContext) -> web.StreamResponse:
    step = context.form.get("step", "")[:LINK_CHARACTERS_MAX]
    request = pb.SecondFactorRequest(step=step, code=context.form.get("code", "")[:100], client=client_of(context))
    try:
        answer = await context.site.sessions.call(request, pb.SecondFactorResponse)
    except Refusal as refusal:
        return _second_factor(context, step, refusal.status, refusal.message)
    begin(context, answer.session)
    message = ""
    if answer.HasField("recovery_codes_left"):
        codes_left = answer.recovery_codes_left
        message = _("You used a recovery code; %(number)s left. Create new ones on your account page.") % {
            "number": codes_left
        }
    return context.redirect(_next_path(context), message)


async def start_passkey(context: PageContext) -> web.StreamResponse:
    """For console.js: what the browser asks its passkeys."""
    try:
        answer = await context.site.sessions.call(
            pb.StartPasskeyRequest(session=context.session.text), pb.StartPasskeyResponse
        )
    except Refusal as refusal:
        return web.json_response({"error": refusal.message}, status=refusal.status)
    return web.json_response({"ceremony": answer.ceremony, "options": json.loads(answer.options_json)})


async def finish_passkey(context: PageContext) -> web.StreamResponse:
    request = pb.FinishPasskeyRequest(
        ceremony=context.form.get("ceremony", ""),
        credential_json=context.form.get("credential", ""),
        client=client_of(context),
    )
    try:
        answer = await context.site.sessions.call(request, pb.FinishPasskeyResponse)
    except Refusal as refusal:
        return _sign_in(context, refusal.status, refusal.message)
    begin(context, answer.session)
    return context.redirect(_next_path(context))


async def sign_out(context: PageContext) -> web.StreamResponse:
    if context.session.text:
        await context.site.sessions.call(pb.SignOutRequest(session=context.session.text), pb.SignOutResponse)
        end(context)
    # No form that was made before is taken any more, and what the browser stored is deleted, also without a script.
    context.cookies[browser_secret.COOKIE] = "", 0
    reply = context.redirect("/sign-in")
    if OTHERS not in context.form:
        reply.headers["Clear-Site-Data"] = '"storage"'
    return reply


async def show_link(context: PageContext) -> web.StreamResponse:
    """An invitation or a reset: whose it is, and a form for the password."""
    return await _link(context)


async def _link(context: PageContext, status: int = 200, refusal: Refusal | None = None) -> web.Response:
    text = context.request.match_info["link"]
    try:
        link = await context.site.sessions.call(
            pb.UseLinkRequest(link=text, client=client_of(context)), pb.UseLinkResponse
        )
    except Refusal as over:
        return context.render("entry/link_over.html", over.status, here=HERE, message=over.message)
    return context.render(
        "entry/link.html", status, here=HERE, link=link, is_reset=link.purpose == pb.LINK_PURPOSE_RESET,
        path=context.request.path, error=refusal.message if refusal else "",
    )  # fmt: skip


async def use_link(context: PageContext) -> web.StreamResponse:
    password = context.form.get("password", "")
    if password != context.form.get("again", ""):
        return await _link(context, 422, Refusal(422, "invalid_request", _("The passwords do not match.")))
    request = pb.UseLinkRequest(
        link=context.request.match_info["link"], password=password[:PASSWORD_CHARACTERS_MAX], client=client_of(context)
    )
    try:
        answer = await context.site.sessions.call(request, pb.UseLinkResponse)
    except Refusal as refusal:
        return await _link(context, refusal.status, refusal)
    return _begun(context, answer)


def _is_an_address(context: PageContext) -> bool:
    """Whether the console is opened by an IP address, where browsers have no passkeys."""
    return links.is_address(context.request.url.host or "")
