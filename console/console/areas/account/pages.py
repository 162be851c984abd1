"""The pages of the own account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import segno
from aiohttp import web
from markupsafe import Markup

from chassis.refusals import Refusal
from console.kit import confirming
from console.kit.calls import together
from console.kit.visit import COOKIE_YEAR, THEME_COOKIE, THEMES, Visit, needs_confirmation
from makeready.identity.v1 import accounts_pb2 as pb

HERE = "Account"
PATH = "/account"
GET = "identity.AccountsService/GetAccount"
SESSIONS = "identity.AccountsService/ListSessions"
PASSWORD = "identity.AccountsService/ChangePassword"  # noqa: S105 - an RPC's name
START_PASSKEY = "identity.AccountsService/StartAddingPasskey"
FINISH_PASSKEY = "identity.AccountsService/FinishAddingPasskey"
REMOVE_PASSKEY = "identity.AccountsService/RemovePasskey"
ENROL = "identity.AccountsService/EnrolTotp"
CONFIRM = "identity.AccountsService/ConfirmTotp"
REMOVE_TOTP = "identity.AccountsService/RemoveTotp"
CODES = "identity.AccountsService/MakeRecoveryCodes"
END = "identity.AccountsService/EndSession"
SHOWS = (GET, SESSIONS)

PASSWORD_CHARACTERS_MAX = 1024
THEME_WORDS = (("auto", "As this device has it"), ("light", "Light"), ("dark", "Dark"))


async def show_account(visit: Visit) -> web.StreamResponse:
    return await _account(visit)


async def _account(visit: Visit, status: int = 200, errors: Any = None, codes: Sequence[str] = ()) -> web.Response:
    """errors: by the section of the page that they belong to."""
    account, sessions = await together(
        visit.call(GET, pb.GetAccountRequest()), visit.panel(SESSIONS, pb.ListSessionsRequest())
    )
    return visit.render(
        "account/account.html", status, here=HERE, account=account.account, sessions=sessions, errors=errors or {},
        codes=codes, themes=THEME_WORDS,
    )  # fmt: skip


async def _done(visit: Visit, rpc: str, request: Any, section: str, message: str) -> web.StreamResponse:
    """Does the act and returns to the account's page, or shows why not beside the section."""
    try:
        await visit.call(rpc, request)
    except Refusal as refusal:
        return await _failed(visit, section, refusal)
    visit.site.sessions.forget(visit.session)
    return visit.redirect(PATH, message)


async def _failed(visit: Visit, section: str, refusal: Refusal) -> web.Response:
    if needs_confirmation(refusal) or refusal.code == "no_session":
        raise refusal
    return await _account(visit, refusal.status, {section: refusal.message})


async def change_password(visit: Visit) -> web.StreamResponse:
    password = visit.form.get("password", "")
    if password != visit.form.get("again", ""):
        return await _account(visit, 422, {"password": "The two passwords differ; type the same one twice."})
    request = pb.ChangePasswordRequest(password=password[:PASSWORD_CHARACTERS_MAX])
    return await _done(
        visit, PASSWORD, request, "password", "Your password is changed. Your other sessions have ended."
    )


async def confirm(visit: Visit) -> web.StreamResponse:
    """Asks for a confirmation, for acts whose script could not show it."""
    return visit.redirect(f"{PATH}#passkeys") if visit.can_confirm else confirming.page(visit)


async def start_passkey(visit: Visit) -> web.StreamResponse:
    """For console.js: what the browser makes a passkey of."""
    try:
        answer = await visit.call(START_PASSKEY, pb.StartAddingPasskeyRequest())
    except Refusal as refusal:
        return web.json_response({"error": refusal.message}, status=refusal.status)
    return web.json_response({"ceremony": answer.ceremony, "options": json.loads(answer.options_json)})


async def add_passkey(visit: Visit) -> web.StreamResponse:
    request = pb.FinishAddingPasskeyRequest(
        ceremony=visit.form.get("ceremony", ""),
        credential_json=visit.form.get("credential", ""),
        name=visit.form.get("name", "").strip()[:200],
    )
    return await _done(visit, FINISH_PASSKEY, request, "passkeys", "The passkey is added. Sign in with it next time.")


async def remove_passkey(visit: Visit) -> web.StreamResponse:
    request = pb.RemovePasskeyRequest(passkey_id=visit.number("passkey_id"))
    return await _done(visit, REMOVE_PASSKEY, request, "passkeys", "The passkey is removed. It opens nothing any more.")


async def enrol(visit: Visit) -> web.StreamResponse:
    """Shows the secret of an authenticator app once, as a QR code and as text."""
    try:
        answer = await visit.call(ENROL, pb.EnrolTotpRequest())
    except Refusal as refusal:
        return await _failed(visit, "totp", refusal)
    return _enrol(visit, answer.secret, answer.uri)


def _enrol(visit: Visit, secret: str, uri: str, status: int = 200, error: str = "") -> web.Response:
    image = segno.make(uri, error="m", micro=False).svg_inline(svgclass=None, lineclass=None, omitsize=True)
    return visit.render(
        "account/totp.html", status, here=HERE, secret=secret, uri=uri, error=error,
        image=Markup(image),  # noqa: S704 - drawn from the address, which is in no text of it
    )  # fmt: skip


async def confirm_totp(visit: Visit) -> web.StreamResponse:
    """Shows the recovery codes once."""
    try:
        answer = await visit.call(CONFIRM, pb.ConfirmTotpRequest(code=visit.form.get("code", "").strip()[:20]))
    except Refusal as refusal:
        uri, secret = visit.form.get("uri", "")[:1000], visit.form.get("secret", "")[:200]
        if needs_confirmation(refusal) or not uri.startswith("otpauth://totp/"):
            raise
        return _enrol(visit, secret, uri, refusal.status, refusal.message)
    visit.site.sessions.forget(visit.session)
    return await _account(visit, codes=answer.recovery_codes)


async def remove_totp(visit: Visit) -> web.StreamResponse:
    message = "The authenticator app is removed, and its recovery codes."
    return await _done(visit, REMOVE_TOTP, pb.RemoveTotpRequest(), "totp", message)


async def make_codes(visit: Visit) -> web.StreamResponse:
    try:
        answer = await visit.call(CODES, pb.MakeRecoveryCodesRequest())
    except Refusal as refusal:
        return await _failed(visit, "totp", refusal)
    return await _account(visit, codes=answer.recovery_codes)


async def end_session(visit: Visit) -> web.StreamResponse:
    """One of the account's sessions, or all others."""
    number = visit.form.get("session_id", "")
    request = pb.EndSessionRequest(others=True)
    if number.isascii() and number.isdigit() and len(number) < 19:
        request = pb.EndSessionRequest(session_id=int(number))
    return await _done(visit, END, request, "sessions", "Ended. Its user has to sign in again.")


async def set_theme(visit: Visit) -> web.StreamResponse:
    theme = visit.form.get("theme", "")
    if theme in THEMES:
        visit.cookies[THEME_COOKIE] = theme, COOKIE_YEAR
    return visit.redirect(f"{PATH}#theme")
