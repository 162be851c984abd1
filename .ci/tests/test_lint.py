"""Each check finds its fault: the tests break a scratch copy of the tree in one place at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".state", "__pycache__", "*_cache", "*.egg-info", "gen", "node_modules", ".hypothesis"
)


def check(script: str, tree: Path) -> tuple[int, str]:
    """The exit status and output of a check of the copy."""
    command = [sys.executable, "-P", str(ROOT / ".ci" / script), str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(ROOT, tmp_path_factory.mktemp("scratch") / "tree", ignore=LEFT_OUT)


PRIVATE = {
    "private module": ("import grpc._channel", "imports grpc._channel, a private module"),
    "module below a private one": ("from _pytest.nodes import Item", "imports _pytest.nodes, a private module"),
    "private name": ("from asyncpg import _testbase", "imports _testbase, a private name, from asyncpg"),
    "attribute": ("import grpc\n\ngrpc.aio._typing", "uses _typing, a private name that is none of ours"),
    "inherited attribute": (
        "from aiohttp import web\n\n\nclass One(web.RequestHandler):\n    def f(self) -> None:\n"
        "        self._request_in_progress",
        "uses _request_in_progress, a private name that is none of ours",
    ),
    "attribute by its name": ('getattr(object, "_nobodys")', "uses _nobodys, a private name that is none of ours"),
    "undocumented module": (
        "from aiohttp.base_protocol import BaseProtocol",
        "imports aiohttp.base_protocol, a module that is not documented",
    ),
    "undocumented module from its package": (
        "from aiohttp import http_parser",
        "imports aiohttp.http_parser, a module that is not documented",
    ),
    "undocumented module by its name": (
        'import importlib\n\nimportlib.import_module("aiohttp.streams")',
        "imports aiohttp.streams, a module that is not documented",
    ),
    "module reached through its package": (
        "import aiohttp\n\naiohttp.web_protocol.RequestHandler",
        "imports aiohttp.web_protocol, a module that is not documented",
    ),
    "other undocumented module": (
        "from sqlalchemy.sql.util import ClauseAdapter",
        "imports sqlalchemy.sql.util, a module that is not documented",
    ),
}


GOOD = """from __future__ import annotations

import enum
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from gateway.replies import _ALWAYS

_made_here = 1


class One(enum.Enum):
    X = _ALWAYS


print(One.X._value_, urlsplit("")._replace(path="/"), web.Server.__name__, AbstractStreamWriter)
"""


# The whole tree takes 5 s, in `make lint`. These are two packages of it, and the files with exceptions.
LOOKED_AT = (
    *("gateway/gateway/**/*.py", "chassis/chassis/**/*.py", "chassis/tests/db/test_private_names.py"),
    *("cli/tests/test_rpc_commands.py", "tests/e2e/test_month.py"),
)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The findings by file, in a tree with every kind of bad name, with good ones, and with an unused exception."""
    tree = tmp_path_factory.mktemp("names") / "tree"
    for file in (file for pattern in LOOKED_AT for file in ROOT.glob(pattern)):
        copy = tree / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    exception = next(tree.glob("chassis/chassis/**/statements.py"))
    exception.write_text(exception.read_text().replace("compiled._bind_processors", "compiled.bind_processors"))
    written = {f"{kind.replace(' ', '_')}.py": f"{source}\n" for kind, (source, _) in PRIVATE.items()}
    written["good.py"] = GOOD
    for name, source in written.items():
        (tree / "gateway" / "gateway" / name).write_text(source)
    status, output = check("private_names.py", tree)
    assert status == 1
    sentences: dict[str, list[str]] = {}
    for line in output.splitlines():
        place, _, sentence = line.partition(": ")
        sentences.setdefault(place.rsplit(":", 1)[0], []).append(sentence)
    return sentences


@pytest.mark.parametrize("kind", PRIVATE)
def test_a_private_name_of_a_dependency_is_found(findings: dict[str, list[str]], kind: str) -> None:
    assert findings[f"gateway/gateway/{kind.replace(' ', '_')}.py"] == [PRIVATE[kind][1]]


def test_nothing_else_is_found(findings: dict[str, list[str]]) -> None:
    """The project's own names and documented names are allowed."""
    assert len(findings) == len(PRIVATE) + 1


def test_an_exception_that_nothing_needs_is_found(findings: dict[str, list[str]]) -> None:
    (sentence,) = findings["chassis/chassis/db/statements.py"]
    assert "does not use _bind_processors any more" in sentence


BOUNDS = {
    "no bound": ("console/pyproject.toml", '"aiohttp>=3.14.4,<4"', '"aiohttp>=3.14.4"', "has no upper bound"),
    "no version": ("chassis/pyproject.toml", '"tzdata>=2026.1,<2100"', '"tzdata"', "has no upper bound"),
    "an exclusion alone": ("chassis/pyproject.toml", '"asyncpg>=0.32,<0.33"', '"asyncpg!=0.31"', "has no upper bound"),
    "an extra": ("pyproject.toml", '"mypy>=2.4,<3"', '"mypy>=2.4"', "has no upper bound"),
    "what builds": ("chassis/pyproject.toml", '["setuptools>=84,<85"]', '["setuptools>=84"]', "has no upper bound"),
    "another version in the lock": (
        "console/pyproject.toml",
        '"aiohttp>=3.14.4,<4"',
        '"aiohttp>=3.99,<4"',
        "is not what deploy/requirements.lock holds",
    ),
    "nothing in the lock": (
        "console/pyproject.toml",
        '"aiohttp>=3.14.4,<4"',
        '"aiohttp>=3.14.4,<4", "starlette>=1,<2"',
        "is not in requirements.lock",
    ),
}


@pytest.mark.parametrize(("name", "before", "after", "sentence"), BOUNDS.values(), ids=BOUNDS)
def test_a_requirement_without_bound_or_lock_is_found(
    tree: Path, name: str, before: str, after: str, sentence: str
) -> None:
    file = tree / name
    source = file.read_text()
    assert source.count(before) == 1
    file.write_text(source.replace(before, after))
    try:
        status, output = check("requirements.py", tree)
    finally:
        file.write_text(source)
    assert status == 1
    assert sentence in output
    assert {line.partition(":")[0] for line in output.splitlines()} == {name}


def test_the_requirements_of_the_tree_are_bounded_and_locked(tree: Path) -> None:
    assert check("requirements.py", tree) == (0, "")


IMPATIENT = {
    "asyncio.timeout(10)": True,
    "asyncio.timeout(60)": False,
    "asyncio.wait_for(done.wait(), 0.5)": True,
    "asyncio.wait_for(done.wait(), 0.5)  # short: nothing comes": False,
    "until(holds, 'not yet', seconds=1.0)": True,
    "heard.next_msg(timeout=5)": True,
    "asyncio.wait({task}, timeout=0.5)": True,
    "process.wait(5)": True,
    "urlopen(address, timeout=2)": True,
    "page.click(timeout=1_000)": False,
    "asyncio.timeout(PATIENCE_SECONDS)": False,
    "for _ in range(100): break; time.sleep(0.1)": True,
    "for _ in range(600): break; time.sleep(0.1)": False,
    "for _ in range(3): time.sleep(0.1)": False,
}


def test_a_test_that_waits_for_less_than_20_s_is_found(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text("\n".join(IMPATIENT) + "\n")
    status, output = check("patience.py", tmp_path)
    lines = {int(line.split(":")[1]) for line in output.splitlines()}
    assert status == 1 and lines == {number for number, bad in enumerate(IMPATIENT.values(), 1) if bad}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See [it](nowhere.md).", "README.md:1: nowhere.md: there is no such file"),
        ("# A\n\n![It](docs/nowhere.png)", "README.md:3: docs/nowhere.png: there is no such file"),
        ("See [it](docs/adding.md#nowhere).", "README.md:1: docs/adding.md#nowhere: there is no such heading"),
        ("# `A`, B\n## C\n## C\n[a](#a-b) [c](#c-1) [d](#c-2)", "README.md:4: #c-2: there is no such heading"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(tree: Path, text: str, expected: str) -> None:
    path = tree / "README.md"
    before = path.read_text()
    assert check("links.py", tree) == (0, "")
    path.write_text(text)
    assert check("links.py", tree) == (1, f"{expected}\n")
    path.write_text("```\n# no heading\n[no link](nowhere.md)\n```\n[other site](https://receiver.example/nowhere)")
    assert check("links.py", tree) == (0, "")
    path.write_text(before)


TIMES = {
    "the machine's clock": ("import datetime\n\ndatetime.datetime.now(datetime.UTC)", "datetime.datetime.now"),
    "the machine's date": ("import datetime\n\ndatetime.date.today()", "datetime.date.today"),
    "seconds": ("import time\n\ntime.time()", "time.time"),
    "seconds without their module": ("from time import time", "time"),
    "the real clock": ("from chassis.schedule import instants\n\nclock = instants.now", "instants.now"),
    "the real clock without its module": ("from chassis.schedule.instants import now as wall", "now"),
    "the real clock of the clocks": ("def f(self):\n    return self._clocks.real()", "self._clocks.real"),
    "the database's clock": ("from sqlalchemy import func\n\nfunc.now()", "func.now"),
    "the database's clock by the chassis": ("from chassis.db.statements import CLOCK", "CLOCK"),
    "SQL": ('from sqlalchemy import text\n\ntext("SELECT now( )")', "now( )"),
    "a server default": ('default = "clock_timestamp()"', "clock_timestamp()"),
    "a formatted text": ('name = "t"\nsql = f"UPDATE {name} SET at = CURRENT_TIMESTAMP"', "CURRENT_TIMESTAMP"),
}
"""Reads of the time, and what the check calls each."""
ASKED_CLOCKS = '''"""It says now() in its docstring."""
import datetime
import time

from chassis.schedule.instants import after


async def stamp(clocks, call, updated_at):
    """As clock_timestamp() would."""
    began, day = time.monotonic(), datetime.timedelta(days=1)
    return after(await clocks.now(call), updated_at), began, day, "knows nowhere; now (that) is a word"
'''


@pytest.mark.parametrize(
    "context",
    ["svc-catalog/svc_catalog", "svc-tickets/svc_tickets", "svc-occupancy/svc_occupancy", "svc-webhooks/svc_webhooks"],
)
def test_a_read_of_the_time_beside_the_companys_clock_is_found(tmp_path: Path, context: str) -> None:
    package = tmp_path / context / "vendors"
    package.mkdir(parents=True)
    (package / "good.py").write_text(ASKED_CLOCKS)
    (tmp_path / context / "migrations").mkdir()
    (tmp_path / context / "migrations" / "0001.py").write_text(TIMES["a server default"][0])
    assert check("company_time.py", tmp_path) == (0, "")
    names = {kind: f"{number}.py" for number, kind in enumerate(TIMES)}
    for kind, (source, _) in TIMES.items():
        (package / names[kind]).write_text(f"{source}\n")
    status, output = check("company_time.py", tmp_path)
    assert status == 1
    places = {line.split(":")[0].rpartition("/")[2]: line.split(": ", 1)[1] for line in output.splitlines()}
    reads = {
        kind: f"{read} is not its company's clock; ask chassis.schedule.clocks" for kind, (_, read) in TIMES.items()
    }
    assert places == {names[kind]: read for kind, read in reads.items()}
