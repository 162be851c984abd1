"""Settings from the environment: each is checked, and the error names a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from chassis.runtime.settings import Environment, SettingsError, service_settings


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
    assert (settings.database_connections, settings.connection_age_seconds, settings.addresses) == (10, 30, {})


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
