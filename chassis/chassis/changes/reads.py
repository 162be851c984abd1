"""The reads of one kind of records: its list, its fetch and its feed, for the RPCs of a service.

self.parcels = RecordReads("parcel", database, PARCEL.renderer(links_url), PARCELS_PAGE, PARCEL_CHANGES)
...
return pb.ListParcelsResponse(page=await self.parcels.page(company_id, request))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from google.protobuf.message import Message

from chassis.changes.documents import ONE_SNAPSHOT, Documents, Key, has_all
from chassis.changes.feed import Changes, FeedRequest
from chassis.db.coalescing import Coalescer
from chassis.db.database import Database
from chassis.db.statements import Values
from chassis.lists.paging import ROWS_MAX, Pages
from chassis.records.shapes import Renderer, Struct
from chassis.refusals import not_found
from makeready.common.v1.documents_pb2 import Document, Feed, Page

# Of a fetch: the record, None if no reader sees one.
_Fetched = tuple[Document | None]


class RecordReads(Generic[Struct]):
    """The reads of records that have documents. Refusals call the kind its `noun`; `pages` are of its
    `Documents.rows`."""

    def __init__(
        self, noun: str, database: Database, renderer: Renderer[Struct], pages: Pages, changes: Changes
    ) -> None:
        assert changes.documents is not None, f"{noun} has no documents"
        self._noun, self._database, self._renderer = noun, database, renderer
        self._documents: Documents[Struct] = changes.documents
        self._pages, self._changes = pages, changes
        self._fetches: Coalescer[Key, _Fetched] = Coalescer(self._fetch_several, self._fetch_alone)

    async def page(self, company_id: int, request: Message, filters: Values | None = None) -> Page:
        """A page of the list. The request has after_id and limit; the filters are those that it sets, or `filters`."""
        fields: Any = request
        limit = min(fields.limit, ROWS_MAX)
        if filters is None:
            filters = self._pages.filters_of(request)
        rows = await self._pages.rows(self._database, company_id, fields.after_id, limit, filters)
        if has_all(rows):
            documents = [row[1] for row in rows[:limit]]
        else:
            async with self._database.transaction(ONE_SNAPSHOT, writes=False) as connection:
                rows = await self._pages.rows(connection, company_id, fields.after_id, limit, filters)
                documents = await self._documents.of_rows(connection, company_id, rows[:limit])
        page = Page(data=self._renderer.served(b"[%b]" % b",".join(documents)))
        if len(rows) > limit:
            page.next_after_id = rows[limit - 1][0]
        return page

    async def fetch(self, company_id: int, entity_id: int) -> Document:
        """The record. Fetches that come while a statement runs share the next one. Raises Refusal 404."""
        (document,) = await self._fetches.ask((company_id, entity_id))
        if document is None:
            raise not_found(self._noun)
        return document

    async def _fetch_several(self, keys: Sequence[Key]) -> list[_Fetched]:
        return [(document,) for document in await self._documents.fetch(self._database, self._renderer, keys)]

    async def _fetch_alone(self, key: Key) -> _Fetched:
        (fetched,) = await self._fetch_several([key])
        return fetched

    async def feed(self, company_id: int, request: FeedRequest) -> Feed:
        """A page of the changes: see `Changes.feed`."""
        return await self._changes.feed(self._database, company_id, request, self._renderer)
