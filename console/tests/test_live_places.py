"""How many open pages listen: of a session, of an account, of a company, in all."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from console.kit import live
from console.kit.live import Live, Watch

TOPICS = frozenset({"ticket"})


class Pages:
    """Pages that stay open until the test ends."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.live = Live(None)

    def open(self, account: str, session: str = "", company_id: int = 1) -> Watch | None:
        watching = self.live.watch(session or f"session of {account}", account, company_id, TOPICS)
        return self._stack.enter_context(watching)

    def of_one(self, account: str, number: int, company_id: int = 1) -> list[Watch]:
        """So many pages of an account, each in a session of its own."""
        opened = [self.open(account, f"{company_id} {account} {place}", company_id) for place in range(number)]
        assert None not in opened
        return [watch for watch in opened if watch is not None]


@pytest.fixture
async def pages() -> object:
    with ExitStack() as stack:
        yield Pages(stack)


def living(watches: list[Watch]) -> int:
    return sum(not watch.is_over for watch in watches)


async def test_the_oldest_page_of_a_session_and_of_an_account_gives_way(pages: Pages) -> None:
    of_session = [pages.open("staff:7", "one") for _ in range(live.OF_A_SESSION_MAX + 1)]
    assert [watch is not None and watch.is_over for watch in of_session] == [True] + [False] * live.OF_A_SESSION_MAX
    # With ever more sessions an account gets no more.
    opened = pages.of_one("administrator:1", live.OF_AN_ACCOUNT_MAX + 5)
    assert [watch.is_over for watch in opened] == [True] * 5 + [False] * live.OF_AN_ACCOUNT_MAX
    # The same id in another company is another account.
    assert living(pages.of_one("administrator:1", live.OF_AN_ACCOUNT_MAX, company_id=2)) == live.OF_AN_ACCOUNT_MAX
    assert living(opened) == live.OF_AN_ACCOUNT_MAX


async def test_in_a_full_company_the_account_with_the_most_pages_makes_room(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "OF_A_COMPANY_MAX", 30)
    many = pages.of_one("administrator:1", 20)
    others = [pages.open(f"staff:{number}") for number in range(10)]
    late = pages.open("staff:99")
    assert late is not None and many[0].is_over and living(many) == 19
    assert not any(watch is None or watch.is_over for watch in others)
    # The one with the most gets none of the others' places.
    assert pages.open("administrator:1", "another") is None
    # Another company has places of its own.
    assert living(pages.of_one("administrator:1", 20, company_id=2)) == 20
    # Where everybody has one, none is taken away.
    for number in range(18):
        assert pages.open(f"staff:{number + 100}") is not None
    assert living(many) == 1 and pages.open("staff:200") is None


async def test_one_company_does_not_take_the_places_of_all(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CONNECTIONS_MAX", 40)
    many = pages.of_one("administrator:1", 24)
    more = pages.of_one("administrator:2", 16)
    other = pages.open("administrator:1", company_id=2)
    assert other is not None and living(many) == 23 and living(more) == 16


async def test_a_place_is_free_when_its_page_is_closed(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "OF_A_COMPANY_MAX", 1)
    with pages.live.watch("s", "staff:7", 1, TOPICS) as watch:
        assert watch is not None and pages.open("staff:8") is None
    assert pages.open("staff:8") is not None
