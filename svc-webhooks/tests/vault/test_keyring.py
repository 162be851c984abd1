"""Secrets at rest."""

import base64

import pytest

from chassis.runtime.settings import SettingsError
from svc_webhooks.vault.keyring import Vault, VaultFault, new_secret, prefix_of, vault_from

OLD, NEW = b"o" * 32, b"n" * 32


def encoded(material: bytes) -> str:
    return base64.b64encode(material).decode()


def test_what_is_sealed_opens_again() -> None:
    vault = Vault({"k1": OLD})
    secret = new_secret()
    sealed = vault.seal(7, secret)
    assert secret.encode() not in sealed.sealed
    assert vault.open(7, sealed.key_id, sealed.sealed) == secret


def test_sealing_twice_differs() -> None:
    vault = Vault({"k1": OLD})
    assert vault.seal(7, "s").sealed != vault.seal(7, "s").sealed


def test_a_secret_opens_for_its_own_subscription_alone() -> None:
    vault = Vault({"k1": OLD})
    sealed = vault.seal(7, "s")
    with pytest.raises(VaultFault):
        vault.open(8, sealed.key_id, sealed.sealed)


def test_a_changed_byte_opens_nothing() -> None:
    vault = Vault({"k1": OLD})
    sealed = bytearray(vault.seal(7, "s").sealed)
    sealed[-1] ^= 1
    with pytest.raises(VaultFault):
        vault.open(7, "k1", bytes(sealed))
    with pytest.raises(VaultFault):
        vault.open(7, "k1", b"")


def test_after_rotation_the_first_key_seals_and_the_old_one_still_opens() -> None:
    before = Vault({"k1": OLD}).seal(7, "s")
    after = vault_from(f"k2:{encoded(NEW)},k1:{encoded(OLD)}")
    assert after is not None
    assert after.open(7, before.key_id, before.sealed) == "s"
    assert after.seal(7, "s").key_id == "k2"


def test_a_key_that_left_the_ring_opens_nothing_more() -> None:
    before = Vault({"k1": OLD}).seal(7, "s")
    with pytest.raises(VaultFault):
        Vault({"k2": NEW}).open(7, before.key_id, before.sealed)


def test_an_empty_setting_is_no_vault() -> None:
    assert vault_from("") is None
    assert vault_from(" ") is None


@pytest.mark.parametrize(
    "setting",
    ["k1", "k1:", ":" + encoded(OLD), "k1:!!", "k1:" + encoded(b"short"), f"k1:{encoded(OLD)},k1:{encoded(NEW)}", ","],
)
def test_a_bad_setting_is_refused_without_its_value(setting: str) -> None:
    with pytest.raises(SettingsError) as refused:
        vault_from(setting)
    assert encoded(OLD) not in str(refused.value)


def test_secrets_are_long_distinct_and_shown_by_a_prefix() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert len(first) >= 43
    assert first.startswith(prefix_of(first)) and len(prefix_of(first)) == 12


def test_nothing_of_a_secret_is_printed() -> None:
    sealed = Vault({"k1": OLD}).seal(7, "s")
    assert repr(sealed) == "Sealed(key_id='k1')"
