"""`python -m peer.export FILE`: writes what the peer on Node shares with those in Python, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import get_args

from peer import statements, words


def main(file: Path) -> None:
    names = ("TICKET", "PAGE", "FILTERS", "CALLER", "CLAIM", "PLACE", "CREATE", "HELD", "CHANGE", "KEEP")
    kinds = {"status": words.Status, "priority": words.Priority, "category": words.Category}
    shared = {
        "statements": {name.lower(): getattr(statements, name) for name in names},
        "words": {name: get_args(kind) for name, kind in (*kinds.items(), ("reason", words.CancellationReason))},
    }
    file.write_text(json.dumps(shared))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
