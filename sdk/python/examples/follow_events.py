"""Prints events as they happen, each once over restarts: python follow_events.py CURSOR_FILE"""

import sys
from pathlib import Path

from makeready_client import Makeready

file = Path(sys.argv[1])
with Makeready() as mk:
    events = mk.events.follow(file.read_text() if file.exists() else None)
    for event in events:
        print(event.occurred_at, event.event, event.event_id, flush=True)
        if events.cursor:
            file.write_text(events.cursor)
