"""Saved views of lists, without script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import asyncpg
import pytest

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import TokenSigner
from chassis.db.database import Database
from console.kit import links, views
from console.pages import PAGES
from console.purging import PeoplePurge
from console.saved_views import SavedViews
from makeready.identity.v1 import actors_pb2

from .browsing import Browser
from .samples import HOSTILE
from .stubs import Stubs

URGENT = "/tickets?priority=High&order=oldest"
SAMPLES = 3


@pytest.fixture(autouse=True)
async def clean(database_url: str, stubs: Stubs) -> AsyncIterator[asyncpg.Connection]:
    """Without views but those of the samples."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.execute("DELETE FROM default_view")
    await connection.execute("DELETE FROM saved_view WHERE id > $1", SAMPLES)
    await connection.close()


async def save(browser: Browser, address: str, name: str, **more: str) -> int:
    """Saves the filters of the list at the address; returns the view's id."""
    await browser.get(address)
    reply = await browser.send("/views", name=name, **more)
    assert reply.status == 303, reply.words
    page = await browser.follow(reply)
    assert f"View “{name}” saved." in page.words
    return int(page.text.partition("/views/")[2].partition("?")[0])


async def test_a_view_is_the_address_of_a_list_without_its_place(administrator: Browser) -> None:
    page = await administrator.get("/tickets")
    assert "Save view" not in page.words, "there are no filters"
    page = await administrator.get("/tickets?priority=High&q=&order=oldest&after=xyz&tick=all")
    form = administrator.form("/views")
    assert (form["list"], form["back"], form["query"]) == ("/tickets", "/tickets", "priority=High&order=oldest")
    reply = await administrator.post("/views", {**form, "name": " My  urgent ones "})
    assert (reply.status, reply.headers["Location"]) == (303, URGENT)
    again = await administrator.post("/views", {**form, "name": "My urgent ones"})
    assert again.status == 303, "the same form is the same view"
    page = await administrator.get("/tickets?order=oldest&priority=High")
    assert page.text.count(">My urgent ones<") == 1 and "Save view" not in page.words
    assert "Edit view" in page.words


async def test_a_shared_view_is_seen_by_colleagues_and_by_nobody_else(
    administrator: Browser, staff: Browser, stranger: Browser, signed_in: Callable[..., Browser]
) -> None:
    view_id = await save(staff, URGENT, "Mine alone")
    shared_id = await save(staff, "/tickets?status=On+Hold", f"Shared {HOSTILE[:20]}", shared="1")
    page = await administrator.get("/tickets")
    assert "Mine alone" not in page.words and "Shared" in page.words
    for path in (f"/views/{view_id}", f"/views/{shared_id}"):
        assert (await stranger.get(path)).status == 404, path
    assert "Shared" not in (await stranger.get("/tickets")).words
    assert (await administrator.get(f"/views/{view_id}")).status == 404
    # An administrator changes a shared one; another person only opens it.
    await administrator.get(f"/views/{shared_id}")
    reply = await administrator.send(f"/views/{shared_id}", name="On hold")
    assert reply.headers["Location"] == "/tickets?status=On+Hold"
    assert "On hold" in (await staff.get("/tickets")).words
    page = await staff.get("/views/1")
    assert "A colleague shares this view." in page.words and 'name="name"' not in page.text
    await staff.send("/views/1", name="Taken over", remove="1", default="1")
    assert "Taken over" not in (await staff.get("/views/1")).words
    # What is not shared any more is nobody's default either.
    await administrator.get(f"/views/{shared_id}")
    form = administrator.form(f"/views/{shared_id}")
    assert "shared" in form
    del form["shared"]
    await administrator.post(f"/views/{shared_id}", form)
    assert (await administrator.get(f"/views/{shared_id}")).status == 404


async def test_a_list_opens_with_the_default_from_the_menu_alone(administrator: Browser, staff: Browser) -> None:
    assert 'href="/tickets?default=1"' in (await administrator.get("/")).text
    assert (await administrator.get("/tickets?default=1")).status == 200, "without a default it is the list"
    view_id = await save(administrator, URGENT, "Urgent", default="1")
    reply = await administrator.get("/tickets?default=1")
    assert (reply.status, reply.headers["Location"]) == (303, URGENT)
    page = await administrator.get("/tickets")
    assert page.status == 200 and page.text.count('class="chip on" href="/tickets"') == 1, "a way to the plain list"
    assert (await staff.get("/tickets?default=1")).status == 200, "it is this person's alone"
    second = await save(administrator, "/tickets?view=closed", "Closed", default="1")
    assert (await administrator.get("/tickets?default=1")).headers["Location"] == "/tickets?view=closed"
    part = await administrator.get("/tickets?default=1", HX_Request_Type="partial")
    assert part.status == 200, "a region that is fetched anew stays what it is"
    await administrator.get(f"/views/{second}")
    form = administrator.form(f"/views/{second}")
    assert form.pop("default") == "1"
    await administrator.post(f"/views/{second}", form)
    assert (await administrator.get("/tickets?default=1")).status == 200
    await administrator.get(f"/views/{view_id}")
    reply = await administrator.send(f"/views/{view_id}", remove="1")
    assert "View “Urgent” removed." in (await administrator.follow(reply)).words
    assert (await administrator.get(f"/views/{view_id}")).status == 404


async def test_a_name_is_given_once_and_its_filters_can_be_replaced(administrator: Browser) -> None:
    view_id = await save(administrator, URGENT, "Urgent")
    await administrator.get("/tickets?priority=Emergency&category=Leak")
    for name, error in (("", "Name is missing."), ("x" * 61, "60 characters at most"), (" Urgent", "with that name")):
        reply = await administrator.send("/views", name=name, shared="1")
        assert reply.status == 422 and error in reply.words and "checked" in reply.text, name
    reply = await administrator.send("/views", replace=str(view_id))
    assert reply.headers["Location"] == "/tickets?priority=Emergency&category=Leak"
    page = await administrator.follow(reply)
    assert "“Urgent” has these filters now." in page.words and page.text.count('<bdi class="cut s">Urgent<') == 1
    await save(administrator, "/tickets?category=Pool", "Pools")
    await administrator.get(f"/views/{view_id}")
    reply = await administrator.send(f"/views/{view_id}", name="Pools")
    assert reply.status == 422 and "with that name" in reply.words
    await administrator.get("/tickets?category=Pool&priority=Low")
    reply = await administrator.send("/views", name="Other", replace="1")
    assert reply.status == 404, "somebody else's is not replaced"


@pytest.mark.parametrize("list_path", ["/nonsense", "/keys", "/views", "/tickets/102", "/account", ""])
async def test_a_view_is_of_a_list_that_its_person_may_open(staff: Browser, list_path: str) -> None:
    await staff.get(URGENT)
    form = {**staff.form("/views"), "name": "x", "list": list_path}
    assert (await staff.post("/views", form)).status == 404


@pytest.mark.parametrize(
    "query",
    [
        "x" * 3000 + "=1", "&".join(f"a{n}=1" for n in range(150)), "", "after=3", "\0", "=", "%ff", "a=%00",
        "q=" + HOSTILE, "q=%0d%0aSet-Cookie:%20x=1", "csv=1&q=a",
    ],
)  # fmt: skip
async def test_a_hostile_query_is_filters_or_nothing(administrator: Browser, query: str) -> None:
    await administrator.get(URGENT)
    form = {**administrator.form("/views"), "name": "Hostile", "query": query, "back": "//evil.example/x"}
    reply = await administrator.post("/views", form)
    assert reply.status in (303, 422) and "Set-Cookie: x" not in str(reply.headers)
    if reply.status == 303:
        assert reply.headers["Location"].startswith("/tickets?") and "csv=" not in reply.headers["Location"]
        page = await administrator.follow(reply)
        assert page.status == 200 and "49<img" not in page.text


async def test_every_list_with_filters_has_views(administrator: Browser, clean: asyncpg.Connection) -> None:
    for page in PAGES:
        if page.views:
            path = page.path.replace("{sub_id}", "7")
            reply = await administrator.get(f"{path}?{urlencode({'q': 'x', 'state': 'y'})}")
            assert reply.status == 200 and "Save view" in reply.words, path
            await administrator.send("/views", name="Of this list", default="1")
            assert (await administrator.get(f"{path}?default=1")).headers["Location"].startswith(f"{path}?q=x"), path
    assert await clean.fetchval("SELECT count(DISTINCT list) FROM default_view") == sum(page.views for page in PAGES)


async def test_what_only_a_person_sees_ends_with_the_person(
    administrator: Browser, staff: Browser, stubs: Stubs, identity_keys: Path, database_url: str
) -> None:  # fmt: skip
    await save(staff, URGENT, "Mine alone", default="1")
    shared_id = await save(staff, "/tickets?priority=Low", "Shared", shared="1")
    kept_id = await save(administrator, URGENT, "Kept")
    people: list[str] = []

    def active(request: Any, _who: Any) -> Any:
        people.extend(request.actors)
        return actors_pb2.ListActivePeopleResponse(actors=[actor for actor in request.actors if actor != "staff:7"])

    stubs.answers["identity.ActorsService/ListActivePeople"] = active
    database = Database(database_url, application="console")
    await database.open()
    client = ServiceClient("gateway", stubs.addresses["gateway"], TokenSigner(identity_keys / "console.jwk"))
    await PeoplePurge(client, SavedViews(lambda: database)).purge()
    await client.close()
    await database.close()
    assert "staff:7" in people and "Mine alone" not in (await staff.get("/tickets")).words
    assert (await staff.get("/tickets?default=1")).status == 200
    for view_id in (shared_id, kept_id):
        assert (await administrator.get(f"/views/{view_id}")).status == 200


async def test_a_view_that_is_removed_meanwhile_is_nobodys_default(database_url: str) -> None:
    database = Database(database_url, application="tests")
    await database.open()
    saved, person = SavedViews(lambda: database), (1, "administrator:99")
    view_id = await saved.add(*person, "meanwhile", "/tickets", "q=1", "Soon gone", shared=False, default=False)
    view = await saved.find(*person, view_id)
    assert view is not None
    await saved.remove(person[0], view_id)
    await saved.set_default(*person, view, default=True)
    await saved.change(*person, view, "Gone", "q=2", shared=True, default=True)
    assert await saved.find(*person, view_id) is None
    await database.close()


async def test_a_list_opens_while_the_database_is_away(
    apart: tuple[Stubs, Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    _stubs, administrator = apart
    monkeypatch.setattr("console.kit.viewing.SECONDS", 0.0)
    page = await administrator.get("/tickets?priority=High&default=1")
    assert page.status == 200 and "Save view" not in page.words


def test_filters_are_compared_whatever_their_order() -> None:
    assert views.filters_of([("b", "2"), ("a", " 1 "), ("after", "9"), ("c", " "), (links.DEFAULT, "1")]) == "b=2&a=1"
    assert views.read_query("a=1&b=%32&a=3") == "a=1&b=2&a=3" and views.read_query("a=" + "x" * 2000) == ""
