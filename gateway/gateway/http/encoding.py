"""Compressed answers: which coding a caller accepts (RFC 9110, 12.5.3), and the bytes in it.

Only answers to reads are compressed. An answer with a signing secret and an error never are:
docs/decisions/http-server.md says why.
"""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Sequence

from isal import isal_zlib

from chassis.http.replies import Reply

# A shorter body fits one packet with its headers, compressed or not.
BYTES_MIN = 1024
LEVEL = 1
# Of what is compressed once, at the start. 9 takes twice as long for 2 % fewer bytes of the document.
LEVEL_ONCE = 7
_GZIP_FORMAT = 31
# Longer headers are no client's; reading them would cost more than it saves.
_CHARACTERS_MAX = 512
_CODING = re.compile(r"([!#$%&'*+.^_`|~0-9a-z-]+)(?:\s*;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?", re.ASCII)
# Identity that is not named is acceptable, but any coding that is named comes before it.
_UNNAMED = 0.0001


def compressor() -> isal_zlib.Compress:
    """Compresses a body whose parts come one after the other."""
    return isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _GZIP_FORMAT)


def compressed_once(reply: Reply) -> Reply:
    """A reply that stays in memory, with its compressed body made beforehand."""
    return reply._replace(is_read=True, compressed=gzip.compress(reply.body, LEVEL_ONCE, mtime=0))


def encoded(reply: Reply, accept: Sequence[str]) -> Reply:
    """The reply as a caller gets it. accept: the values of its Accept-Encoding headers, in order."""
    if not reply.is_read:
        return reply
    takes_gzip, takes_identity = accepted(accept)
    if not takes_gzip or (takes_identity and len(reply.body) < BYTES_MIN):
        return reply._replace(headers=reply.headers + VARY)
    body = reply.compressed or isal_zlib.compress(reply.body, LEVEL, _GZIP_FORMAT)
    return reply._replace(body=body, headers=reply.headers + GZIP)


def accepted(accept: Sequence[str]) -> tuple[bool, bool]:
    """Whether gzip is what the caller prefers, and whether it takes a body as it is. A header that can't be read counts
    as none."""
    if not accept:
        return False, True
    return _accepted(accept[0] if len(accept) == 1 else ",".join(accept))


@functools.lru_cache(maxsize=256)
def _accepted(accept: str) -> tuple[bool, bool]:
    if len(accept) > _CHARACTERS_MAX:
        return False, True
    weights: dict[str, float] = {}
    for part in accept.lower().split(","):
        match = _CODING.fullmatch(part.strip(" \t"))
        if match is not None:
            coding = "gzip" if match[1] == "x-gzip" else match[1]
            weights[coding] = max(weights.get(coding, 0.0), float(match[2] or 1))
    every = weights.get("*")
    of_gzip = weights.get("gzip", every or 0.0)
    of_identity = weights.get("identity", _UNNAMED if every is None else every)
    return of_gzip > 0 and of_gzip >= of_identity, of_identity > 0


VARY = b"Vary: Accept-Encoding\r\n"
GZIP = b"Content-Encoding: gzip\r\n" + VARY
