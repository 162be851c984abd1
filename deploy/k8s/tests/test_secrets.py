"""The secrets of a new installation, and their rotation."""

import asyncio
import base64
import importlib.util
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from chassis.auth.identity import IdentityError, TokenSigner, TokenVerifier
from chassis.db import roles
from chassis.runtime.settings import Environment, database_settings
from gateway.http.cursors import Cursors
from gateway.identity.accounts.totp import TotpFault, TotpSecrets
from gateway.identity.keys.rules import KeyChecks
from makeready_local.postgres import reachable_binaries
from svc_webhooks.vault.keyring import Sealed, Vault, VaultFault
from testkit.plugin import PostgresServer
from testkit.processes import Process
from testkit.warm import early_variables

from .manifests import Bundle, documents, make_secrets, run_secrets

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
            assert (
                value == ",".join(f"{user}@nats-{number}.nats:4222" for number in range(3))
                if at
                else value == old[name]
            )
    texts = [file.read_text() for file in files]
    users_without = {name: value for name, value in users.items() if not name.startswith("console")}
    files[1].write_text("".join(f"{name}={value}\n" for name, value in users_without.items()))
    assert make_secrets(secrets).returncode == 0
    assert files[0].read_text() == texts[0] and values(files[1])["console-url"].count("@nats-") == 3
    assert make_secrets(secrets, "--nats-servers", "1").returncode == 0
    assert [values(file).keys() for file in files] == [{*before[0], "routes-password"}, before[1].keys()]
    assert values(files[0])["url"] == before[0]["url"]


def test_another_database_server_changes_the_urls_and_no_password(secrets: Path, tmp_path: Path) -> None:
    """The folder is told of a pooler, of another server behind it, and of new certificates."""
    names = [f"{name}{suffix}" for name in (*SERVICES, "console") for suffix in ("", "-owner")]
    before = {name: values(secrets / f"{name}.env") for name in names}
    ca = tmp_path / "other.pem"
    ca.write_text("other")

    def hosts(field: str, *, owners: bool = False) -> set[str | None]:
        of_roles = [values(secrets / f"{name}.env") for name in names if name.endswith("-owner") is owners]
        return {urlsplit(secret[field]).hostname for secret in of_roles}

    done = make_secrets(secrets, "--database-host", "pooler.example:6432", "--database-direct-host", "db.example")
    assert done.returncode == 0, done.stderr
    assert hosts("database-url") == {"pooler.example"} and hosts("database-direct-url") == {"db.example"}
    assert hosts("database-url", owners=True) == {"db.example"}
    assert make_secrets(secrets, "--database-direct-host", "new.example", "--database-ca", str(ca)).returncode == 0
    assert hosts("database-url") == {"pooler.example"} and hosts("database-direct-url") == {"new.example"}
    assert hosts("database-url", owners=True) == {"new.example"} and (secrets / "ca.crt").read_text() == "other"
    for name in names:
        after = values(secrets / f"{name}.env")
        old, new = (urlsplit(urls["database-url"]) for urls in (before[name], after))
        assert new._replace(netloc=old.netloc) == old and new.password == old.password
        assert {key: after[key] for key in before[name] if key != "database-url"} == {
            key: value for key, value in before[name].items() if key != "database-url"
        }
    refused = make_secrets(secrets, "--database-prefix", "north_")
    assert refused.returncode == 1 and "--database-prefix cannot change" in refused.stderr


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
        assert done.stderr.startswith("makeready: ")
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


def rotate(secrets: Path, *words: str) -> tuple[int, str]:
    """Runs the command from deploy/README.md; returns its exit status and output, which holds no secret."""
    done = run_secrets("rotate", str(secrets), *words)
    assert not long_words(secrets) & set(re.findall(r"[\w+/=-]{20,}", done.stdout + done.stderr))
    return done.returncode, done.stdout + done.stderr


def long_words(secrets: Path) -> set[str]:
    """Long words of all files with secrets, of which no output may have one."""
    files = [path for path in secrets.rglob("*") if path.suffix in (".env", ".jwk")]
    return {word for path in files for word in re.findall(r"[\w+/=-]{20,}", path.read_text())}


def steps(secrets: Path, name: str, folder: Path) -> list[Path]:
    """The folder before, between and after the steps of a rotation."""
    folders = [shutil.copytree(secrets, folder / "0")]
    for number, words in enumerate(((), (), ("--drop-old",)), start=1):
        assert rotate(secrets, name, *words)[0] == 0
        folders.append(shutil.copytree(secrets, folder / str(number)))
    return folders


def ring(secrets: Path, service: str, name: str) -> dict[str, bytes]:
    keys = dict(pair.split(":", 1) for pair in values(secrets / f"{service}.env")[name].split(","))
    return {key_id: base64.b64decode(key) for key_id, key in keys.items()}


def token_made(secrets: Path) -> str:
    signer = TokenSigner(secrets / "identity/svc-tickets.jwk")
    return signer.token("svc-catalog", signer.as_service())


def token_accepted(secrets: Path, token: str) -> bool:
    try:
        verifier = TokenVerifier(secrets / "identity/ring.jwks", audience="svc-catalog")
        return verifier.verify(token).issuer == "svc-tickets"
    except IdentityError:
        return False


def totp_opened(secrets: Path, sealed: bytes) -> bool:
    try:
        return TotpSecrets(ring(secrets, "gateway", "totp-keys")).open(7, sealed) == "secret"
    except TotpFault:
        return False


def vault_opened(secrets: Path, sealed: Sealed) -> bool:
    try:
        return Vault(ring(secrets, "svc-webhooks", "vault-keys")).open(7, sealed.key_id, sealed.sealed) == "secret"
    except VaultFault:
        return False


def key_made(secrets: Path) -> str | None:
    checks = KeyChecks(ring(secrets, "gateway", "key-check-secrets"))
    return checks.key_of(checks.new_recipe())


ACCEPTING: dict[str, tuple[Callable[[Path], Any], Callable[[Path, Any], bool]]] = {
    "identity-svc-tickets": (token_made, token_accepted),
    "cursor-keys": (
        lambda secrets: Cursors(ring(secrets, "gateway", "cursor-keys")).issue(7, b"list"),
        lambda secrets, cursor: Cursors(ring(secrets, "gateway", "cursor-keys")).after_id(cursor, b"list") == 7,
    ),
    "key-check-secrets": (
        key_made,
        lambda secrets, key: KeyChecks(ring(secrets, "gateway", "key-check-secrets")).verdict(key) == "good",
    ),
    "totp-keys": (lambda secrets: TotpSecrets(ring(secrets, "gateway", "totp-keys")).seal(7, "secret"), totp_opened),
    "vault-keys": (lambda secrets: Vault(ring(secrets, "svc-webhooks", "vault-keys")).seal(7, "secret"), vault_opened),
}
"""By what is rotated: what a process makes with it, and whether another process accepts that."""


@pytest.mark.parametrize("name", ACCEPTING)
def test_processes_before_and_after_each_step_accept_each_other(secrets: Path, tmp_path: Path, name: str) -> None:
    """During a roll-out both run. What the first key made is refused only once it has left."""
    make, accepts = ACCEPTING[name]
    folders = steps(secrets, name, tmp_path / "steps")
    for before, after in itertools.pairwise(folders):
        made_by_old = accepts(after, make(before))
        assert accepts(before, make(after)) and accepts(after, make(after))
        assert made_by_old
    assert not accepts(folders[-1], make(folders[0]))


def test_a_rotation_can_be_repeated_and_ends_only_when_told_to(secrets: Path) -> None:
    first = ring(secrets, "svc-webhooks", "vault-keys")
    status, output = rotate(secrets, "vault-keys", "--drop-old")
    assert status == 1 and "still in use" in output
    assert "key is added" in rotate(secrets, "vault-keys")[1]
    assert "vault reseal" in rotate(secrets, "vault-keys")[1]
    status, output = rotate(secrets, "vault-keys")
    assert status == 1 and "still accepted" in output
    assert list(ring(secrets, "svc-webhooks", "vault-keys")) == ["k2", "k1"]
    assert rotate(secrets, "vault-keys", "--drop-old")[0] == 0
    assert list(ring(secrets, "svc-webhooks", "vault-keys")) == ["k2"]
    # Backups made before need it.
    (line,) = (secrets / "retired.env").read_text().splitlines()
    assert line == f"vault-keys=k1:{base64.b64encode(first['k1']).decode()}"
    assert stat.S_IMODE((secrets / "retired.env").stat().st_mode) == 0o600


def test_a_stolen_key_goes_at_once(secrets: Path) -> None:
    token = token_made(secrets)
    assert rotate(secrets, "identity-svc-tickets", "--at-once")[0] == 0
    assert not token_accepted(secrets, token)
    assert token_accepted(secrets, token_made(secrets))
    # In the middle of a rotation any of the keys may be the stolen one.
    assert rotate(secrets, "cursor-keys")[0] == rotate(secrets, "cursor-keys")[0] == 0
    assert rotate(secrets, "cursor-keys", "--at-once")[0] == 0
    assert list(ring(secrets, "gateway", "cursor-keys")) == ["k3"]
    before = values(secrets / "svc-webhooks.env")
    status, output = rotate(secrets, "vault-keys", "--at-once")
    assert status == 1 and "sealed anew first" in output and values(secrets / "svc-webhooks.env") == before


def test_a_key_signs_only_after_a_roll_out_of_the_ring_that_has_it(secrets: Path) -> None:
    """A run that was killed before the ring had the next key adds it, and does not use it yet."""
    old_ring = (secrets / "identity/ring.jwks").read_text()
    now = (secrets / "identity/gateway.jwk").read_text()
    assert rotate(secrets, "identity-gateway")[0] == 0
    new_ring = (secrets / "identity/ring.jwks").read_text()
    (secrets / "identity/ring.jwks").write_text(old_ring)
    assert "key is added" in rotate(secrets, "identity-gateway")[1]
    assert (secrets / "identity/gateway.jwk").read_text() == now
    assert (secrets / "identity/ring.jwks").read_text() == new_ring


def test_passwords_change_in_every_place_that_has_them(secrets: Path) -> None:
    before = {path.name: values(path) for path in secrets.glob("*.env")}
    sql = (secrets / "databases.sql").read_text()
    text = (secrets / "valkey.env").read_text()
    (secrets / "valkey.env").write_text(text.replace("@valkey:6379", "@store.example:6380"))
    for name in ("nats", "valkey", "database-svc-tickets", "database-owners"):
        assert rotate(secrets, name)[0] == 0
    after = {path.name: values(path) for path in secrets.glob("*.env")}
    changed = {name for name, new_values in after.items() if new_values != before[name]}
    owners = {f"{name}-owner.env" for name in (*SERVICES, "console")}
    assert changed == {"nats.env", "nats-users.env", "valkey.env", "svc-tickets.env", *owners}
    url, old = urlsplit(after["svc-tickets.env"]["database-url"]), urlsplit(before["svc-tickets.env"]["database-url"])
    assert url.password != old.password and url._replace(netloc="") == old._replace(netloc="")
    new_sql = (secrets / "databases.sql").read_text()
    old_verifier, verifier = (roles.scram_verifier("tickets", parts.password or "") for parts in (old, url))
    assert f"PASSWORD '{verifier}'" in new_sql and f"PASSWORD '{old_verifier}'" in sql
    assert old_verifier not in new_sql
    valkey = after["valkey.env"]
    assert valkey["url"] == f"valkey://:{valkey['password']}@store.example:6380"
    users, nats_values = after["nats-users.env"], after["nats.env"]
    assert f":{users['gateway-password']}@" in users["gateway-url"]
    assert (
        f":{nats_values['password']}@" in nats_values["url"]
        and nats_values["password"] != before["nats.env"]["password"]
    )


def test_what_a_folder_holds_becomes_manifests_only_when_asked(secrets: Path, as_read: Bundle, tmp_path: Path) -> None:
    """They are the Secrets that kustomize makes of the same folder."""
    output = tmp_path / "secrets.yaml"
    done = run_secrets("manifests", str(secrets), "--output", str(output))
    assert done.returncode == 0 and not long_words(secrets) & set(re.findall(r"[\w+/=-]{20,}", done.stdout))
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    bundle = Bundle(tuple(documents(output)))
    names = {secret["metadata"]["name"] for secret in bundle.of("Secret")}
    assert names == {secret["metadata"]["name"] for secret in as_read.of("Secret")}
    for name in names:
        assert bundle.values("Secret", name) == as_read.values("Secret", name)
    assert bundle.values("ConfigMap", "identity-ring") == as_read.values("ConfigMap", "identity-ring")
    assert {manifest["metadata"]["namespace"] for manifest in bundle.manifests} == {"makeready"}
    again = run_secrets("manifests", str(secrets), "--output", str(output))
    assert (again.returncode, again.stderr) == (1, f"makeready: {output} exists already.\n")
    valkey = run_secrets("manifests", str(secrets), "--name", "valkey")
    assert json.loads(valkey.stdout) == as_read.values("Secret", "valkey")


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
    sql = (secrets / "databases.sql").read_text()
    assert not any(str(urlsplit(url).password) in sql for url in urls.values())
    superuser, verifiers = await asyncpg.connect(postgres_server.url), []
    for _ in range(2):  # it may be run again: a pooler's copies of the verifiers stay true
        done = await asyncio.to_thread(run_sql, postgres_server.url, secrets / "databases.sql")
        assert done.returncode == 0, done.stderr
        query = "SELECT rolname, rolpassword FROM pg_authid WHERE rolname LIKE 'k8s\\_%' AND rolcanlogin ORDER BY 1"
        verifiers.append([tuple(row) for row in await superuser.fetch(query)])
    await superuser.close()
    assert verifiers[0] == verifiers[1] and len(verifiers[0]) == 2 * len((*SERVICES, "console"))
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
    done = make_secrets(tmp_path / "secrets", *arguments, "--database-direct-host", "db.example")
    assert done.returncode == 0, done.stderr
    for name in (*SERVICES, "console"):
        secret = values(tmp_path / "secrets" / f"{name}.env")
        url, direct_url = urlsplit(secret["database-url"]), urlsplit(secret["database-direct-url"])
        owner_url = urlsplit(values(tmp_path / "secrets" / f"{name}-owner.env")["database-url"])
        assert (url.hostname, url.port) == ("pooler.example", 6432)
        assert (direct_url.hostname, owner_url.hostname) == ("db.example", "db.example")
        assert direct_url._replace(netloc=url.netloc) == url and direct_url.password == url.password
        variables = {"MAKEREADY_DATABASE_POOLER": "transaction"} | {
            f"MAKEREADY_{key.upper().replace('-', '_')}": value for key, value in secret.items()
        }
        assert database_settings(Environment(variables)).direct_url == secret["database-direct-url"]
