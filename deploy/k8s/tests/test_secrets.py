"""The secrets of a new installation, and their rotation."""

import asyncio
import base64
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from chassis.auth.identity import IdentityError, TokenSigner, TokenVerifier
from chassis.runtime.settings import Environment, database_settings
from makeready_local.postgres import reachable_binaries
from testkit.plugin import PostgresServer
from testkit.processes import Process
from testkit.warm import early_variables

from .manifests import make_secrets

SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def secrets(k8s: Path, tmp_path: Path) -> Path:
    """A copy of an installation's secrets that the test may change."""
    folder = tmp_path / "secrets"
    shutil.copytree(k8s / "overlays/example/settings/secrets", folder)
    return folder


def values(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_other_users_may_not_read_them(secrets: Path) -> None:
    for path in (secrets, *secrets.rglob("*")):
        if path.name != "ring.jwks":  # public keys
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_second_run_keeps_everything_and_makes_what_is_missing(secrets: Path) -> None:
    before = {path: path.read_text() for path in secrets.rglob("*") if path.is_file()}
    (secrets / "valkey.env").unlink()
    done = make_secrets(secrets)
    assert done.returncode == 0, done.stderr
    after = {path: path.read_text() for path in secrets.rglob("*") if path.is_file()}
    assert after.keys() == before.keys()
    assert {path.name for path in after if after[path] != before[path]} == {"valkey.env"}


def test_another_number_of_nats_servers_changes_the_urls_and_no_password(secrets: Path) -> None:
    files = [secrets / "nats.env", secrets / "nats-users.env"]
    before = [values(file) for file in files]
    assert make_secrets(secrets, "--nats-servers", "3").returncode == 0
    operator, users = after = [values(file) for file in files]
    assert len(operator.pop("routes-password")) > 60
    for old, new in zip(before, after, strict=True):
        for name, value in new.items():
            user, at, place = old[name].partition("@")
            assert place in ("", "nats:4222")
            assert value == ",".join(f"{user}@nats-{one}.nats:4222" for one in range(3)) if at else value == old[name]
    texts = [file.read_text() for file in files]
    users_without = {name: value for name, value in users.items() if not name.startswith("console")}
    files[1].write_text("".join(f"{name}={value}\n" for name, value in users_without.items()))
    assert make_secrets(secrets).returncode == 0
    assert files[0].read_text() == texts[0] and values(files[1])["console-url"].count("@nats-") == 3
    assert make_secrets(secrets, "--nats-servers", "1").returncode == 0
    assert [values(file).keys() for file in files] == [{*before[0], "routes-password"}, before[1].keys()]
    assert values(files[0])["url"] == before[0]["url"]


def test_a_ring_that_a_new_release_asks_for_joins_the_old_file(secrets: Path) -> None:
    file = secrets / "gateway.env"
    before = values(file)
    new = {"key-check-secrets", "totp-keys"}
    file.write_text("".join(f"{name}={value}\n" for name, value in before.items() if name not in new))
    assert make_secrets(secrets).returncode == 0
    after = values(file)
    assert list(after) == list(before) and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {name for name in after if after[name] != before[name]} == new
    text = file.read_text()
    assert make_secrets(secrets).returncode == 0 and file.read_text() == text


def test_what_it_cannot_know_it_asks_for_in_one_line(tmp_path: Path) -> None:
    for arguments in ([], ["--database-ca", str(Path(__file__))], ["--database-ca", str(tmp_path / "absent")]):
        done = make_secrets(tmp_path / "secrets", *arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("make_secrets: ")
        assert done.stderr.count("\n") == 1


def test_every_service_has_a_database_a_role_and_a_password_of_its_own(secrets: Path) -> None:
    urls = [values(secrets / f"{name}.env")["database-url"] for name in (*SERVICES, "console")]
    roles = {url.split("//")[1].split(":")[0] for url in urls}
    assert roles == {"gateway", "catalog", "tickets", "occupancy", "webhooks", "console"}
    assert len({url.split("@")[0].rsplit(":", 1)[1] for url in urls}) == len(SERVICES) + 1
    assert all("sslmode=verify-full" in url for url in urls)


def test_rings_of_keys_hold_256_bits(secrets: Path) -> None:
    for name, field in (
        ("gateway", "cursor-keys"),
        ("gateway", "key-check-secrets"),
        ("gateway", "totp-keys"),
        ("svc-webhooks", "vault-keys"),
    ):
        key_id, _, key = values(secrets / f"{name}.env")[field].partition(":")
        assert key_id == "k1"
        assert len(base64.b64decode(key, validate=True)) == 32


def test_an_identity_key_is_turned_without_a_moment_of_refusal(secrets: Path) -> None:
    """The three steps of deploy/README.md: the next key joins the ring, signs, and the old one leaves."""
    folder, beside = secrets / "identity", secrets / "next"
    old = TokenSigner(folder / "svc-tickets.jwk")
    program = [sys.executable, "-P", "-m", "chassis.auth.identity", str(beside), "svc-tickets"]
    subprocess.run(program, check=True, timeout=60)
    key = json.loads((beside / "svc-tickets.jwk").read_text())
    if key["kid"] == json.loads((folder / "svc-tickets.jwk").read_text())["kid"]:  # made within the same second
        key["kid"] += "-next"
    (folder / "svc-tickets-next.jwk").write_text(json.dumps(key))

    def ring() -> TokenVerifier:
        assert make_secrets(secrets).returncode == 0
        return TokenVerifier(folder / "ring.jwks", audience="svc-catalog")

    def accepted(issuer: TokenSigner) -> bool:
        try:
            return ring().verify(issuer.token("svc-catalog", issuer.as_service())).issuer == "svc-tickets"
        except IdentityError:
            return False

    new = TokenSigner(folder / "svc-tickets-next.jwk")
    assert accepted(old)
    assert accepted(new)
    (folder / "svc-tickets.jwk").rename(folder / "svc-tickets-old.jwk")
    (folder / "svc-tickets-next.jwk").rename(folder / "svc-tickets.jwk")
    assert accepted(old)
    assert accepted(TokenSigner(folder / "svc-tickets.jwk"))
    (folder / "svc-tickets-old.jwk").unlink()
    assert accepted(TokenSigner(folder / "svc-tickets.jwk"))
    assert not accepted(old)


def migrate(name: str, log: Path, url: str, owner_url: str) -> None:
    """The command of the migration Job."""
    environment = {"PATH": os.environ["PATH"], "MAKEREADY_DATABASE_URL": url, "MAKEREADY_DATABASE_OWNER_URL": owner_url}
    program = [sys.executable, "-P", "-m", name.replace("-", "_")]
    Process(program, log, early_variables() | environment, warm=True).run_to_end("migrate")


def run_sql(administrative_url: str, file: Path) -> "subprocess.CompletedProcess[str]":
    """The command of the databases' administrator."""
    psql = reachable_binaries(None) / "psql"
    command = [str(psql), "--no-psqlrc", "-q", "-d", administrative_url, "-f", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def on_server(secrets: Path, administrative_url: str, prefix: str) -> dict[str, str]:
    """Changes the files' URLs to a server without TLS and to names that only this test uses. Returns the URLs."""
    place = administrative_url.rpartition("@")[2].split("/")[0]
    urls = {}
    for name in (*SERVICES, "console"):
        for file in (name, f"{name}-owner"):
            path = secrets / f"{file}.env"
            context = name.removeprefix("svc-")
            text = path.read_text().replace("db.example:5432", place).split("?")[0] + "?sslmode=prefer\n"
            text = text.replace(f"//{context}", f"//{prefix}{context}").replace(f"/{context}?", f"/{prefix}{context}?")
            path.write_text(text)
            urls[file] = values(path)["database-url"]
    return urls


async def test_the_sql_makes_databases_that_each_service_alone_can_use_and_its_owner_migrate(
    secrets: Path, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    urls = on_server(secrets, postgres_server.url, "k8s_")
    assert make_secrets(secrets).returncode == 0
    for _ in range(2):  # it may be run again
        done = await asyncio.to_thread(run_sql, postgres_server.url, secrets / "databases.sql")
        assert done.returncode == 0, done.stderr
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asyncpg.connect(urls["gateway"].replace("/k8s_gateway?", "/k8s_catalog?"))
    for name in SERVICES:
        package = name.replace("-", "_")
        if importlib.util.find_spec(f"{package}.migrations") is None:
            continue
        await asyncio.to_thread(migrate, name, tmp_path / "migrate.log", urls[name], urls[f"{name}-owner"])
        connection = await asyncpg.connect(urls[name])
        try:
            assert await connection.fetchval("SELECT count(*) FROM alembic_version") == 1
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("DELETE FROM audit")
        finally:
            await connection.close()


async def test_the_sql_takes_over_the_databases_of_release_0_2_0(
    secrets: Path, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """There the service's role owned everything, and the administrator was no superuser."""
    urls = on_server(secrets, postgres_server.url, "k8s_old_")
    for name in SERVICES:
        (secrets / f"{name}-owner.env").unlink()
    superuser = await asyncpg.connect(postgres_server.url)
    await superuser.execute("CREATE ROLE k8s_dba LOGIN CREATEROLE CREATEDB PASSWORD 'dba'")
    await superuser.execute("GRANT CONNECT ON DATABASE postgres TO k8s_dba")
    await superuser.close()
    place = postgres_server.url.rpartition("@")[2]
    administrative_url = f"postgresql://k8s_dba:dba@{place}"
    administrator = await asyncpg.connect(administrative_url)
    for name in SERVICES:
        parts = urlsplit(urls[name])
        for statement in (
            f"CREATE ROLE {parts.username} LOGIN PASSWORD '{parts.password}'",
            f"GRANT {parts.username} TO CURRENT_USER",
            f"CREATE DATABASE {parts.username} OWNER {parts.username} TEMPLATE template0",
            f"REVOKE CONNECT, TEMPORARY ON DATABASE {parts.username} FROM PUBLIC",
        ):
            await administrator.execute(statement)
    await administrator.close()
    for name in SERVICES:
        connection = await asyncpg.connect(urls[name])
        await connection.execute((ROOT / name / "schema" / "released.sql").read_text())
        await connection.execute("CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)")
        await connection.execute("INSERT INTO alembic_version VALUES ('0001_initial')")
        await connection.close()
    assert make_secrets(secrets).returncode == 0
    for _ in range(2):
        done = await asyncio.to_thread(run_sql, administrative_url, secrets / "databases.sql")
        assert done.returncode == 0, done.stderr
    for name in SERVICES:
        owner_url = values(secrets / f"{name}-owner.env")["database-url"]
        await asyncio.to_thread(migrate, name, tmp_path / "migrate.log", urls[name], owner_url)
        connection = await asyncpg.connect(urls[name])
        owned = "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = current_user"
        assert await connection.fetchval(owned) == 0
        assert await connection.fetchval("SELECT count(*) FROM audit") == 0
        await connection.close()


def test_a_prefix_is_in_the_names_of_databases_and_roles(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    arguments = ["--database-host", "db.example", "--database-ca", str(tmp_path / "ca.pem"), "--database-prefix"]
    assert make_secrets(tmp_path / "bad", *arguments, "North-").returncode == 2
    assert make_secrets(tmp_path / "secrets", *arguments, "north_").returncode == 0
    for name in SERVICES:
        url = urlsplit(values(tmp_path / "secrets" / f"{name}.env")["database-url"])
        context = name.removeprefix("svc-")
        assert (url.username, url.path) == (f"north_{context}", f"/north_{context}")
        owner_url = urlsplit(values(tmp_path / "secrets" / f"{name}-owner.env")["database-url"])
        assert (owner_url.username, owner_url.path) == (f"north_{context}_owner", f"/north_{context}")


def test_with_a_pooler_migrations_and_sessions_have_the_servers_own_address(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    arguments = ["--database-host", "pooler.example:6432", "--database-ca", str(tmp_path / "ca.pem")]
    made = make_secrets(tmp_path / "secrets", *arguments, "--database-direct-host", "db.example")
    assert made.returncode == 0, made.stderr
    for name in (*SERVICES, "console"):
        found = values(tmp_path / "secrets" / f"{name}.env")
        url, direct_url = urlsplit(found["database-url"]), urlsplit(found["database-direct-url"])
        owner_url = urlsplit(values(tmp_path / "secrets" / f"{name}-owner.env")["database-url"])
        assert (url.hostname, url.port) == ("pooler.example", 6432)
        assert (direct_url.hostname, owner_url.hostname) == ("db.example", "db.example")
        assert direct_url._replace(netloc=url.netloc) == url and direct_url.password == url.password
        given = {"MAKEREADY_DATABASE_POOLER": "transaction"} | {
            f"MAKEREADY_{key.upper().replace('-', '_')}": value for key, value in found.items()
        }
        assert database_settings(Environment(given)).direct_url == found["database-direct-url"]
    before = (tmp_path / "secrets" / "gateway.env").read_text()
    assert make_secrets(tmp_path / "secrets", "--database-direct-host", "other.example").returncode == 0
    assert (tmp_path / "secrets" / "gateway.env").read_text() == before
