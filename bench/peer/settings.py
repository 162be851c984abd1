"""Settings from the environment."""

from __future__ import annotations

import os

DATABASE_URL = os.environ["PEER_DATABASE_URL"]
CURSOR_KEY = os.environ["PEER_CURSOR_KEY"].encode()
LINKS_URL = os.environ.get("PEER_LINKS_URL", "http://localhost:8081")
REQUESTS_PER_MINUTE = 120
KEY_CACHE_SECONDS = 5.0  # the same as the gateway's
