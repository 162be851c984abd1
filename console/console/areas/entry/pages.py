"""Signing in with a password, a second factor or a passkey; signing out; invitations and resets."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import links
from console.kit.visit import Visit
from makeready.identity.v1 import sessions_pb2 as pb

HERE = ""
EMAIL_CHARACTERS_MAX, PASSWORD_CHARACTERS_MAX, LINK_CHARACTERS_MAX = 320, 1024, 200


async def show_sign_in(visit: Visit) -> web.StreamResponse:
    return _sign_in(visit)


def _sign_in(visit: Visit, status: int = 200, error: str = "", email: str = "") -> web.Response:
    return visit.render(
        "entry/sign_in.html", status, here=HERE, next=visit.next_path, error=error, email=email,
        over_an_address=_is_an_address(visit),
    )  # fmt: skip


async def sign_in(visit: Visit) -> web.StreamResponse:
    email = visit.form.get("email", "").strip()[:EMAIL_CHARACTERS_MAX]
    request = pb.SignInRequest(
        email=email, password=visit.form.get("password", "")[:PASSWORD_CHARACTERS_MAX], client=visit.client
    )
    try:
        answer = await visit.site.sessions.call(request, pb.SignInResponse)
    except Refusal as refusal:
        return _sign_in(visit, refusal.status, refusal.message, email)
    return _begun(visit, answer)


def _begun(visit: Visit, answer: Any) -> web.Response:
    """To the page that was wanted, or to the second factor."""
    if answer.WhichOneof("outcome") == "step":
        return _second_factor(visit, answer.step)
    visit.begin(answer.session)
    return visit.redirect(visit.next_path)


def _second_factor(visit: Visit, step: str, status: int = 200, error: str = "") -> web.Response:
    return visit.render("entry/second_factor.html", status, here=HERE, next=visit.next_path, step=step, error=error)


async def second_factor(visit: Visit) -> web.StreamResponse:
    step = visit.form.get("step", "")[:LINK_CHARACTERS_MAX]
    request = pb.SecondFactorRequest(step=step, code=visit.form.get("code", "")[:100], client=visit.client)
    try:
        answer = await visit.site.sessions.call(request, pb.SecondFactorResponse)
    except Refusal as refusal:
        return _second_factor(visit, step, refusal.status, refusal.message)
    visit.begin(answer.session)
    message = ""
    if answer.HasField("recovery_codes_left"):
        codes_left = answer.recovery_codes_left
        message = f"You used a recovery code, and have {codes_left or 'none'} left. Your account's page makes new ones."
    return visit.redirect(visit.next_path, message)


async def start_passkey(visit: Visit) -> web.StreamResponse:
    """For console.js: what the browser asks its passkeys."""
    try:
        answer = await visit.site.sessions.call(pb.StartPasskeyRequest(session=visit.session), pb.StartPasskeyResponse)
    except Refusal as refusal:
        return web.json_response({"error": refusal.message}, status=refusal.status)
    return web.json_response({"ceremony": answer.ceremony, "options": json.loads(answer.options_json)})


async def finish_passkey(visit: Visit) -> web.StreamResponse:
    request = pb.FinishPasskeyRequest(
        ceremony=visit.form.get("ceremony", ""), credential_json=visit.form.get("credential", ""), client=visit.client
    )
    try:
        answer = await visit.site.sessions.call(request, pb.FinishPasskeyResponse)
    except Refusal as refusal:
        return _sign_in(visit, refusal.status, refusal.message)
    visit.begin(answer.session)
    return visit.redirect(visit.next_path)


async def sign_out(visit: Visit) -> web.StreamResponse:
    if visit.session:
        await visit.site.sessions.call(pb.SignOutRequest(session=visit.session), pb.SignOutResponse)
        visit.end()
    return visit.redirect("/sign-in")


async def show_link(visit: Visit) -> web.StreamResponse:
    """An invitation or a reset: whose it is, and a form for the password."""
    return await _link(visit)


async def _link(visit: Visit, status: int = 200, refusal: Refusal | None = None) -> web.Response:
    text = visit.request.match_info["link"]
    try:
        link = await visit.site.sessions.call(pb.UseLinkRequest(link=text, client=visit.client), pb.UseLinkResponse)
    except Refusal as over:
        return visit.render("entry/link_over.html", over.status, here=HERE, message=over.message)
    return visit.render(
        "entry/link.html", status, here=HERE, link=link, is_reset=link.purpose == pb.LINK_PURPOSE_RESET,
        path=visit.request.path, error=refusal.message if refusal else "",
    )  # fmt: skip


async def use_link(visit: Visit) -> web.StreamResponse:
    password = visit.form.get("password", "")
    if password != visit.form.get("again", ""):
        return await _link(
            visit, 422, Refusal(422, "invalid_request", "The two passwords differ; type the same one twice.")
        )
    request = pb.UseLinkRequest(
        link=visit.request.match_info["link"], password=password[:PASSWORD_CHARACTERS_MAX], client=visit.client
    )
    try:
        answer = await visit.site.sessions.call(request, pb.UseLinkResponse)
    except Refusal as refusal:
        return await _link(visit, refusal.status, refusal)
    return _begun(visit, answer)


def _is_an_address(visit: Visit) -> bool:
    """Whether the console is opened by an IP address, where browsers have no passkeys."""
    return links.is_address(visit.request.url.host or "")
