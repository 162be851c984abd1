"""Shared by the command line's tests: its runs, and files in a folder of their own."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from makeready_cli.program import main, parser
from testkit.gateway_fixtures import company_id, contexts, gateway, harness, identity_keys, operator

__all__ = ["company_id", "contexts", "gateway", "harness", "identity_keys", "operator"]

TREE = parser()  # it takes 40 ms to build
Write = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the command line; returns its exit status, standard output and standard error."""
    monkeypatch.setenv("MAKEREADY_STATE_DIR", str(tmp_path / "state"))

    def running(*words: str) -> tuple[int, str, str]:
        try:
            status = main(words, TREE)
        except SystemExit as ended:
            status = int(ended.code or 0)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return status, printed.out, printed.err

    return running


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file, gzipped if its name ends so."""

    def writing(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return writing
