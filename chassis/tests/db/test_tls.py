"""TLS to the database, as installations have it: `verify-full` refuses another authority or name, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from chassis.db.database import Database, DatabaseUnavailable
from chassis.db.statements import Statement
from chassis.runtime.settings import SettingsError
from makeready_local import certificates
from testkit.databases import service_url
from testkit.folders import server_folder
from testkit.plugin import PostgresServer
from testkit.poolers import HOST, MODES, TlsPostgres, pgbouncer, tls_postgres

from ..databases import reached

TLS = Statement(sa.text("SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with server_folder() as server_files:
        yield server_files


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[TlsPostgres]:
    with tls_postgres(folder) as running:
        yield running


@pytest.fixture(scope="module")
def url(server: TlsPostgres) -> str:
    return service_url(PostgresServer(server).create_database("chassis_tls"))


async def test_a_verified_connection_is_encrypted(url: str) -> None:
    assert "verify-full" in url
    database = Database(url, application="tests")
    await database.open()
    assert tuple((await database.row(TLS)) or ()) == (True, "TLSv1.3")
    await database.close()


@pytest.mark.parametrize("mode", MODES)
async def test_it_is_through_a_pooler_too(mode: str, url: str, folder: Path, server: TlsPostgres) -> None:
    with pgbouncer(folder, server.url, mode, files=server.certificates) as pooler:
        database = Database(**reached(url, pooler), application="tests")
        await database.open()
        assert tuple((await database.row(TLS)) or ())[:1] == (True,)
        await database.close()


@pytest.mark.parametrize("fault", ["another authority", "another name", "no such file", "no TLS"])
async def test_a_server_that_cannot_be_verified_is_refused_at_once(fault: str, url: str, folder: Path) -> None:
    (folder / fault).mkdir()
    if fault == "another authority":
        certificate = url.partition("sslrootcert=")[2]
        url = url.replace(certificate, str(certificates.made(folder / fault, HOST).authority))
        words = "CERTIFICATE_VERIFY_FAILED"
    elif fault == "another name":
        url, words = url.replace(f"@{HOST}", "@127.0.0.1"), "certificate is not valid for '127.0.0.1'"
    elif fault == "no such file":
        url, words = f"{url}.not", "names the file .* which cannot be read"
    else:
        url, words = url.replace("verify-full", "disable"), "no pg_hba.conf entry"
    async with asyncio.timeout(25):  # and not only after the 30 s for which a server may be starting
        with pytest.raises((DatabaseUnavailable, SettingsError), match=words):
            await Database(url, application="tests").open()
