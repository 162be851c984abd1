"""Keeps a copy of a company's records in SQLite, in step with the API. Python's standard library is all it needs.

    API_KEY=mk_… python3 copy.py https://HOST/api/v1 copy.sqlite

Stop it or kill it at any moment: started again, it goes on from where the copy stands.
"""

import gzip
import http.client
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

KINDS = ("properties", "units", "assets", "vendors", "inspections", "meters", "readings", "tickets", "turns")
PAUSE_SECONDS = 5  # nine kinds every 5 seconds are 108 requests a minute; a key has 120


def ask(path: str, **query: object) -> tuple[IO[bytes] | gzip.GzipFile, str]:
    """The body of the answer, and the cursor that follows a snapshot."""
    sent = {"Authorization": f"Bearer {os.environ['API_KEY']}", "Accept-Encoding": "gzip"}
    with urlopen(Request(f"{BASE_URL}{path}?{urlencode(query)}", headers=sent), timeout=60) as answer:
        body = tempfile.TemporaryFile()
        shutil.copyfileobj(answer, body)  # fails if the connection breaks off, which `for line in answer` does not
        body.seek(0)
        is_zipped = answer.headers.get("Content-Encoding") == "gzip"
        return gzip.open(body) if is_zipped else body, answer.headers.get("Service-Resume-Cursor", "")


def step(kind: str, copy: sqlite3.Connection) -> bool:
    """Brings the copy a page forward, in one transaction with the page's cursor. Returns whether more waits."""
    stored = copy.execute("SELECT cursor FROM position WHERE kind = ?", [kind]).fetchone()
    if stored is None:
        lines, cursor = ask(f"/snapshots/{kind}")
        more, changes = True, ({"entity_id": row["entity_id"], "record": row} for row in map(json.loads, lines))
    else:
        page = json.load(ask(f"/changes/{kind}", cursor=stored[0], limit=200, wait=25)[0])
        more, changes, cursor = page["next_cursor"] is not None, page["data"], page["resume_cursor"]
    with copy:
        if stored is None:
            copy.execute("DELETE FROM record WHERE kind = ?", [kind])
        for change in changes:
            if change["record"] is None:  # it is gone
                copy.execute("DELETE FROM record WHERE kind = ? AND id = ?", [kind, change["entity_id"]])
            else:
                record = json.dumps(change["record"], ensure_ascii=False, separators=(",", ":"))
                copy.execute("REPLACE INTO record VALUES (?, ?, ?)", [kind, change["entity_id"], record])
        copy.execute("REPLACE INTO position VALUES (?, ?)", [kind, cursor])
    return more


def follow(kind: str) -> None:
    """Follows one kind until an answer that repeating would not change, such as 401."""
    copy = sqlite3.connect(FILE, timeout=600)
    while True:
        pause = PAUSE_SECONDS
        try:
            if step(kind, copy):
                continue
        except HTTPError as error:
            if error.code == 410:  # the cursor has expired: begin again with a snapshot
                with copy:
                    copy.execute("DELETE FROM position WHERE kind = ?", [kind])
            elif error.code in (429, 500, 503):
                pause = int(error.headers.get("Retry-After", PAUSE_SECONDS))
            else:
                raise
        except (OSError, http.client.HTTPException) as error:
            print(f"{kind}: {error!r}", file=sys.stderr)
        time.sleep(pause)


if __name__ == "__main__":
    _, BASE_URL, FILE = sys.argv
    with sqlite3.connect(FILE) as database:
        database.execute("CREATE TABLE IF NOT EXISTS record (kind TEXT, id INTEGER, json TEXT, PRIMARY KEY (kind, id))")
        database.execute("CREATE TABLE IF NOT EXISTS position (kind TEXT PRIMARY KEY, cursor TEXT)")
    followers = [threading.Thread(target=follow, args=[kind], daemon=True) for kind in KINDS]
    for follower in followers:
        follower.start()
    for follower in followers:
        follower.join()
