"""Copies: what a store is given, and what becomes of it when something fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from makeready_client import AsyncMakeready, Batch, Makeready, Mirror, SqliteStore, errors, mirror

KIND = "units"


class Api:
    """The feed and the snapshot of one kind. A cursor is the number of changes that were made before it."""

    def __init__(self) -> None:
        self.records: dict[int, dict[str, Any]] = {}
        self.changes: list[int] = []
        self.valid_from = 0
        """Older cursors have expired."""
        self.asked: list[str] = []

    def put(self, number: int, record: dict[str, Any] | None) -> None:
        self.changes.append(number)
        if record is None:
            del self.records[number]
        else:
            self.records[number] = {"entity_id": number} | record

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path.removeprefix("/api/v1"))
        if "snapshots" in request.url.path:
            lines = "".join(json.dumps(record) + "\n" for _, record in sorted(self.records.items()))
            return httpx.Response(200, text=lines, headers={"Service-Resume-Cursor": str(len(self.changes))})
        cursor = int(request.url.params["cursor"])
        if cursor < self.valid_from:
            return httpx.Response(410, json={"error": {"code": "cursor_expired", "message": "Begin again."}})
        (changes_of_page,) = [self.changes[cursor : cursor + 1]]
        data = [{"entity_id": n, "gone": n not in self.records, "record": self.records.get(n)} for n in changes_of_page]
        after = cursor + len(changes_of_page)
        more = str(after) if after < len(self.changes) else None
        page = {"data": data, "next_cursor": more, "resume_cursor": str(after), "limit": 200}
        return httpx.Response(200, json=page)


@pytest.fixture
def api() -> Api:
    api_of_test = Api()
    api_of_test.put(1, {"name": "Unit 1"})
    api_of_test.put(2, {"name": "Unit 2 – ü"})
    return api_of_test


@pytest.fixture
def client(api: Api) -> Iterator[Makeready]:
    with Makeready("k", base_url="https://h/api/v1", transport=httpx.MockTransport(api)) as client_of_test:
        yield client_of_test


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store_of_test = SqliteStore(tmp_path / "copy.sqlite")
    yield store_of_test
    store_of_test.close()


def lines_of(store: SqliteStore, folder: Path) -> list[dict[str, Any]]:
    store.write_lines(KIND, folder / "units.jsonl")
    return [json.loads(line) for line in (folder / "units.jsonl").read_text().splitlines()]


def test_changes_come_after_the_snapshot_and_gone_records_go(
    api: Api, client: Makeready, store: SqliteStore, tmp_path: Path
) -> None:
    assert Mirror(client, store, kinds=[KIND]).run() == {KIND: 2}
    api.put(1, None)
    api.put(3, {"name": "Unit 3"})
    assert Mirror(client, store, kinds=[KIND]).run() == {KIND: 2}
    assert lines_of(store, tmp_path) == list(api.records.values())
    before = (tmp_path / "copy.sqlite-wal").read_bytes()
    assert Mirror(client, store, kinds=[KIND]).run() == {KIND: 0}
    assert (tmp_path / "copy.sqlite-wal").read_bytes() == before, "nothing new, and yet something was written"
    assert api.asked.count(f"/snapshots/{KIND}") == 1


def test_an_expired_cursor_begins_again_and_drops_what_the_restore_lost(
    api: Api, client: Makeready, store: SqliteStore, tmp_path: Path
) -> None:
    Mirror(client, store, kinds=[KIND]).run()
    del api.records[2]
    api.valid_from = 9
    api.changes = [1] * 9
    assert Mirror(client, store, kinds=[KIND]).run() == {KIND: 1}
    assert lines_of(store, tmp_path) == [{"entity_id": 1, "name": "Unit 1"}]


def test_a_batch_that_fails_is_given_again(api: Api, client: Makeready) -> None:
    kept: list[int] = []
    fails = True

    def store(batch: Batch) -> None:
        ids = [change.entity_id for change in batch.changes]
        if fails:
            raise OSError("full")
        kept.extend(ids)

    mirror = Mirror(client, store, kinds=[KIND])
    with pytest.raises(OSError, match="full"):
        mirror.run()
    assert mirror.cursors == {} and mirror.counts == {KIND: 0}
    fails = False
    assert mirror.run() == {KIND: 2} and kept == [1, 2]


def test_following_outlasts_a_proxy_without_the_api(
    api: Api, client: Makeready, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "PAUSE_SECONDS", 0.0)
    answers = [errors.ApiError(502, "", "Bad Gateway"), errors.ConnectionFailed("no"), None]
    seen: list[int] = []

    def store(batch: Batch) -> None:
        if answers and (failure := answers.pop(0)):
            raise failure  # as the request that reads the snapshot does
        seen.extend(change.entity_id for change in batch.changes)
        raise errors.KeyRevoked(401, "key_revoked", "Ask for a new one.")

    with pytest.raises(errors.KeyRevoked):
        Mirror(client, store, kinds=[KIND]).follow()
    assert seen == [1, 2]


def test_following_ends_with_what_repeating_would_not_change(api: Api, client: Makeready) -> None:
    seen: list[int] = []

    def store(batch: Batch) -> None:
        seen.extend(change.entity_id for change in batch.changes)
        api.put(3, {"name": "Unit 3"})
        if len(seen) > 3:
            raise errors.KeyRevoked(401, "key_revoked", "Ask for a new one.")

    with pytest.raises(errors.KeyRevoked):
        Mirror(client, store, kinds=[KIND]).follow()
    assert seen == [1, 2, 3, 3]


def test_a_copy_is_of_one_company(store: SqliteStore) -> None:
    assert store.belongs_to(7) and store.belongs_to(7) and not store.belongs_to(8)


def test_an_unknown_kind_is_refused(client: Makeready) -> None:
    with pytest.raises(ValueError, match="no such kinds: cats"):
        Mirror(client, print, kinds=["cats"])


def test_a_client_with_coroutines_is_refused() -> None:
    with pytest.raises(TypeError, match="to_thread"):
        Mirror(AsyncMakeready("k", base_url="https://h/api/v1"), print)  # type: ignore[arg-type]
