"""Fixtures of the console's tests: the console over real HTTP, before gRPC servers with the contexts' contracts."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from chassis.auth.identity import TokenSigner, make_keys
from chassis.db import migrations
from chassis.runtime.settings import Environment
from console import config, tables
from console.app import Console
from console.kit.serving import Server
from testkit.plugin import PostgresServer
from testkit.processes import free_port

from .browsing import CONSOLES, Browser
from .samples import sample_answers
from .samples_imports import fill
from .stubs import NOW, Person, Stubs


@pytest.fixture(scope="session")
def identity_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("identity")
    make_keys(folder, ["gateway", "console", "operator"])
    return folder


def _reset(stubs: Stubs) -> None:
    """As at the start: a company's worth of answers, and people who can sign in."""
    for part in (
        stubs.answers,
        stubs.calls,
        stubs.people,
        stubs.sessions,
        stubs.sandboxes,
        stubs.displaced,
        stubs.slow,
        stubs.session_requests,
        stubs.clients,
    ):
        part.clear()
    for person in (
        Person("administrator", 1, "Dana Adler", "dana@demo.example"),
        Person("administrator", 2, "Marguerite Okafor", "marguerite@demo.example", has_totp=True),
        Person("staff", 7, "Nguyễn Thị Hồng Hạnh", "hanh@demo.example"),
        Person("administrator", 9, "Olga Other", "olga@other.example", company_id=2, company_name="Other Homes"),
    ):
        stubs.people[person.email] = person
    stubs.confirms = True
    stubs.offset = datetime.timedelta()
    stubs.sandboxes |= {101: "Trial of the new sync", 102: "Second trial"}
    stubs.answers.update(sample_answers())


@asynccontextmanager
async def _started(
    identity_keys: Path, database_url: str, nats_url: str = "", *, is_migrated: bool = True
) -> AsyncIterator[tuple[Stubs, str]]:
    """The services and the console's origin. is_migrated: whether to wait until the console is ready."""
    stubs = Stubs(identity_keys / "ring.jwks", TokenSigner(identity_keys / "gateway.jwk"))
    await stubs.start_all()
    port = free_port()
    environment = {
        "MAKEREADY_ADMIN_PORT": str(port),
        "MAKEREADY_CONSOLE_URL": f"http://localhost:{port}",
        "MAKEREADY_API_URL": "https://api.makeready.example/api/v1",
        "MAKEREADY_NATS_URL": nats_url,
        "MAKEREADY_DATABASE_URL": database_url,
        "MAKEREADY_IMPORT_TASKS": "0",
        "MAKEREADY_IDENTITY_KEY_FILE": str(identity_keys / "console.jwk"),
        "MAKEREADY_FILES_URL": (identity_keys / "files").as_uri(),
        **{f"MAKEREADY_{name.removeprefix('svc-').upper()}_ADDRESS": at for name, at in stubs.addresses.items()},
    }
    settings = config.read(Environment(environment))
    console = Console(settings, lambda: NOW)
    CONSOLES[settings.url] = console.site.key, stubs
    server = Server(console.application(), settings)
    await server.open()
    opening = asyncio.create_task(console.open())
    try:
        if is_migrated:
            await opening
        yield stubs, f"http://localhost:{port}"
    finally:
        opening.cancel()
        await server.close()
        await stubs.stop_all()


@pytest.fixture(scope="session")
def database_url(postgres_server: PostgresServer) -> str:
    """The console's own database."""
    url = postgres_server.create_database("console")

    def make() -> None:
        migrations.migrate(url, "console", tables.metadata)
        asyncio.run(fill(url))

    thread = threading.Thread(target=make)  # these loops are not the tests'
    thread.start()
    thread.join()
    return url


@pytest.fixture(scope="session")
async def system(identity_keys: Path, database_url: str) -> AsyncIterator[tuple[Stubs, str]]:
    async with _started(identity_keys, database_url) as started:
        yield started


@pytest.fixture
async def stubs(system: tuple[Stubs, str]) -> Stubs:
    """The services, as at the start. A test that stops one uses `apart`."""
    _reset(system[0])
    return system[0]


@pytest.fixture
async def console(system: tuple[Stubs, str], stubs: Stubs) -> str:
    """The console's origin."""
    return system[1]


@pytest.fixture
async def apart(
    identity_keys: Path, database_url: str, http: aiohttp.ClientSession
) -> AsyncIterator[tuple[Stubs, Browser]]:
    """Services and a console of their own, and a browser in which Dana Adler is signed in."""
    async with _started(identity_keys, database_url) as (stubs, url):
        _reset(stubs)
        yield stubs, Browser(url, http).sign_in(stubs.begin(stubs.people["dana@demo.example"], confirmed=True))


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True) as session:
        yield session


@pytest.fixture
async def nobody(console: str, http: aiohttp.ClientSession) -> Browser:
    return Browser(console, http)


@pytest.fixture
async def signed_in(console: str, http: aiohttp.ClientSession, stubs: Stubs) -> Callable[..., Browser]:
    """Makes a browser in which somebody is signed in, by e-mail."""

    def make(email: str, *, confirmed: bool = True) -> Browser:
        return Browser(console, http).sign_in(stubs.begin(stubs.people[email], confirmed=confirmed))

    return make


@pytest.fixture
async def administrator(signed_in: Callable[..., Browser]) -> Browser:
    """Dana Adler of company 1, who has just confirmed who she is."""
    return signed_in("dana@demo.example")


@pytest.fixture
async def staff(signed_in: Callable[..., Browser]) -> Browser:
    return signed_in("hanh@demo.example")


@pytest.fixture
async def stranger(signed_in: Callable[..., Browser]) -> Browser:
    """An administrator of company 2."""
    return signed_in("olga@other.example")
