"""How a process reaches its database: the servers of a URL, a pooler before them, and what is refused."""

from __future__ import annotations

import re

import pytest

from chassis.runtime.database_urls import Server, servers
from chassis.runtime.settings import Environment, SettingsError, database_settings

WRITABLE = "target_session_attrs=read-write"
ONE = "postgresql://orders:secret@h1:6432/orders"
OWN = "postgresql://orders:secret@h2:5432/orders"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://localhost/orders", [("localhost", 5432)]),
        ("postgresql://u:p@h1:6000/db?sslmode=verify-full&sslrootcert=/ca.crt", [("h1", 6000)]),
        (f"postgresql://u:p@h1:5433,h2:5434/db?{WRITABLE}", [("h1", 5433), ("h2", 5434)]),
        (f"postgresql://u:p@h1,h2:5434,h3/db?{WRITABLE}", [("h1", 5432), ("h2", 5434), ("h3", 5432)]),
        ("postgresql://u:p@h1,h2/db?target_session_attrs=primary", [("h1", 5432), ("h2", 5432)]),
        (f"postgresql://u:p@[fd00::1]:5433/db?{WRITABLE}", [("fd00::1", 5433)]),
        ("postgresql://u:p@[::1]/db", [("::1", 5432)]),
        (f"postgresql://u:p@/db?host=h1,h2&port=5433,5434&{WRITABLE}", [("h1", 5433), ("h2", 5434)]),
        ("postgresql://u:p@/db?host=/run/postgresql", [("/run/postgresql", 5432)]),
        ("postgresql://u:p%40x@h1/db?target_session_attrs=any", [("h1", 5432)]),
    ],
)
def test_the_servers_of_a_url_are_found(url: str, expected: list[tuple[str, int]]) -> None:
    assert servers(url) == [Server(*server) for server in expected]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://h1/db", "must be a URL that starts with postgresql:// or postgres://"),
        ("postgresql:/db", "must be a URL"),
        ("postgresql://u:p@h1,h2/db", "names several hosts, so it needs target_session_attrs=read-write or primary"),
        ("postgresql://u:p@h1,h2/db?target_session_attrs=any", "names several hosts, so it needs"),
        ("postgresql://u:p@h1,h2/db?target_session_attrs=standby", "a service writes"),
        ("postgresql://u:p@h1/db?target_session_attrs=read-only", "a service writes"),
        (f"postgresql://u:p@h1,,h2/db?{WRITABLE}", "names an empty host"),
        (f"postgresql://u:p@h1, h2/db?{WRITABLE}", "names an empty host, or one with spaces"),
        (f"postgresql://u:p@h1:5433,h2:/db?{WRITABLE}", "has a port that is no number from 1 to 65535"),
        ("postgresql://u:p@h1:65536/db", "has a port"),
        ("postgresql://u:p@h1:0/db", "has a port"),
        ("postgresql://u:p@h1:a/db", "has a port"),
        ("postgresql://u:p@x@h1/db", "has an @ in its user or password"),
        ("postgresql://u:p@[::1/db", "is not a URL"),
        ("postgresql://u:p@h1/db?sslmode", "is not a URL"),
        ("postgresql://u:p@h1/db?host=h2", "names its hosts twice"),
        (f"postgresql://u:p@/db?host=h1,h2&port=1,2,3&{WRITABLE}", "needs one port for all hosts, or one for each"),
        ("postgresql://u:p@h1/db?sslmode=prefer&sslmode=disable", "has sslmode more than once"),
        (
            "postgresql://u:p@h1/db?sslmode=require&channel_binding=require",
            "has channel_binding, which is not supported",
        ),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_the_reason_and_without_the_password(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=rf"^PLACE .*{re.escape(words)}.*\.$") as refused:
        Environment({"PLACE": url}).database_url("PLACE")
    assert "u:p" not in str(refused.value)


def settings(**values: str) -> object:
    return database_settings(Environment({f"MAKEREADY_DATABASE_{name}": value for name, value in values.items()}))


def test_without_a_pooler_the_url_is_the_servers_own() -> None:
    settings = database_settings(Environment({"MAKEREADY_DATABASE_URL": ONE}))
    assert (settings.url, settings.direct_url, settings.pooler, settings.connections) == (ONE, ONE, "", 10)


def test_a_poolers_mode_and_the_servers_own_url_are_read() -> None:
    for mode in ("session", "transaction"):
        values = {"URL": ONE, "DIRECT_URL": OWN, "POOLER": mode, "CONNECTIONS": "7"}
        environment = {f"MAKEREADY_DATABASE_{name}": value for name, value in values.items()}
        settings = database_settings(Environment(environment))
        assert (settings.url, settings.direct_url, settings.pooler, settings.connections) == (ONE, OWN, mode, 7)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"POOLER": "1"}, "MAKEREADY_DATABASE_POOLER must be session or transaction"),
        ({"POOLER": "transaction"}, "MAKEREADY_DATABASE_POOLER=transaction needs MAKEREADY_DATABASE_DIRECT_URL"),
        ({"DIRECT_URL": "nowhere"}, "MAKEREADY_DATABASE_DIRECT_URL must be a URL"),
        ({"DIRECT_URL": OWN.replace("/orders", "/other")}, "must name the same role and database"),
        ({"DIRECT_URL": OWN.replace("//orders", "//other")}, "must name the same role and database"),
    ],
)
def test_settings_that_do_not_fit_are_refused(values: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        settings(URL=ONE, **values)
