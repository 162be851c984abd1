"""The URLs and addresses that are refused without network access."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_webhooks.http_client.destinations import DestinationRefused, is_public, parse
from testkit.hostile_destinations import EVERY_ADDRESS, EVERY_DESTINATION, EVERY_URL

from ..wire import Resolver, http_client

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2001:4860:4860::8888",
    "2003::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]


# Special-purpose blocks of IPv6 that embed an IPv4 address: the block, and the address's offset from the right in bits.
EMBEDDED = {
    "mapped": ("::ffff:0:0/96", 0),
    "compatible": ("::/96", 0),
    "translated": ("::ffff:0:0:0/96", 0),
    "NAT64": ("64:ff9b::/96", 0),
    "NAT64 of a local network": ("64:ff9b:1::/48", 0),
    "NAT64 of a local network, in front": ("64:ff9b:1::/48", 48),
    "6to4": ("2002::/16", 80),
    "Teredo's server": ("2001::/32", 64),
    "Teredo's client": ("2001::/32", 0),
    "ISATAP": ("2606:4700::5efe:0:0/96", 0),
    "ISATAP, globally unique": ("2606:4700::200:5efe:0:0/96", 0),
}
UNICAST = st.ip_addresses(v=4).filter(is_public)
HIDDEN = st.one_of(
    st.sampled_from([IPv4Address(address) for address in EVERY_ADDRESS if ":" not in address]),
    st.ip_addresses(v=4).filter(lambda address: not is_public(address)),
)


def test_there_are_enough_of_them() -> None:
    assert len(EVERY_DESTINATION) >= 350


async def test_no_hostile_destination_is_taken_or_left_to_a_resolver() -> None:
    resolver = Resolver(["8.8.8.8"])
    async with http_client(None, {}, resolve=resolver) as out:
        for url in EVERY_DESTINATION:
            with pytest.raises(DestinationRefused) as refused:
                await out.check(url)
            assert refused.value.reason.startswith("must "), ascii(url)
            assert len(url) < 9 or url not in refused.value.reason
            outcome = await out.post(url, b"{}", {})
            assert (outcome.error, outcome.address, outcome.is_internal_fault) == (
                "destination_refused",
                None,
                False,
            ), ascii(url)
    assert resolver.asked == []


@pytest.mark.parametrize("url", EVERY_URL, ids=ascii)
def test_a_hostile_url_leads_nowhere_that_is_public(url: str) -> None:
    try:
        address = parse(url).address
    except DestinationRefused:
        return
    assert address is not None and not is_public(address)


@pytest.mark.parametrize("address", EVERY_ADDRESS)
def test_a_special_address_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


def embedded(block: str, shift: int, inside: IPv4Address, other_bits: int) -> IPv6Address:
    """Embeds `inside` at its place in a block; the others are those of `other_bits`."""
    network = IPv6Network(block)
    kept = other_bits & int(network.hostmask) & ~(0xFFFFFFFF << shift)
    return IPv6Address(int(network.network_address) | kept | int(inside) << shift)


@pytest.mark.parametrize("form", EMBEDDED)
@given(inside=HIDDEN, other_bits=st.integers(0, 2**128 - 1))
def test_an_address_that_is_not_public_is_not_so_inside_another(
    form: str, inside: IPv4Address, other_bits: int
) -> None:
    block, shift = EMBEDDED[form]
    hidden = embedded(block, shift, inside, other_bits)
    for spelled in (str(hidden), hidden.exploded, hidden.exploded.upper()):
        assert not is_public(ip_address(spelled))
        address = parse(f"https://[{spelled}]/").address
        assert address == hidden


@given(inside=UNICAST)
def test_a_public_address_inside_another_counts_where_a_network_may_need_it(inside: IPv4Address) -> None:
    verdicts = {form: is_public(embedded(block, shift, inside, 0)) for form, (block, shift) in EMBEDDED.items()}
    assert {form for form, public in verdicts.items() if public} == {
        "mapped",
        "NAT64",
        "ISATAP",
        "ISATAP, globally unique",
    }


@given(st.ip_addresses(v=6))
def test_what_is_public_lies_where_addresses_are_handed_out(address: IPv6Address) -> None:
    if is_public(address):
        assert address in IPv6Network("2000::/3") or address.ipv4_mapped or address in IPv6Network("64:ff9b::/96")


@pytest.mark.parametrize("address", PUBLIC)
def test_an_ordinary_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))


def test_an_address_of_one_interface_is_not_public() -> None:
    assert not is_public(ip_address("2606:4700:4700::1111%eth0"))


@pytest.mark.parametrize(
    ("url", "host", "target"),
    [
        ("https://example.com", "example.com", "/"),
        ("HTTPS://EXAMPLE.com:443/Hook", "example.com", "/Hook"),
        ("https://example.com?a=b#part", "example.com", "/?a=b"),
        ("https://example.com/a/../b;c?d=%2F&é=ü", "example.com", "/a/../b;c?d=%2F&%C3%A9=%C3%BC"),
        ("https://bücher.de/", "xn--bcher-kva.de", "/"),
        ("https://my_app.example.com/@x", "my_app.example.com", "/@x"),
        ("https://8.8.8.8/", "8.8.8.8", "/"),
        ("https://[2606:4700:4700:0::1111]:443/", "2606:4700:4700::1111", "/"),
        # A final dot and an empty port (RFC 3986, 3.2.2 and 3.2.3).
        ("https://Example.com./x", "example.com", "/x"),
        ("https://example.com:/x", "example.com", "/x"),
        ("https://example.com.:", "example.com", "/"),
        ("https://example.com.:443?a=b", "example.com", "/?a=b"),
        ("https://b\u00fccher.de./", "xn--bcher-kva.de", "/"),
        ("https://b\u00fccher.de\u3002/", "xn--bcher-kva.de", "/"),
        ("https://example.com\u3002/", "example.com", "/"),
        (f"https://{'a.' * 124}comm./", f"{'a.' * 124}comm", "/"),  # 252 characters without the dot
        ("https://8.8.8.8:/", "8.8.8.8", "/"),
        ("https://[2606:4700:4700::1111]:/", "2606:4700:4700::1111", "/"),
    ],
)
def test_a_sound_destination_is_read(url: str, host: str, target: str) -> None:
    destination = parse(url)
    assert (destination.host, destination.target) == (host, target)


def test_an_overridden_host_keeps_all_other_rules() -> None:
    for url in ("https://receiver.test/x", "https://receiver.test./x", "https://receiver.test:/x"):
        assert parse(url, overridden={"receiver.test"}).host == "receiver.test"
    for url in ("http://receiver.test/", "https://receiver.test:9443/", "https://a@receiver.test/"):
        with pytest.raises(DestinationRefused):
            parse(url, overridden={"receiver.test"})
