"""The pages of API keys."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aiohttp import web
from markupsafe import Markup

from chassis.refusals import Refusal
from console.kit import charts, csv_files, filters
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.links import with_query
from console.kit.texts import _
from console.kit.times import clock, instant
from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1 import key_usage_pb2 as usage_pb
from makeready.identity.v1 import requests_pb2

HERE = "API keys"
LIST = "identity.KeysService/ListKeys"
GET = "identity.KeysService/GetKey"
MINT = "identity.KeysService/MintKey"
ROTATE = "identity.KeysService/RotateKey"
REVOKE = "identity.KeysService/RevokeKey"
TAKE_OVER = "identity.KeysService/TakeOverKeys"
USAGE = "identity.KeyUsageService/ListKeyUsage"
REQUESTS = "identity.RequestLogService/ListRequests"

KEYS_MAX = 200
HOURS = 24
REFUSED, REFUSED_SHOWN = "4xx", 50
SCOPES = (
    ("read", _("read: view everything, change nothing")),
    ("write", _("write: view, create and change")),
    ("webhook_only", _("webhook_only: create, list and delete webhooks only")),
)
OVERLAPS = (("7", "7 days"), ("1", "1 day"), ("14", "14 days"), ("30", "30 days"), ("0", _("Revoke immediately")))
NAME_MAX = {"maxlength": "200"}
SOON = datetime.timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Usage:
    """The requests of one key in the last 24 hours. bars: all of an hour; bad: those of it that got an error."""

    bars: Sequence[int]
    bad: Sequence[int]
    total: int
    refused: int


NO_USAGE = Usage((0,) * HOURS, (0,) * HOURS, 0, 0)


def usage_by_key(hours: Iterable[usage_pb.KeyUsage], end: datetime.datetime) -> dict[int, Usage]:
    """Sums by key; end: the instant after the last hour, which has the last bar."""
    bars: defaultdict[int, list[int]] = defaultdict(lambda: [0] * HOURS)
    bad: defaultdict[int, list[int]] = defaultdict(lambda: [0] * HOURS)
    refused: defaultdict[int, int] = defaultdict(int)
    for hour in hours:
        index = HOURS - 1 - int((end - hour.hour.ToDatetime(datetime.UTC)).total_seconds() - 1) // 3600
        if 0 <= index < HOURS:
            wrong = hour.refused + hour.rate_limited + hour.failed
            bars[hour.key_id][index] += hour.succeeded + wrong
            bad[hour.key_id][index] += wrong
            refused[hour.key_id] += hour.refused + hour.rate_limited
    return {key: Usage(tuple(values), tuple(bad[key]), sum(values), refused[key]) for key, values in bars.items()}


def is_over(key: pb.Key, now: datetime.datetime) -> bool:
    """Whether the key is revoked or has expired."""
    ends = key.HasField("expires_at") and key.expires_at.ToDatetime(datetime.UTC) <= now
    return key.HasField("revoked_at") or ends


def is_left(key: pb.Key) -> bool:
    """Whether the key's administrator is deactivated."""
    return key.HasField("administrator_active") and not key.administrator_active


async def list_keys(context: PageContext) -> web.StreamResponse:
    return await _list(context)


async def home(context: PageContext) -> web.StreamResponse:
    """The panel of the first page: which keys need attention, and when each was used last."""
    company, now = context.session.person.company_id, context.site.now()
    since = requests_pb2.ListRequestsRequest(company_id=company, status=REFUSED, limit=KEYS_MAX)
    since.since.FromDatetime(now - datetime.timedelta(hours=HOURS))
    page, refused = await together(
        context.rpcs.call(LIST, pb.ListKeysRequest(company_id=company, limit=KEYS_MAX, active_only=True)),
        context.rpcs.panel(REQUESTS, since),
    )
    ending = [key for key in page.keys if (end := instant(key.expires_at)) and end - now < SOON]
    unused = [key for key in page.keys if not key.HasField("last_used_at")]
    of_leavers = [key for key in page.keys if is_left(key)]
    old = [request for request in refused.requests if request.code == "key_revoked"] if refused.ok else []
    return context.render(
        "keys/home.html", keys=page.keys, refused=refused, ending=ending, unused=unused, of_leavers=of_leavers, old=old
    )


async def _list(context: PageContext, **more: object) -> web.Response:
    company = context.session.person.company_id
    wants_over = "over" in context.query
    keys, refused = await together(
        context.rpcs.call(LIST, pb.ListKeysRequest(company_id=company, limit=KEYS_MAX, after_id=_after(context))),
        context.rpcs.panel(
            REQUESTS, requests_pb2.ListRequestsRequest(company_id=company, status=REFUSED, limit=REFUSED_SHOWN)
        ),
    )
    now = context.site.now()
    listed = [key for key in keys.keys if is_over(key, now) == wants_over]
    over = sum(is_over(key, now) for key in keys.keys)
    usage = await _usage(context, [key.id for key in listed])
    names = {key.id: key.name or f"{key.prefix}…" for key in keys.keys}
    if "csv" in context.query:
        return _csv(listed, usage)
    # By administrator who is deactivated: their name and how many of their keys work.
    leavers = Counter(
        (key.administrator_id, key.administrator_name or key.administrator_email)
        for key in keys.keys
        if is_left(key) and not is_over(key, now)
    )
    after = with_query("/keys", {"after": keys.next_after_id}) if keys.HasField("next_after_id") else ""
    return context.render(
        "keys/list.html", here=HERE, keys=listed, over=over, wants_over=wants_over, usage=usage, no_usage=NO_USAGE,
        refused=refused, names=names, after=after, working=len(keys.keys) - over, is_left=is_left,
        leavers=[(*who, number) for who, number in leavers.items()], **more,
    )  # fmt: skip


def _after(context: PageContext) -> int | None:
    return filters.number(context.query.get("after", ""))


async def _usage(context: PageContext, ids: Sequence[int]) -> Panel[dict[int, Usage]]:
    if not ids:
        return Panel({})
    request = usage_pb.ListKeyUsageRequest(company_id=context.session.person.company_id, key_ids=ids[:KEYS_MAX])
    response = await context.rpcs.panel(USAGE, request)
    if not response.ok:
        return response
    end = instant(response.counted_to) or context.site.now()
    return Panel(usage_by_key(response.hours, end))


def _csv(keys: Sequence[pb.Key], usage: Panel[dict[int, Usage]]) -> web.Response:
    header = (
        "id",
        "name",
        "prefix",
        "scope",
        "created_at",
        "minted_by",
        "last_used_at",
        "expires_at",
        "revoked_at",
        "requests_24h",
        "minter_deactivated",
    )
    sums = usage.value or {}
    rows = []
    for key in keys:
        by, instants = (
            key.administrator_name or key.administrator_email,
            (key.last_used_at, key.expires_at, key.revoked_at),
        )
        row = [
            key.id,
            key.name,
            key.prefix,
            scope_of(key),
            csv_files.stamp(key.created_at),
            by,
            *map(csv_files.stamp, instants),
        ]
        rows.append([*row, sums.get(key.id, NO_USAGE).total, "yes" if is_left(key) else "no"])
    return csv_files.answer("api-keys", header, rows)


def scope_of(key: pb.Key) -> str:
    """ "read", "write" or "webhook_only" """
    return pb.Scope.Name(key.scope).removeprefix("SCOPE_").lower()


def _mint_form(context: PageContext) -> Form:
    today = context.wall.now.date().isoformat()
    return Form(
        pb.MintKeyRequest(scope=pb.SCOPE_READ),
        [
            Field("name", "Name", _("The system that will use it, for example “Accounting export”."),
                  required=True, more=NAME_MAX),
            Field("scope", "Scope", _("Choose the least it needs."), kind="radios", choices=SCOPES, required=True),
            Field("expires_at", _("Expires on"), _("Optional. Requests are refused from that day on."),
                  more={"min": today}),
        ],
        context.wall.zone,
    )  # fmt: skip


async def show_mint(context: PageContext) -> web.StreamResponse:
    return context.render("keys/mint.html", here=HERE, form=_mint_form(context))


async def mint(context: PageContext) -> web.StreamResponse:
    """Shows the new key once, above the list."""
    form = _mint_form(context)
    if form.read(context.form):
        form.message.company_id, form.message.idempotency_key = context.session.person.company_id, context.form_token
        try:
            minted = await context.rpcs.call(MINT, form.message)
        except Refusal as refusal:
            if refusal.code == "step_up_required":
                raise
            form.refuse(refusal)
        else:
            return await _list(context, minted=minted.key, minted_name=form.message.name, minted_id=minted.key_id)
    return context.render("keys/mint.html", 422, here=HERE, form=form)


async def show_key(context: PageContext) -> web.StreamResponse:
    return await _key(context)


async def _key(context: PageContext, status: int = 200, error: str = "", **more: object) -> web.Response:
    key_id, company = context.number("key_id"), context.session.person.company_id
    key = (await context.rpcs.call(GET, pb.GetKeyRequest(key_id=key_id))).key
    refused_request = requests_pb2.ListRequestsRequest(
        company_id=company, key_id=key_id, status=REFUSED, limit=REFUSED_SHOWN
    )
    if before := filters.number(context.query.get("before", "")):
        refused_request.before_id = before
    usage, refused = await together(_usage(context, [key_id]), context.rpcs.panel(REQUESTS, refused_request))
    return context.render(
        "keys/key.html", status, here=HERE, drawing=_drawing(context, (usage.value or {}).get(key_id, NO_USAGE)),
        key=key, scope=scope_of(key), over=is_over(key, context.site.now()), is_left=is_left(key),
        usage=usage, no_usage=NO_USAGE, refused=refused, overlaps=OVERLAPS, error=error, **more,
    )  # fmt: skip


def _drawing(context: PageContext, used: Usage) -> Markup:
    """The requests of the last 24 hours, hour by hour."""
    first = context.wall.now.replace(minute=0, second=0, microsecond=0) - datetime.timedelta(hours=HOURS - 1)
    hours = [clock(first + datetime.timedelta(hours=index)) for index in range(HOURS)]
    good = [every - bad for every, bad in zip(used.bars, used.bad, strict=True)]
    words = f"Requests by hour: {sum(good):,} succeeded, {sum(used.bad):,} got an error."
    marks = [(index, hours[index]) for index in range(0, HOURS, 6)]
    return charts.columns(good, used.bad, hours, words, marks, ("succeeded", _("failed")))


async def rotate(context: PageContext) -> web.StreamResponse:
    """Shows the new key once, on the page of the old one."""
    overlap = context.form.get("overlap_days", "")
    if overlap not in dict(OVERLAPS):
        return await _key(context, 422, _("Choose how long the old key keeps working."))
    request = pb.RotateKeyRequest(
        key_id=context.number("key_id"), idempotency_key=context.form_token, overlap_days=int(overlap)
    )
    try:
        rotated = await context.rpcs.call(ROTATE, request)
    except Refusal as refusal:
        if refusal.code == "step_up_required" or refusal.status == 404:
            raise
        return await _key(context, refusal.status, refusal.message)
    return await _key(context, minted=rotated.key, new_key=rotated.new_key)


async def revoke(context: PageContext) -> web.StreamResponse:
    """Wants the key's name typed, if it has one."""
    key_id = context.number("key_id")
    key = (await context.rpcs.call(GET, pb.GetKeyRequest(key_id=key_id))).key
    name = key.name or key.prefix
    if context.form.get("name", "").strip() != name.strip():
        return await _key(context, 422, _("Type the key's name exactly as shown to revoke it."))
    await context.rpcs.call(REVOKE, pb.RevokeKeyRequest(key_id=key_id))
    return context.redirect("/keys", _("“%(name)s” revoked. Requests with it are refused.") % {"name": name})


async def take_over(context: PageContext) -> web.StreamResponse:
    key_id = context.number("key_id")
    try:
        await context.rpcs.call(TAKE_OVER, pb.TakeOverKeysRequest(key_id=key_id, idempotency_key=context.form_token))
    except Refusal as refusal:
        if refusal.code == "step_up_required" or refusal.status == 404:
            raise
        return await _key(context, refusal.status, refusal.message)
    return context.redirect(
        f"/keys/{key_id}", _("You took over the key. Its changes are now recorded under your name.")
    )
