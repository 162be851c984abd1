"""What every Makeready service stands on. It knows no context."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def import_without(absent: str, wanted: str) -> None:
    """Imports a library as where another, which it can do without, is not installed.

    structlog takes in rich for colours in a terminal, and nats-py aiohttp for websockets: 12 MB in each service, for
    nothing that one uses. Both are there for others, which import them as ever.
    """
    modules: dict[str, Any] = sys.modules
    if absent not in modules and wanted not in modules:
        modules[absent] = None
        try:
            importlib.import_module(wanted)
        finally:
            del modules[absent]


import_without("rich", "structlog")
