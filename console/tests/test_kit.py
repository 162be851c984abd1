"""Parts of the kit, without a page."""

from __future__ import annotations

import asyncio
import datetime
import zoneinfo
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict, MultiDictProxy

from chassis.refusals import Refusal
from chassis.writes.idempotency import KEY_CHARACTERS_MAX
from console.areas.company.audit import changes_of, doing, merged, next_cursor, read_cursor
from console.areas.keys.pages import usage_by_key
from console.kit import attempt_words, browser_secret, charts, csv_files, flash, form_tokens, links, texts, times
from console.kit.browser_secret import BrowserSecret, renewed
from console.kit.browser_session import ADMINISTRATORS, EVERYBODY, NOBODY, BrowserSession
from console.kit.context import Page, PageContext, Site
from console.kit.forms import TEXT_CHARACTERS_MAX, Edit, Field, Form
from console.kit.live import Live, address, matching, topics_of
from console.kit.panels import include
from console.kit.statics import Statics
from console.kit.templating import environment
from console.pages import PAGES
from makeready.catalog.v1 import inspection_commands_pb2 as inspections_pb
from makeready.catalog.v1 import meter_commands_pb2, place_commands_pb2
from makeready.common.v1 import audit_pb2
from makeready.identity.v1 import identity_pb2, key_usage_pb2, sessions_pb2
from makeready.webhooks.v1 import webhooks_pb2

from .stubs import NOW, ago

NEW_YORK = zoneinfo.ZoneInfo("America/New_York")


def test_a_form_token_is_of_its_key_and_path_alone_for_less_than_the_ledger_remembers() -> None:
    token = form_tokens.new_token(b"key", "/keys/new", NOW)
    assert form_tokens.is_valid(token, b"key", "/keys/new", NOW)
    assert token != form_tokens.new_token(b"key", "/keys/new", NOW)
    for key, path in ((b"other", "/keys/new"), (b"key", "/keys"), (b"", "/keys/new"), (b"key", "/keys/new/")):
        assert not form_tokens.is_valid(token, key, path, NOW)
    days = [-2, -1, 0, form_tokens.DAYS_MAX, form_tokens.DAYS_MAX + 1, 60_000]
    valid = [form_tokens.is_valid(token, b"key", "/keys/new", NOW + datetime.timedelta(days=n)) for n in days]
    assert valid == [False, True, True, True, False, False]


def test_a_page_that_is_sent_several_times_marks_each() -> None:
    token = form_tokens.new_token(b"key", "/", NOW)
    for mark, fits in (("~a1Z9", True), ("~a1Z", False), ("~a1Z99", False), ("~a1Z.", False), ("a1Z9", False)):
        assert form_tokens.is_valid(token + mark, b"key", "/", NOW) is fits
    assert len(token + "~a1Z9") + len(".1234567890") <= KEY_CHARACTERS_MAX


def test_a_text_of_a_template_escapes_its_values_alone() -> None:
    template = environment(Statics()).from_string(
        "{{ _('Assign to <b>%(name)s</b>', name=name) }} "
        "{{ ngettext('%(num)s ticket of %(name)s', '%(num)s tickets of %(name)s', 2, name=name) }} "
        "{% trans %}by {{ name }}{% endtrans %}"
    )
    page = template.render(name="<i>Dana</i>")
    assert page == (
        "Assign to <b>&lt;i&gt;Dana&lt;/i&gt;</b> 2 tickets of &lt;i&gt;Dana&lt;/i&gt; by &lt;i&gt;Dana&lt;/i&gt;"
    )
    assert texts.ngettext("%(num)s ticket", "%(num)s tickets", 1) % {"num": 1} == "1 ticket"


def test_an_attempt_is_made_with_the_next_sweep_on_the_hour() -> None:
    """A date that a delivery has had since 3:31 is no hour at which anything happens (spec 6.3)."""
    now = datetime.datetime(2026, 11, 22, 15, 40, tzinfo=datetime.UTC)
    hours = []
    for hour, minute in ((15, 31), (15, 59), (16, 0), (16, 31), (3, 0)):
        due = Timestamp()
        due.FromDatetime(datetime.datetime(2026, 11, 22, hour, minute, tzinfo=datetime.UTC))
        hours.append(attempt_words.sweep_of(due, now).hour)
    assert hours == [16, 16, 16, 17, 16]


def test_an_action_reads_well_before_its_record() -> None:
    words = [doing(action) for action in (
        "unit.contacts_viewed", "session.started", "key.minted", "ticket.status_changed", "inspection.row_failed",
        "subscription.tested", "ticket.opened",
    )]  # fmt: skip
    assert words == [
        "viewed contacts of", "signed in", "created", "changed the status of", "failed an item of", "sent a test to",
        "opened",
    ]  # fmt: skip


@given(st.text(max_size=60))
def test_no_text_is_a_form_token_by_chance(text: str) -> None:
    assert not form_tokens.is_valid(text, b"key", "/", NOW)


def test_one_value_has_one_text() -> None:
    token = form_tokens.new_token(b"s", "/", NOW)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert [letter for letter in letters if form_tokens.is_valid(token[:-1] + letter, b"s", "/", NOW)] == [token[-1]]


def _person(company_id: int, actor: str) -> sessions_pb2.Session:
    who = sessions_pb2.Session(company_id=company_id, actor=actor)
    who.idle_ends_at.FromDatetime(NOW + datetime.timedelta(hours=8))
    who.ends_at.FromDatetime(NOW + datetime.timedelta(hours=23))
    return who


def test_a_browser_has_a_key_for_each_purpose_person_and_company() -> None:
    browser, other = BrowserSecret("text", 0), BrowserSecret("other", 0)
    people = [None, _person(1, "staff:7"), _person(1, "staff:8"), _person(2, "staff:7"), _person(1, "administrator:7")]
    keys = [secret.key(site, purpose, who) for secret in (browser, other) for site in (b"site", b"else")
            for purpose in ("forms", "store") for who in people]  # fmt: skip
    assert len(set(keys)) == len(keys)


def test_the_secret_of_a_browser_is_over_a_day_after_the_session() -> None:
    who, day, hour = _person(1, "staff:7"), 86400, 3600
    secret = renewed(None, who, NOW)
    assert secret.ends_at == who.idle_ends_at.seconds + day
    cookie = secret.sealed(b"site")
    assert browser_secret.read(cookie, b"site", NOW) == secret
    assert browser_secret.read(cookie, b"site", NOW + datetime.timedelta(hours=31)) == secret
    assert browser_secret.read(cookie, b"site", NOW + datetime.timedelta(hours=32)) is None
    later = cookie.replace(str(secret.ends_at), str(secret.ends_at + 1))
    other = "y" if cookie.startswith("x") else "x"
    for forged in (later, other + cookie[1:], cookie[:-1] + "-", "", cookie + "x"):
        assert browser_secret.read(forged, b"site", NOW) is None
    assert browser_secret.read(cookie, b"else", NOW) is None
    # It follows the session, not with each page; it is cut when the session is found to be over, and never grows again.
    assert renewed(secret, who, NOW) == secret
    who.idle_ends_at.seconds += hour
    assert renewed(secret, who, NOW) == BrowserSecret(secret.text, secret.ends_at + hour)
    cut = renewed(secret, None, NOW)
    assert cut == BrowserSecret(secret.text, int(NOW.timestamp()) + day)
    assert renewed(cut, None, NOW + datetime.timedelta(hours=22)) == cut
    assert renewed(cut, None, NOW + datetime.timedelta(hours=23, seconds=1)).text != cut.text
    assert renewed(cut, who, NOW).text == cut.text


@given(st.text(max_size=200))
def test_a_flash_message_is_read_by_its_session_alone(text: str) -> None:
    message = flash.Flash(text, flash.Undo("/tickets/bulk/undo", 7, "/tickets"), "token")
    value = flash.sealed(message, "session")
    assert flash.unsealed(value, "session") == message
    assert flash.unsealed(value, "other") == flash.unsealed(value + "x", "session") == flash.Flash()
    assert flash.unsealed(text, "session") == flash.Flash()


@given(st.text(max_size=40))
def test_a_path_after_the_sign_in_stays_on_this_site(text: str) -> None:
    path = links.own_path(text)
    assert path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()


def test_a_record_leads_to_its_page_where_there_is_one() -> None:
    paths = {page.path for page in PAGES}
    assert links.of_record("key", 3, paths) == "/keys/3"
    assert links.of_record("key", 3, set()) == "" and links.of_record("sweep", 3, paths) == ""


@pytest.mark.parametrize("at", [datetime.datetime.min, datetime.datetime.max])
def test_both_ends_of_the_calendar_are_shown(at: datetime.datetime) -> None:
    """Imports may have readings and notices of any instant, which another zone's calendar may lack."""
    at = at.replace(tzinfo=datetime.UTC)
    for zone in ("America/New_York", "Europe/Berlin"):
        assert f">{at.day} " in times.Wall(zone, NOW).moment(at)
        request = meter_commands_pb2.RecordReadingRequest(period_start=at.isoformat())
        form = Form(request, [Field("period_start", "From", kind="datetime")], zoneinfo.ZoneInfo(zone))
        assert datetime.datetime.fromisoformat(form.values["period_start"]).year == at.year


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (20, "20 seconds ago"), (60, "1 minute ago"), (7200, "2 hours ago"), (-90, "in 1 minute")],
)
def test_lengths_of_time_in_words(seconds: int, words: str) -> None:
    assert times.ago(NOW - datetime.timedelta(seconds=seconds), NOW) == words


@pytest.mark.parametrize(
    ("hours", "words"),
    [(0, "10:00 am"), (11, "yesterday, 11:00 pm"), (-3, "1:00 pm"), (72, "Thu 19 Nov, 10:00 am"),
     (24 * 40, "13 October"), (24 * 400, "18 October 2025"), (-24, "tomorrow, 10:00 am")],
)  # fmt: skip
def test_moments_are_those_of_the_companys_wall_clock(hours: int, words: str) -> None:
    assert times.Wall("America/New_York", NOW).text(NOW - datetime.timedelta(hours=hours)) == words


def test_a_time_bears_its_instant_and_escapes() -> None:
    html = times.Wall("Nowhere/<b>", NOW).moment(NOW)
    assert 'datetime="2026-11-22T15:00:00Z"' in html and "<b>" not in html
    assert times.Wall("UTC", NOW).moment(None) == "&ndash;"


@pytest.mark.parametrize(("number", "words"), [(1, "1 delivery"), (2, "2 deliveries"), (1200, "1,200 deliveries")])
def test_counts(number: int, words: str) -> None:
    assert times.count(number, "delivery") == words and times.count(2, "key") == "2 keys"


def sent(**values: str | list[str]) -> MultiDictProxy[str]:
    pairs: MultiDict[str] = MultiDict()
    for name, value in values.items():
        for text in [value] if isinstance(value, str) else value:
            pairs.add(name, text)
    return MultiDictProxy(pairs)


MINT = [Field("name", "Name", required=True), Field("scope", "Scope"), Field("expires_at", "Expires")]


def test_a_form_becomes_its_request() -> None:
    form = Form(identity_pb2.MintKeyRequest(), MINT, NEW_YORK)
    assert [form.fields[name].kind for name in ("name", "scope", "expires_at")] == ["text", "select", "date"]
    assert dict(form.fields["scope"].choices) == {"read": "read", "write": "write", "webhook_only": "webhook_only"}
    assert form.read(sent(name=" Sync ", scope="write", expires_at="2027-01-31"))
    assert (form.message.name, form.message.scope) == ("Sync", identity_pb2.SCOPE_WRITE)
    assert form.message.expires_at.ToJsonString() == "2027-01-31T05:00:00Z"


def test_a_form_says_what_cannot_be_read_and_keeps_it() -> None:
    form = Form(identity_pb2.MintKeyRequest(), MINT)
    assert not form.read(sent(name=" ", scope="all", expires_at="soon"))
    assert form.errors.keys() == {"name", "scope", "expires_at"} and form.values["expires_at"] == "soon"
    form.refuse(Refusal(422, "x", "It is taken.", "name"))
    form.refuse(Refusal(422, "x", "Not now.", "elsewhere"))
    assert form.errors["name"] == "It is taken." and form.fault == "Not now."


def test_a_text_keeps_its_lines_and_is_never_cut_off() -> None:
    form = Form(identity_pb2.MintKeyRequest(), MINT)
    assert form.read(sent(name="one\r\ntwo", scope="read")) and form.message.name == "one\ntwo"
    longest = "x" * TEXT_CHARACTERS_MAX
    assert form.read(sent(name=longest, scope="read")) and form.message.name == longest
    assert not form.read(sent(name=longest + "x", scope="read")) and form.values["name"] == longest + "x"
    assert form.errors == {"name": "Name may have 20,000 characters at most."}
    edit = meter_edit(name=longest + "x")
    assert edit.read(as_seen(edit, unit_of_measure="kWh")) and edit.changed == {"unit_of_measure"}


def test_several_choices_of_one_field() -> None:
    choices = [("ticket.created", "created"), ("ticket.commented", "commented")]
    form = Form(webhooks_pb2.AddSubscriptionRequest(), [Field("events", "Events", choices=choices, required=True)])
    assert form.fields["events"].kind == "checkboxes"
    assert form.read(sent(events=["ticket.created", "ticket.commented"]))
    assert list(form.message.events) == ["ticket.created", "ticket.commented"]
    assert not form.read(sent(events=["ticket.forged"])) and not form.read(sent())


def test_a_number_and_a_tick() -> None:
    form = Form(identity_pb2.RotateKeyRequest(), [Field("overlap_days", "Days")])
    for text in ("x", "-1", "1e3", "99999999999"):
        assert not form.read(sent(overlap_days=text))
    assert form.read(sent(overlap_days="1,000")) and form.message.overlap_days == 1000
    tick = Form(identity_pb2.UpdateCompanyRequest(second_factor_required=True), [Field("second_factor_required", "It")])
    assert tick.read(sent()) and tick.message.HasField("second_factor_required")
    assert tick.message.second_factor_required is False


METER = [
    Field("name", "Name", required=True),
    Field("unit_id", "Unit", kind="picker"),
    Field("utility_type", "Measures", required=True),
    Field("unit_of_measure", "Unit of measure"),
    Field("is_active", "In use"),
]


def meter_edit(**now: Any) -> Edit:
    values = {"name": "House", "utility_type": meter_commands_pb2.UTILITY_TYPE_GAS, "is_active": True, **now}
    return Edit(meter_commands_pb2.UpdateMeterRequest(meter_id=31, **values), METER)


def as_seen(form: Edit, **changed: str) -> MultiDictProxy[str]:
    """What a browser sends of the form, with some inputs changed; an empty tick is not sent."""
    assert form.seen is not None
    values = {**{name: str(value) for name, value in form.values.items()}, **changed}
    if not values["is_active"]:
        del values["is_active"]
    return sent(**values, **{f"seen.{name}": str(value) for name, value in form.seen.items()})


def test_an_edit_sends_what_was_changed_alone() -> None:
    opened = meter_edit(unit_of_measure="m3", unit_id=12)
    form = meter_edit(unit_of_measure="m3", unit_id=12)
    assert form.read(as_seen(opened)) and not form.changed and form.message == pb_meter()
    assert form.read(as_seen(opened, name=" Garden ", unit_of_measure="", is_active=""))
    request = pb_meter(name="Garden", is_active=False, clear=["unit_of_measure"])
    assert form.changed == {"name", "unit_of_measure", "is_active"} and form.message == request
    assert not form.read(as_seen(opened, name="")) and form.errors == {"name": "Name is required."}


def pb_meter(**values: Any) -> meter_commands_pb2.UpdateMeterRequest:
    return meter_commands_pb2.UpdateMeterRequest(meter_id=31, **values)


def test_two_who_edit_one_record_undo_nothing_of_each_other() -> None:
    opened = meter_edit()
    form = meter_edit(name="Theirs")  # somebody else was faster
    assert form.read(as_seen(opened, unit_of_measure="kWh"))
    assert form.message == pb_meter(unit_of_measure="kWh") and form.values["name"] == "Theirs"
    assert not form.read(as_seen(opened, name="Mine"))
    assert "“Theirs”" in form.errors["name"] and form.values["name"] == "Mine"
    again = meter_edit(name="Theirs")
    assert again.read(as_seen(form)) and again.message == pb_meter(name="Mine")


def test_a_button_of_a_picker_is_no_act() -> None:
    form = Form(meter_commands_pb2.AddMeterRequest(), METER)
    assert not form.read(sent(find="unit_id", **{"q.unit_id": " 4b "}, unit_of_measure="kWh"))
    assert (form.status, form.errors, form.words["unit_id"]) == (200, {}, "4b")
    assert form.values["unit_of_measure"] == "kWh"
    assert not form.read(sent()) and form.status == 422
    # Words without a choice: the form is asked again, for the person meant one of those.
    assert not form.read(sent(**{"q.unit_id": "4b"})) and "unit_id" in form.errors
    edit = Edit(inspections_pb.UpdateInspectionRequest(), [Field("unit_id", "Unit", kind="picker")])
    assert not edit.read(sent(**{"q.unit_id": "4b"})) and "unit_id" in edit.errors
    assert edit.read(sent(unit_id="9", **{"q.unit_id": "4b"})) and edit.message.unit_id == 9
    # Lines of a text are a repeated field.
    lines = Form(inspections_pb.ScheduleInspectionRequest(row=["a"]), [Field("row", "Rows", kind="lines")])
    assert lines.values["row"] == "a"
    assert lines.read(sent(row=" Door \r\n\r\nRoof")) and list(lines.message.row) == ["Door", "Roof"]


def test_decimals_days_and_times() -> None:
    fields = [
        Field("consumption", "Consumption"),
        Field("period_start", "From", kind="datetime"),
        Field("cost", "Cost"),
    ]
    form = Form(meter_commands_pb2.RecordReadingRequest(), fields, NEW_YORK)
    for text in ("1,5", "1e3", "nan", "--1", "1.", "٣", "1,23,4"):
        assert not form.read(sent(consumption=text)), text
    assert form.read(sent(consumption="-1,234.50", period_start="2026-07-01T00:00"))
    assert (form.message.consumption, form.message.HasField("cost")) == (-1234.5, False)
    assert form.message.period_start == "2026-07-01T00:00:00-04:00"
    assert not form.read(sent(consumption="1", period_start="yesterday"))
    filled_form = Form(meter_commands_pb2.RecordReadingRequest(period_start="2026-01-01T05:00:00Z"), fields, NEW_YORK)
    assert filled_form.values["period_start"] == "2026-01-01T00:00"
    day = Form(place_commands_pb2.AddAssetRequest(), [Field("installed_on", "Installed", kind="date")], NEW_YORK)
    assert day.read(sent(installed_on="2026-07-01")) and day.message.installed_on == "2026-07-01"
    assert not day.read(sent(installed_on="2026-02-30"))


def test_an_address_presets_what_fits() -> None:
    form = Form(meter_commands_pb2.AddMeterRequest(), METER)
    form.preset({"unit_id": "15", "utility_type": "steam", "name": "x"}, "unit_id", "utility_type")
    assert (form.values["unit_id"], form.values["utility_type"], form.values["name"]) == ("15", "", "")


async def test_a_csv_runs_no_formula() -> None:
    answer = csv_files.answer("keys", ("a", "b"), [("=1+1", -5), ("@x", None)])
    assert answer.body == b"\xef\xbb\xbfa,b\r\n'=1+1,-5\r\n'@x,\r\n"
    hostile = csv_files.answer("keys", ("a", "b"), [("\uff201", "Hello\n=cmd|' /C calc'!A0")])
    assert isinstance(hostile.body, bytes)
    assert hostile.body.decode("utf-8-sig").splitlines()[1:] == ["'\uff201,\"Hello", "'=cmd|' /C calc'!A0\""]


def test_usage_is_by_hour() -> None:
    end = NOW + datetime.timedelta(minutes=30)
    hour = [key_usage_pb2.KeyUsage(key_id=1, hour=ago(hours=at), succeeded=at + 1, refused=1) for at in (0, 1, 23, 24)]
    usage = usage_by_key(hour, end)[1]
    assert (usage.bars[-1], usage.bars[-2], usage.bars[0]) == (2, 3, 25)
    assert (usage.total, usage.refused) == (30, 3)


def entry(number: int, at: datetime.datetime) -> audit_pb2.AuditEntry:
    audit_entry = audit_pb2.AuditEntry(id=number)
    audit_entry.recorded_at.FromDatetime(at)
    return audit_entry


@given(
    st.lists(st.tuples(st.sampled_from(["gateway", "svc-tickets"]), st.integers(0, 5)), max_size=40), st.integers(1, 9)
)
def test_pages_of_merged_logs_leave_no_entry_out(written: list[tuple[str, int]], limit: int) -> None:
    logs: dict[str, list[audit_pb2.AuditEntry]] = {"gateway": [], "svc-tickets": []}
    now = NOW
    for number, (service, seconds) in enumerate(written, 1):
        now += datetime.timedelta(seconds=seconds)
        logs[service].insert(0, entry(number, now))
    seen: list[tuple[str, int]] = []
    cursor = ""
    for _ in range(len(written) + 1):
        before = read_cursor(cursor)
        pages = {
            service: [logged for logged in log if logged.id < before.get(service, 10**9)][:limit]
            for service, log in logs.items()
        }
        newest = merged(pages, limit)
        seen += [(service, logged.id) for service, logged in newest]
        cursor = next_cursor(before, newest)
    assert sorted(seen) == sorted((service, number) for number, (service, _) in enumerate(written, 1))


def test_a_cursor_of_anybody_is_read_without_a_fault() -> None:
    assert read_cursor("gateway.41_svc-tickets.7") == {"gateway": 41, "svc-tickets": 7}
    for text in ("", "x", "gateway.-1", "gateway.x", "evil.5", "gateway." + "9" * 30, "_._."):
        assert read_cursor(text) == {}


def test_changes_before_and_after() -> None:
    changes = changes_of(audit_pb2.AuditEntry(before=b'{"a": 1, "b": "x"}', after=b'{"b": "y", "c": null, "a": 1}'))
    assert [(change.field, change.before, change.after) for change in changes] == [("b", "x", "y")]


def test_charts_escape_what_they_show() -> None:
    drawn = charts.columns([1], [2], ["<b>"], "<i>", [(0, "<u>")]) + charts.spans([("<s>", 0, 5)], 5, "ms")
    assert not any(tag in drawn for tag in ("<b>", "<i>", "<u>", "<s>"))
    assert charts.spark([]) and charts.columns([], [], [], "none")


def _page(path: str, run: Any, kinds: frozenset[str] = EVERYBODY, panel: str = "Things") -> Page:
    return Page("GET", path, run, kinds, panel=panel)


async def test_what_a_page_includes_can_change_nothing_of_it() -> None:
    """Whatever a panel does, the page gets its HTML, its only hit, or the sentence that it is missing."""

    async def shows(context: PageContext) -> web.StreamResponse:
        context.cookies["theft"] = "x", None
        return web.Response(text=f"<p>{context.query['unit_id']} at {context.address}, {context.is_part}</p>")

    async def leads(context: PageContext) -> web.StreamResponse:
        return context.redirect(context.query["to"], "said")

    async def fails(_context: PageContext) -> web.StreamResponse:
        raise ZeroDivisionError

    async def finds_nothing(_context: PageContext) -> web.StreamResponse:
        raise Refusal(404, "not_found", "No <unit> with that id.")

    async def hangs(_context: PageContext) -> web.StreamResponse:
        await asyncio.sleep(60)
        raise AssertionError

    async def loops(context: PageContext) -> web.StreamResponse:
        await include(context, "/loops")
        raise SystemExit

    pages = [
        _page("/shows", shows), _page("/leads", leads), _page("/fails", fails), _page("/404", finds_nothing),
        _page("/hangs", hangs), _page("/loops", loops), _page("/other", shows, ADMINISTRATORS),
    ]  # fmt: skip
    nothing: Any = None
    site = Site(
        url="http://x",
        api_url="",
        sessions=nothing,
        calls=nothing,
        templates=environment(Statics()),
        statics=Statics(),
        pages=pages,
        now=lambda: NOW,
        live=Live(None),
        files=nothing,
        saved_views=nothing,
        bulk_acts=nothing,
        first_steps=nothing,
        act_addresses=nothing,
        key=b"key",
    )
    page, session = _page("/units/{unit_id}", shows, panel=""), BrowserSession(lambda: NOW)
    context = PageContext(make_mocked_request("GET", "/units/17?a=1"), site, page, "id", session)
    assert context.session.kind == NOBODY
    included = await include(context, "/shows", unit_id=17, empty=None)
    assert (included.html, included.ok, bool(included)) == ("<p>17 at /shows?unit_id=17, True</p>", True, True)
    assert (await include(context, "/leads", to="/tickets/4")).location == "/tickets/4"
    assert (await include(context, "/leads", to="//evil.example")).location == "/"
    for path in ("/nowhere", "/other"):
        empty = await include(context, path)
        assert not empty and empty.ok
    for path in ("/fails", "/loops", "/hangs"):
        missing = await include(context, path, unit_id=17)
        assert not missing.ok and "Things: unavailable right now." in missing.html
        assert f'hx-get="{path}?unit_id=17"' in missing.html and 'href="/units/17?a=1"' in missing.html
    assert "No &lt;unit&gt; with that id." in (await include(context, "/404")).html
    assert context.cookies == {} and context.query == {"a": "1"} and not context.is_part


def test_a_hint_is_about_a_record_and_about_its_kind() -> None:
    topics = topics_of("ticket-41,ticket,unit-4,turn_task-41")
    assert matching(topics, "ticket", "41") == {"ticket-41", "ticket"}
    assert matching(topics, "ticket", "4") == {"ticket"}
    assert matching(topics, "ticket", "0") == {"ticket-41", "ticket"}
    assert matching(topics, "turn_task", "41") == {"turn_task-41"} and matching(topics, "task", "41") == set()


def test_a_page_with_too_many_records_listens_to_their_kinds() -> None:
    few = address({"unit", "ticket-41"}, 1.5)
    assert few == "/live?topics=ticket-41,unit&since=1500"
    many = address({f"ticket-{number}" for number in range(1, 40)} | {"unit-1"}, 0)
    assert many == "/live?topics=ticket,unit&since=0"


@pytest.mark.parametrize(
    ("phone", "path"),
    [
        ("+1 (503) 555-0142", "tel:+15035550142"), ("503.555.0142 x12", "tel:5035550142;ext=12"), ("911", "tel:911"),
        ("020 7946 0958 ext. 7", "tel:02079460958;ext=7"), ("1-800-FLOWERS", ""), ("", ""), ("none", ""), ("12", ""),
        ('"><script>1234567', ""), ("+1 503 555 0142 #9", "tel:+15035550142;ext=9"),
    ],
)  # fmt: skip
def test_a_phone_number_is_called_as_it_is_written(phone: str, path: str) -> None:
    assert links.tel(phone) == path


def test_an_address_that_is_none_is_no_link() -> None:
    assert links.mailto("Ana.O'Neil+x@example.com") == "mailto:Ana.O%27Neil%2Bx@example.com"
    assert links.mailto("a?subject=x@example.com") == "mailto:a%3Fsubject%3Dx@example.com"
    assert {links.mailto(text) for text in ("", "ana", "@x.com", 'a@"><b', "a@b@c", "a@b c", "a@b?cc=d")} == {""}
