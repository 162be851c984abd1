"""Addresses of clients, as a connection has them and as proxies forward them."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable, Iterator

# One client often has a whole network of this size to itself.
IPV6_CLIENT_BITS = 64

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@functools.lru_cache(maxsize=4096)
def of_peer(peer: str) -> Address:
    """The address of a connection's peer, as its transport names it."""
    return _plain(ipaddress.ip_address(peer.partition("%")[0]))


def forwarded(lines: Iterable[str]) -> Iterator[Address | None]:
    """The addresses of X-Forwarded-For, the nearest proxy's entry first; None for an entry that is no address.

    The values of the header's `lines` are in order. Some proxies write an address with its port.
    """
    for entry in reversed(",".join(lines).split(",")):
        text = entry.strip()
        if not text:
            continue
        if text.startswith("["):
            text = text[1:].partition("]")[0]
        elif text.count(":") == 1:
            text = text.partition(":")[0]
        try:
            yield _plain(ipaddress.ip_address(text))
        except ValueError:
            yield None


def client_name(address: Address) -> str:
    """The name by which one client is counted: its IPv4 address, or its network of IPv6."""
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address), IPV6_CLIENT_BITS), strict=False))


def _plain(address: Address) -> Address:
    """IPv4 where the address is IPv4 in IPv6's clothes."""
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
