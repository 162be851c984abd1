"""Decides which URLs may receive deliveries, and which addresses may be dialled for them (spec 4.11, 6.3).

Pure: it opens no socket. client.py resolves the name and dials; it calls `is_public` for every address, when a
subscription is created and again before every send.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote

import idna

Address = IPv4Address | IPv6Address

URL_CHARACTERS_MAX = 2048

# The IANA special-purpose registries. They are copied here because the standard library's `is_global` changed its
# results between patch releases of one Python. Relayed addresses (6to4) are refused too.
_IPV4_NOT_PUBLIC = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; one cloud's metadata is 100.100.100.200
        "127.0.0.0/8",
        "168.63.129.16/32",  # globally routable by the registry, but a cloud's host agent
        "169.254.0.0/16",  # link-local; most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_IPV6_GLOBAL = IPv6Network("2000::/3")  # the only block that IANA assigns; all others are special
_IPV6_NOT_PUBLIC = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments, Teredo and ORCHID among them
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_IPV4_MAPPED = IPv6Network("::ffff:0:0/96")
_ISATAP = (0x00005EFE, 0x02005EFE)

# Names that never lead to a public receiver (RFC 6761, 6762, 7686, 8375, names that ICANN never delegates, and names in
# common private use).
_SPECIAL_NAMES = (
    "alt", "arpa", "consul", "corp", "default", "example", "home", "internal", "intranet", "invalid", "lan", "local",
    "localdomain", "localdomain6", "localhost", "localhost6", "mail", "onion", "private", "svc", "test",
)  # fmt: skip

# Those of one machine, and of a private network. Link-local ones are not among them: there are clouds' metadata.
_LOCAL = tuple(
    ip_network(block)
    for block in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
# The private blocks in which clouds have their metadata: those of Amazon and of Google.
_METADATA = tuple(ip_network(block) for block in ("fd00:ec2::/32", "fd20:ce::/32"))

HTTPS_PORT, HTTP_PORT, PORT_MAX = 443, 80, 65535
_URL = re.compile(r"(?P<scheme>(?ai:https?))://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?")
_PORT = re.compile(r":(?P<port>[0-9]{1,5})?|")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# The dots of the DNS, those of other scripts included (RFC 3490, 3.1).
_DOTS = ".\u3002\uff0e\uff61"
_TARGET_SAFE = "/?:@!$&'()*+,;=-._~%[]"


class DestinationRefused(Exception):  # noqa: N818 - a refusal, no fault
    """The URL can never be a destination. `reason` completes "destination_url …"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL that passed the rules that need no network."""

    host: str  # lower-case ASCII without a final dot, an address in its canonical form
    target: str  # path and query as they go on the wire
    address: Address | None  # set if the host is an address itself
    port: int = HTTPS_PORT
    is_plain: bool = False  # http
    may_be_local: bool = False
    must_be_local: bool = False  # because it is http, or on another port

    @property
    def authority(self) -> str:
        """As the header Host has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (HTTP_PORT if self.is_plain else HTTPS_PORT) else f"{host}:{self.port}"


def parse(url: str, *, overridden: Collection[str] = (), may_be_local: bool = False) -> Destination:
    """Checks scheme, port, userinfo and host of `url`; raises DestinationRefused.

    overridden: hosts whose address the operator configures; no resolver needs to know them. may_be_local: also hosts of
    this machine or of a private network, those by http and on any port. Deliberately narrower than RFC 3986: refuses
    what two parsers could read differently.
    """
    if len(url) > URL_CHARACTERS_MAX:
        raise DestinationRefused(f"must be at most {URL_CHARACTERS_MAX} characters long")
    if any(character <= " " or character in "\\\x7f" for character in url) or not url.isprintable():
        raise DestinationRefused("must not hold spaces, backslashes or control characters")
    match = _URL.fullmatch(url)
    is_plain = match is not None and match["scheme"].lower() == "http"
    if match is None or (is_plain and not may_be_local):
        raise DestinationRefused(f"must be an https{' or http' if may_be_local else ''} URL")
    host, port = _host_and_port(match["authority"], HTTP_PORT if is_plain else HTTPS_PORT)
    if port != HTTPS_PORT and not may_be_local:
        raise DestinationRefused("must use port 443")
    if not host:
        raise DestinationRefused("must name a host")
    if not host.isascii():
        host = _encoded(host)
    host = host.lower()
    address = _literal(host)
    if address is not None:
        host = str(address)
    else:
        # The dot says that the name is complete, as every name is here. No certificate has it, so the request hasn't.
        host = host.removesuffix(".")
        if host not in overridden:
            _check_name(host, may_be_local=may_be_local)
    target = _target(match["target"])
    must_be_local = is_plain or port != HTTPS_PORT
    return Destination(host, target, address, port, is_plain, may_be_local, must_be_local)


def is_local(address: Address) -> bool:
    """Whether a packet to `address` ends on this machine or in a private network, and at no metadata of a cloud."""
    address = unwrapped(address)
    return any(address in block for block in _LOCAL) and not any(address in block for block in _METADATA)


def is_public(address: Address) -> bool:
    """Whether a packet to `address` ends on the public Internet, after unwrapping embedded addresses."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in _IPV4_NOT_PUBLIC)
    if address.scope_id is not None:
        return False
    embedded = unwrapped(address)
    if isinstance(embedded, IPv4Address):
        return is_public(embedded)
    if address not in _IPV6_GLOBAL or any(address in block for block in _IPV6_NOT_PUBLIC):
        return False
    interface = int(address) & 0xFFFFFFFFFFFFFFFF
    if interface >> 32 in _ISATAP:
        return is_public(IPv4Address(interface & 0xFFFFFFFF))
    return True


def unwrapped(address: Address) -> Address:
    """The IPv4 address that a mapped or NAT64 address leads to; any other address as it is."""
    if isinstance(address, IPv6Address) and (address in _IPV4_MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _host_and_port(authority: str, default_port: int) -> tuple[str, int]:
    if "@" in authority:
        raise DestinationRefused("must not hold a user name or password")
    if authority.startswith("["):
        host, bracket, port = authority.partition("]")
        if not bracket:
            raise DestinationRefused("must hold a well-formed address")
        host += bracket
    else:
        host, colon, port = authority.partition(":")
        port = colon + port
    match = _PORT.fullmatch(port)
    number = int(match["port"] or default_port) if match else 0  # an empty port is the scheme's
    if not 0 < number <= PORT_MAX or (match and (match["port"] or "").startswith("0")):
        raise DestinationRefused("must use port 443")
    return host, number


def _encoded(host: str) -> str:
    try:
        if len(host) > 254:  # before the encoder, whose time grows with the square of the length
            raise DestinationRefused("must have a host name of at most 253 characters")
        encoded = idna.encode(host, uts46=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise DestinationRefused("must have a host name that can be encoded for the DNS") from error
    if _NUMBER.fullmatch(_last_label(encoded)) or _last_label(host).isdigit():
        raise DestinationRefused("must spell an address in its usual form")
    return encoded


def _last_label(host: str) -> str:
    """Whatever dots follow it."""
    return re.split(f"[{_DOTS}]", host.rstrip(_DOTS))[-1]


def _literal(host: str) -> Address | None:
    """The address that `host` spells. Numbers in any other spelling are refused, because resolvers interpret them
    differently."""
    if host.startswith("["):
        try:
            address = IPv6Address(host[1:-1])
        except ValueError as error:
            raise DestinationRefused("must hold a well-formed address") from error
        if address.scope_id is not None:
            raise DestinationRefused("must hold a well-formed address")
        return address
    if not _NUMBER.fullmatch(_last_label(host)):
        return None
    try:
        return ip_address(host)
    except ValueError as error:
        raise DestinationRefused("must spell an address in its usual form") from error


def _check_name(host: str, *, may_be_local: bool) -> None:
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise DestinationRefused("must have a well-formed host name")
    if not may_be_local and (len(labels) < 2 or labels[-1] in _SPECIAL_NAMES):
        raise DestinationRefused("must have a public host")


def _target(target: str) -> str:
    if not target.startswith("/"):
        target = "/" + target
    return quote(target, safe=_TARGET_SAFE)
