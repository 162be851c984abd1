"""What the tests of the command line share: files in a folder of their own, and their rows."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.importing.command import source_of
from gateway.cli.importing.lines import lines_of
from gateway.cli.importing.rows import SourceRow

Write = Callable[..., Path]
Rows = Callable[[Path], list[SourceRow]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file, gzipped where its name says so."""

    def writing(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return writing


@pytest.fixture
def rows() -> Rows:
    """All rows of a file."""

    def reading(path: Path) -> list[SourceRow]:
        with lines_of(path) as lines:
            return list(source_of(path, lines).rows())

    return reading
