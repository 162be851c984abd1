"""Settings from the environment: each is checked, and the error names a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from chassis.runtime.settings import Environment, SettingsError, nats_replicas, nats_servers, service_settings


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "٣", "", " 80"])
def test_a_bad_port_is_named(port: str) -> None:
    with pytest.raises(SettingsError, match=r"^LISTEN "):
        Environment({"LISTEN": f"127.0.0.1:{port}"}).listen("LISTEN", "127.0.0.1:1")


@pytest.mark.parametrize("text", ["9" * 5000, "-1", "1e3", " 7", "٣"])
def test_an_invalid_number_is_reported_with_the_settings_name(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^COUNT must be"):
        Environment({"COUNT": text}).integer("COUNT", 1, 1, 86400)


@pytest.mark.parametrize("text", ["nats://[", "nats://host:x", "nats://host:99999", "http://host", "nats:"])
def test_an_invalid_url_is_reported_with_the_settings_name(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^PLACE must be"):
        Environment({"PLACE": text}).url("PLACE", ("nats",))


@pytest.fixture
def values(tmp_path: Path) -> dict[str, str]:
    """The required settings of a process."""
    (tmp_path / "key").touch()
    return {
        "MAKEREADY_DATABASE_URL": "postgresql://localhost/orders",
        "MAKEREADY_NATS_URL": "nats://localhost:4222",
        "MAKEREADY_IDENTITY_KEY_FILE": str(tmp_path / "key"),
        "MAKEREADY_IDENTITY_RING_FILE": str(tmp_path / "key"),
    }


def test_a_process_with_the_fewest_settings_has_defaults_for_the_rest(values: dict[str, str]) -> None:
    settings = service_settings(Environment(values))
    assert (settings.grpc_listen, settings.log_level, settings.drain_seconds) == ("127.0.0.1:9090", "info", 0)
    assert (settings.database.connections, settings.connection_age_seconds, settings.addresses) == (10, 30, {})


def test_each_setting_that_must_be_there_is_named(values: dict[str, str]) -> None:
    for name in values:
        with pytest.raises(SettingsError, match=f"^{name} is not set"):
            service_settings(Environment({key: value for key, value in values.items() if key != name}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAKEREADY_LOG_LEVEL", "loud"),
        ("MAKEREADY_DRAIN_SECONDS", "61"),
        ("MAKEREADY_CONNECTION_AGE_SECONDS", "0"),
        ("MAKEREADY_DATABASE_CONNECTIONS", "1"),
        ("MAKEREADY_LINKS_URL", "ftp://host"),
        ("MAKEREADY_IDENTITY_KEY_FILE", "/nowhere"),
        ("MAKEREADY_METRICS_LISTEN", "9091"),
    ],
)
def test_a_bad_setting_is_named(values: dict[str, str], name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name} "):
        service_settings(Environment(values | {name: value}))


def test_the_addresses_of_all_services_in_the_settings_are_found(values: dict[str, str]) -> None:
    environment = {
        "MAKEREADY_GATEWAY_ADDRESS": "dns:///g:1",
        "MAKEREADY_SPARE_PARTS_ADDRESS": "s:2",
        "X_ORDERS_ADDRESS": "x:3",
    }
    settings = service_settings(Environment(values | environment | {"MAKEREADY_EMPTY_ADDRESS": ""}))
    assert settings.addresses == {"gateway": "dns:///g:1", "spare_parts": "s:2"}
    assert (settings.address("gateway"), settings.address("svc-spare-parts")) == ("dns:///g:1", "s:2")


def test_a_missing_address_is_named_by_its_setting(values: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"^MAKEREADY_ORDERS_ADDRESS is not set"):
        service_settings(Environment(values)).address("svc-orders")


def test_the_servers_of_a_cluster_have_one_user_whichever_url_names_it() -> None:
    for text in (
        "nats://op:p%40ss@one:4222,nats://op:p%40ss@two:4222",
        "nats://one:4222, nats://op:p%40ss@two:4222/",
    ):
        servers = nats_servers(text)
        assert servers == (["nats://one:4222", "nats://two:4222"], False, "op", "p@ss")
    assert nats_servers("tls://token@[::1]:4223,tls://host") == (
        ["tls://[::1]:4223", "tls://host"],
        True,
        "token",
        None,
    )
    assert nats_servers("nats://host") == (["nats://host"], False, "", None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a URL that starts with nats:// or tls://, or several, set apart by commas."),
        ("http://one", "set apart by commas."),
        ("nats://one,", "the 2. is none."),
        ("nats://op:pass,word@one", "the 1. is none."),
        ("nats://one,two:4222", "the 2. is none."),
        ("nats://one:x", "set apart by commas."),
        ("nats://one:0", "set apart by commas."),
        ("nats://one:99999", "set apart by commas."),
        ("nats://", "set apart by commas."),
        ("nats://o ne", "set apart by commas."),
        ("nats://one/path", "set apart by commas."),
        ("nats://one?x=1", "set apart by commas."),
        ("nats://one,tls://two", "must start with nats:// for all servers, or with tls:// for all."),
        ("nats://a:b@one,nats://a:c@two", "must have the same user and password for all servers."),
    ],
)
def test_a_bad_list_of_servers_is_named_without_its_password(values: dict[str, str], text: str, words: str) -> None:
    with pytest.raises(SettingsError) as error:
        service_settings(Environment(values | {"MAKEREADY_NATS_URL": text}))
    assert str(error.value).startswith("MAKEREADY_NATS_URL must ") and str(error.value).endswith(words)
    assert "pass" not in str(error.value).replace("password", "")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MAKEREADY_NATS_CA_FILE", "MAKEREADY_NATS_CA_FILE must hold certificates in PEM."),
        ("MAKEREADY_NATS_CERT_FILE", "belong together: set both or neither."),
        ("MAKEREADY_NATS_KEY_FILE", "belong together: set both or neither."),
    ],
)
def test_a_bad_certificate_for_nats_is_named(values: dict[str, str], name: str, words: str) -> None:
    with pytest.raises(SettingsError) as error:
        service_settings(Environment(values | {name: values["MAKEREADY_IDENTITY_KEY_FILE"]}))
    assert str(error.value).startswith("MAKEREADY_NATS_") and words in str(error.value)


def test_a_stream_has_one_three_or_five_replicas() -> None:
    read = [nats_replicas(Environment({"MAKEREADY_NATS_REPLICAS": text})) for text in ("", "1", "3", "5")]
    assert read == [None, 1, 3, 5]
    for text in ("0", "2", "7", "three", "\u0663"):
        with pytest.raises(SettingsError, match=r"^MAKEREADY_NATS_REPLICAS must be 1, 3 or 5.$"):
            nats_replicas(Environment({"MAKEREADY_NATS_REPLICAS": text}))
