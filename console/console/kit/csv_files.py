"""Lists as files for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from aiohttp import web
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.records.spreadsheets import defused


def answer(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> web.Response:
    """A CSV file in UTF-8 with a byte order mark, without which Excel reads another encoding."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return web.Response(
        body=b"\xef\xbb\xbf" + text.getvalue().encode(),
        content_type="text/csv",
        charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


def stamp(instant: Timestamp) -> str:
    """An instant in a cell; empty for none."""
    return instant.ToJsonString() if instant.seconds else ""


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return text if isinstance(value, (int, float)) else defused(text)
