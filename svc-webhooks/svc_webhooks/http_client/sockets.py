"""Connects a socket to a checked address, and decides whose fault a failure is."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import NamedTuple

from svc_webhooks.http_client.destinations import Address

# Internal faults for any destination: this machine lacks a descriptor, memory, a port or permission.
_INTERNAL = frozenset(
    (
        errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EADDRINUSE, errno.EACCES,
        errno.EPERM, errno.ENETDOWN, errno.EAFNOSUPPORT,
    )
)  # fmt: skip
# Internal only if `connect` itself reports no route. A later report comes from a router and concerns the receiver's
# network.
_INTERNAL_AT_ONCE = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH))


class Endpoint(NamedTuple):
    """A checked address, or one that the operator configures."""

    address: Address
    port: int
    is_plain: bool = False
    """Without TLS."""


class Failed(Exception):  # noqa: N818 - a class of errors of attempts
    """An exchange without a response.

    error: its class, as recorded. is_internal_fault: the fault is not the receiver's.
    """

    def __init__(self, error: str, *, is_internal_fault: bool = False) -> None:
        super().__init__(error)
        self.error = error
        self.is_internal_fault = is_internal_fault


async def connected(loop: asyncio.AbstractEventLoop, endpoint: Endpoint) -> socket.socket:
    """Raises Failed."""
    family = socket.AF_INET if endpoint.address.version == 4 else socket.AF_INET6
    try:
        opened = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    except OSError as error:
        raise fault_of(error.errno, at_once=True) from error
    try:
        code = opened.connect_ex((str(endpoint.address), endpoint.port))
        at_once = code != errno.EINPROGRESS
        if not at_once:
            ready = loop.create_future()
            loop.add_writer(opened.fileno(), _settle, ready)
            try:
                await ready
            finally:
                loop.remove_writer(opened.fileno())
            code = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise fault_of(code, at_once=at_once)
    except BaseException:
        opened.close()
        raise
    return opened


def fault_of(code: int | None, *, at_once: bool) -> Failed:
    """The error of a connection that failed. at_once: the system itself refused it before any attempt."""
    is_internal_fault = code in _INTERNAL or (at_once and code in _INTERNAL_AT_ONCE)
    return Failed("egress" if is_internal_fault else "connect", is_internal_fault=is_internal_fault)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
