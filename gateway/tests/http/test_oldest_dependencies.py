"""The gateway with the oldest and the newest aiohttp that its requirement allows. Its connection extends public classes
of aiohttp, and depends on their behaviour as well as on their names."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from testkit.gateways import Gateway, GatewayHarness
from testkit.raw_http import Api
from testkit.requirements import lacks
from testkit.stub_contexts import Contexts

PROJECT = Path(__file__).resolve().parents[3] / "chassis" / "pyproject.toml"


def requirement() -> Requirement:
    """The requirement on aiohttp in pyproject.toml."""
    requirements = map(Requirement, tomllib.loads(PROJECT.read_text())["project"]["dependencies"])
    return next(candidate for candidate in requirements if candidate.name == "aiohttp")


def oldest() -> str:
    """The requirement's lower bound."""
    version: str = next(bound.version for bound in requirement().specifier if bound.operator == ">=")
    return version


def install(distribution: str, folder: Path) -> None:
    """Installs a distribution without its dependencies, which are installed already. Skips the test if the package
    registry can't be reached."""
    options = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--retries",
        "1",
        "--timeout",
        "15",
    ]
    command = [sys.executable, "-P", "-m", "pip", "install", *options, "--target", str(folder), distribution]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode and "(from versions: none)" in done.stderr:
        lacks("packages", f"the registry can't be reached, so {distribution} can't be installed")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=["oldest", "newest"])
async def other(
    request: pytest.FixtureRequest, harness: GatewayHarness, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    """A gateway that runs on another aiohttp than the installed one."""
    folder = tmp_path_factory.mktemp("aiohttp")
    distribution = f"aiohttp=={oldest()}" if request.param == "oldest" else str(requirement())
    await asyncio.to_thread(install, distribution, folder)
    gateway = harness.gateway(PYTHONPATH=str(folder))
    program = [sys.executable, "-P", "-c", "import aiohttp; print(aiohttp.__version__, aiohttp.__file__)"]
    output = await asyncio.to_thread(subprocess.check_output, program, env=gateway.environment, text=True)
    version, file = output.split()
    assert Path(file).is_relative_to(folder)
    assert version == oldest() if request.param == "oldest" else Version(version) in requirement().specifier
    gateway.start()
    await gateway.ready()
    yield gateway
    assert await gateway.stop() == 0, gateway.log.read_text()[-3000:]


@pytest.fixture
def api(other: Gateway) -> Api:
    return Api(other.api_port)


async def test_it_answers_requests_one_after_the_other(api: Api, key: str) -> None:
    connection = await api.connect()
    for path, status in (("/whoami", 200), ("/nothing", 404), ("/tickets?limit=3", 200)):
        await connection.send(api.bytes("GET", path, key))
        assert (await connection.receive()).status == status
    await connection.send(api.bytes("GET", "/whoami", key, Connection="close"))
    assert (await connection.receive()).status == 200
    assert await connection.is_closed()


async def test_it_answers_what_its_parser_refuses(api: Api) -> None:
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"):
        connection = await api.connect()
        await connection.send(sent)
        assert (await connection.receive()).code == "invalid_request"
        assert await connection.is_closed()


async def test_too_long_a_line_has_an_error_of_its_own(api: Api) -> None:
    assert "longer than" in (await api.get("/whoami", X_Long="x" * 10_000)).message


async def test_it_takes_a_body_in_one_piece_and_in_several(api: Api, key: str, contexts: Contexts) -> None:
    connection = await api.connect()
    head, body = api.bytes("POST", "/tickets", key, b"x" * 200_000, Idempotency_Key="k").split(b"\r\n\r\n")
    await connection.send(head + b"\r\n\r\n" + body)
    assert (await connection.receive()).status == 201
    await connection.send(head.replace(b"Content-Length", b"Expect: 100-continue\r\nContent-Length") + b"\r\n\r\n")
    await asyncio.sleep(0.1)
    await connection.send(body[:100_000])
    await asyncio.sleep(0.1)
    await connection.send(body[100_000:])
    response = await connection.receive()
    assert (response.status, response.interim) == (201, (100,))
    assert [context.request.body for context in contexts.seen] == [b"x" * 200_000] * 2


async def test_it_answers_a_client_that_has_half_closed(api: Api, key: str) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "/whoami", key) * 3)
    connection.writer.write_eof()
    for _ in range(3):
        assert (await connection.receive()).status == 200
    assert await connection.is_closed()


async def test_a_body_that_ends_early_is_answered(api: Api, key: str) -> None:
    sent = api.bytes("POST", "/tickets", key, b"{}", Idempotency_Key="k")
    assert (await api.raw(sent[:-1], then_eof=True)).code == "invalid_request"
