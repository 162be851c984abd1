"""URLs of PostgreSQL: which servers one names, and what is wrong with one. libpq documents their form."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

SCHEMES = ("postgresql", "postgres")
PORT = 5432
TARGET = "target_session_attrs"
# A service writes, so the other targets, which lead to standbys, are no use to it.
WRITABLE = ("read-write", "primary")
# Parameters of libpq that asyncpg does not know. It would pass them on to the server, which refuses the connection.
UNKNOWN = {
    *("channel_binding", "client_encoding", "connect_timeout", "fallback_application_name", "gssencmode", "hostaddr"),
    *("keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "load_balance_hosts", "replication"),
    *("require_auth", "requirepeer", "sslcertmode", "sslcompression", "sslcrldir", "sslsni", "tcp_user_timeout"),
}


class Server(NamedTuple):
    """One server of a URL. Its host is a name, an address, or the folder of a Unix socket."""

    host: str
    port: int


def servers(url: str) -> list[Server]:
    """The servers that the URL names, in its order; the driver's default if it names none.

    Raises ValueError with the end of a sentence that begins with the setting's name.
    """
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else {}
    except ValueError:
        raise ValueError("is not a URL: an IPv6 address needs [brackets], a parameter the form name=value") from None
    if parts.scheme not in SCHEMES or not parts.netloc:
        raise ValueError(f"must be a URL that starts with {' or '.join(f'{scheme}://' for scheme in SCHEMES)}")
    # The driver takes the first @ for the end of the password.
    _, at, named = parts.netloc.partition("@")
    named = named if at else parts.netloc
    if "@" in named:
        raise ValueError("has an @ in its user or password, which must be written as %40")
    if repeated := sorted(name for name, values in query.items() if len(values) > 1):
        raise ValueError(f"has {repeated[0]} more than once")
    if unknown := sorted(UNKNOWN & query.keys()):
        raise ValueError(f"has {unknown[0]}, which is not supported; leave it out")
    if named and {"host", "port"} & query.keys():
        raise ValueError("names its hosts twice, before the path and as a parameter")
    if named:
        servers_named = [_server(unquote(host)) for host in named.split(",")]
    else:
        hosts = query.get("host", [""])[0].split(",")
        ports = query.get("port", [str(PORT)])[0].split(",")
        if len(ports) not in (1, len(hosts)):
            raise ValueError("needs one port for all hosts, or one for each")
        ports = ports * len(hosts) if len(ports) == 1 else ports
        servers_named = [Server(host, _port(port)) for host, port in zip(hosts, ports, strict=True)]
    target = query.get(TARGET, [""])[0]
    if target not in ("", "any", *WRITABLE):
        raise ValueError(f"must have {TARGET}={' or '.join(WRITABLE)}: a service writes")
    if len(servers_named) > 1 and target not in WRITABLE:
        raise ValueError(f"names several hosts, so it needs {TARGET}={' or '.join(WRITABLE)}")
    return servers_named


def files(url: str) -> list[str]:
    """The certificates and keys that the URL names."""
    query = parse_qs(urlsplit(url).query)
    return [query[name][0] for name in ("sslrootcert", "sslcert", "sslkey", "sslcrl") if name in query]


def _server(text: str) -> Server:
    host, port = text, ""
    if text.startswith("["):
        host, bracket, after_bracket = text[1:].partition("]")
        if not bracket or (after_bracket and not after_bracket.startswith(":")):
            raise ValueError("has an IPv6 address that is not in [brackets]")
        port = after_bracket[1:]
        has_port = bool(after_bracket)
    else:
        host, colon, port = text.partition(":")
        has_port = bool(colon)
    if not host or host != host.strip():
        raise ValueError("names an empty host, or one with spaces around it")
    return Server(host, _port(port) if has_port else PORT)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536):
        raise ValueError("has a port that is no number from 1 to 65535")
    return int(text)
