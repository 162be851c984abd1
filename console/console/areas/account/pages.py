"""The pages of the own account."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import segno
from aiohttp import web
from google.protobuf.message import Message
from markupsafe import Markup

from chassis.refusals import Refusal
from console.kit import confirming
from console.kit.calls import together
from console.kit.context import COOKIE_YEAR, SHORTCUTS_COOKIE, THEME_COOKIE, THEMES, PageContext
from console.kit.sending import needs_confirmation
from console.kit.texts import _
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
THEME_WORDS = (("auto", _("Same as this device")), ("light", _("Light")), ("dark", _("Dark")))


async def show_account(context: PageContext) -> web.StreamResponse:
    return await _account(context)


async def _account(
    context: PageContext, status: int = 200, errors: Mapping[str, str] | None = None, codes: Sequence[str] = ()
) -> web.Response:
    """errors: by the section of the page that they belong to."""
    account, sessions = await together(
        context.rpcs.call(GET, pb.GetAccountRequest()), context.rpcs.panel(SESSIONS, pb.ListSessionsRequest())
    )
    return context.render(
        "account/account.html", status, here=HERE, account=account.account, sessions=sessions, errors=errors or {},
        codes=codes, themes=THEME_WORDS,
    )  # fmt: skip


async def _done(context: PageContext, rpc: str, request: Message, section: str, message: str) -> web.StreamResponse:
    """Does the action and returns to the account's page, or shows why not beside the section."""
    try:
        await context.rpcs.call(rpc, request)
    except Refusal as refusal:
        return await _failed(context, section, refusal)
    context.site.sessions.forget(context.session.text)
    return context.redirect(PATH, message)


async def _failed(context: PageContext, section: str, refusal: Refusal) -> web.Response:
    if needs_confirmation(refusal) or refusal.code == "no_session":
        raise refusal
    return await _account(context, refusal.status, {section: refusal.message})


async def change_password(context: PageContext) -> web.StreamResponse:
    password = context.form.get("password", "")
    if password != context.form.get("again", ""):
        return await _account(context, 422, {"password": _("The passwords do not match.")})
    request = pb.ChangePasswordRequest(password=password[:PASSWORD_CHARACTERS_MAX])
    return await _done(context, PASSWORD, request, "password", _("Password changed. Your other sessions have ended."))


async def confirm(context: PageContext) -> web.StreamResponse:
    """Asks for a confirmation, for actions whose script could not show it."""
    return context.redirect(f"{PATH}#passkeys") if context.session.can_confirm else confirming.page(context)


async def start_passkey(context: PageContext) -> web.StreamResponse:
    """For console.js: what the browser makes a passkey of."""
    try:
        answer = await context.rpcs.call(START_PASSKEY, pb.StartAddingPasskeyRequest())
    except Refusal as refusal:
        return web.json_response({"error": refusal.message}, status=refusal.status)
    return web.json_response({"ceremony": answer.ceremony, "options": json.loads(answer.options_json)})


async def add_passkey(context: PageContext) -> web.StreamResponse:
    request = pb.FinishAddingPasskeyRequest(
        ceremony=context.form.get("ceremony", ""),
        credential_json=context.form.get("credential", ""),
        name=context.form.get("name", "").strip()[:200],
    )
    return await _done(context, FINISH_PASSKEY, request, "passkeys", _("Passkey added. Use it next time you sign in."))


async def remove_passkey(context: PageContext) -> web.StreamResponse:
    request = pb.RemovePasskeyRequest(passkey_id=context.number("passkey_id"))
    return await _done(context, REMOVE_PASSKEY, request, "passkeys", _("Passkey removed."))


async def enrol(context: PageContext) -> web.StreamResponse:
    """Shows the secret of an authenticator app once, as a QR code and as text."""
    try:
        answer = await context.rpcs.call(ENROL, pb.EnrolTotpRequest())
    except Refusal as refusal:
        return await _failed(context, "totp", refusal)
    return _enrol(context, answer.secret, answer.uri)


def _enrol(context: PageContext, secret: str, uri: str, status: int = 200, error: str = "") -> web.Response:
    image = segno.make(uri, error="m", micro=False).svg_inline(svgclass=None, lineclass=None, omitsize=True)
    return context.render(
        "account/totp.html", status, here=HERE, secret=secret, uri=uri, error=error,
        image=Markup(image),  # noqa: S704 - drawn from the address, which is in no text of it
    )  # fmt: skip


async def confirm_totp(context: PageContext) -> web.StreamResponse:
    """Shows the recovery codes once."""
    try:
        answer = await context.rpcs.call(CONFIRM, pb.ConfirmTotpRequest(code=context.form.get("code", "").strip()[:20]))
    except Refusal as refusal:
        uri, secret = context.form.get("uri", "")[:1000], context.form.get("secret", "")[:200]
        if needs_confirmation(refusal) or not uri.startswith("otpauth://totp/"):
            raise
        return _enrol(context, secret, uri, refusal.status, refusal.message)
    context.site.sessions.forget(context.session.text)
    return await _account(context, codes=answer.recovery_codes)


async def remove_totp(context: PageContext) -> web.StreamResponse:
    message = _("Authenticator app and recovery codes removed.")
    return await _done(context, REMOVE_TOTP, pb.RemoveTotpRequest(), "totp", message)


async def make_codes(context: PageContext) -> web.StreamResponse:
    try:
        answer = await context.rpcs.call(CODES, pb.MakeRecoveryCodesRequest())
    except Refusal as refusal:
        return await _failed(context, "totp", refusal)
    return await _account(context, codes=answer.recovery_codes)


async def end_session(context: PageContext) -> web.StreamResponse:
    """One of the account's sessions, or all others."""
    number = context.form.get("session_id", "")
    request = pb.EndSessionRequest(others=True)
    if number.isascii() and number.isdigit() and len(number) < 19:
        request = pb.EndSessionRequest(session_id=int(number))
    return await _done(context, END, request, "sessions", _("Session ended."))


async def set_shortcuts(context: PageContext) -> web.StreamResponse:
    is_on = context.form.get("shortcuts") == "1"
    context.cookies[SHORTCUTS_COOKIE] = ("", 0) if is_on else ("off", COOKIE_YEAR)
    return context.redirect(f"{PATH}#keyboard", _("Shortcuts are on.") if is_on else _("Shortcuts are off."))


async def set_theme(context: PageContext) -> web.StreamResponse:
    theme = context.form.get("theme", "")
    if theme in THEMES:
        context.cookies[THEME_COOKIE] = theme, COOKIE_YEAR
    return context.redirect(f"{PATH}#theme")
