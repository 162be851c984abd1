"""The vault key that the runner stores, and the services that receive it."""

import os
import stat
from pathlib import Path

import pytest

from makeready_local import config
from makeready_local.services import NAMES, Service, environment_of
from makeready_local.state import State


def key_settings(state_dir: Path) -> dict[str, dict[str, str]]:
    """The environment of each service, by name."""
    services = [Service(name, "postgresql://127.0.0.1/x", "postgresql://owner@127.0.0.1/x") for name in NAMES]
    settings = config.read({"MAKEREADY_STATE_DIR": str(state_dir)})
    state = State(state_dir)
    try:
        return {
            service.name: environment_of(service, services, settings, "nats://127.0.0.1", state) for service in services
        }
    finally:
        os.close(state._lock)  # as when a process ends


def rings(environments: dict[str, dict[str, str]]) -> dict[str, str]:
    return {
        name: environment["WEBHOOKS_VAULT_KEYS"]
        for name, environment in environments.items()
        if "WEBHOOKS_VAULT_KEYS" in environment
    }


def test_the_vault_key_is_made_at_the_first_start_stays_and_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEBHOOKS_VAULT_KEYS", raising=False)
    first = rings(key_settings(tmp_path / "state"))
    assert list(first) == ["svc-webhooks"]
    assert stat.S_IMODE((tmp_path / "state" / "secrets.json").stat().st_mode) == 0o600
    assert rings(key_settings(tmp_path / "state")) == first
    assert rings(key_settings(tmp_path / "other")) != first


@pytest.mark.parametrize("ring", ["", "k2:given,k1:given"])
def test_a_given_ring_is_passed_only_to_services_that_open_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ring: str
) -> None:
    monkeypatch.setenv("WEBHOOKS_VAULT_KEYS", ring)
    assert rings(key_settings(tmp_path / "state")) == {"svc-webhooks": ring}
