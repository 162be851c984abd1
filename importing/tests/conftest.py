"""Shared by the tests of imports: files in a folder of their own, and their rows."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from importing.opening import opened
from importing.rows import SourceRow

Write = Callable[..., Path]
Rows = Callable[[Path], list[SourceRow]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file, gzipped if its name ends so."""

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
        with opened(path) as open_file:
            return list(open_file.source.rows())

    return reading
