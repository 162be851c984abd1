"""Bodies that every write must refuse, derived from a valid one; the name of each says what is wrong with it."""

from __future__ import annotations

import copy
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

Body = dict[str, Any]
Path = tuple[str | int, ...]
Case = tuple[str, bytes]

LONGEST = 256 * 1024
HOLE = "@hole@"


def raw(body: object) -> bytes:
    return json.dumps(body).encode()


def filled(body: Body, path: Path, literal: bytes) -> bytes:
    """The body with the raw literal at the path."""
    changed = copy.deepcopy(body)
    here: Any = changed
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = HOLE
    return raw(changed).replace(raw(HOLE), literal)


def with_key(body: Body, key: bytes) -> bytes:
    """The body with this raw key and its raw value in front of its own."""
    return b"{" + key + (b"," if body else b"") + raw(body)[1:]


def objects(body: Any, path: Path = ()) -> Iterator[tuple[Path, Body]]:
    """Every object in the body, the body itself first."""
    if isinstance(body, dict):
        yield path, body
    for key, value in body.items() if isinstance(body, dict) else enumerate(body):
        if isinstance(value, dict | list):
            yield from objects(value, (*path, key))


def fields(body: Body) -> Iterator[Path]:
    """The path of every value in the body."""
    for path, members in objects(body):
        for key, value in members.items():
            yield (*path, key)
            if isinstance(value, list):
                yield from ((*path, key, index) for index, _ in enumerate(value))


def text_field(body: Body) -> Path:
    """The path of a text field; of an unknown one, if the body has none."""
    return next((path for path in fields(body) if isinstance(value_at(body, path), str)), ("text",))


def value_at(body: Any, path: Path) -> Any:
    for step in path:
        body = body[step]
    return body


def no_object(body: Body) -> Iterator[Case]:
    """JSON that is not an object, and bytes that are not JSON."""
    value: Any
    for value in ([], [body], "x", "", 1, 0, -1, 1.5, True, False, None, [[]], [{}]):
        yield f"the value {json.dumps(value)[:20]}", raw(value)
    whole = raw(body)
    for junk in (b"", b" ", b"\n\t \r", b"{", b"}", b"[", b"{]", b"{{}}", b"nonsense", b"\x00", b"\xff\xfe", b"<a/>"):
        yield f"the bytes {junk!r}", junk
    yield "a form", b"unit_id=1&title=x"
    yield "a multipart form", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'
    yield "JSON in a string", raw(whole.decode())
    yield "two objects", whole + whole
    yield "two objects on lines", whole + b"\n" + whole
    for junk in (b"x", b",", b"}", b"]", b"\x00", b"null", b"//", b"\x1a", b"\xef\xbb\xbf", b"\xc2\xa0"):
        yield f"{junk!r} behind", whole + junk
        yield f"{junk!r} in front", junk + whole
    yield "a comment", whole[:-1] + b"/* */}"
    yield "a comma at the end", whole[:-1] + b",}"
    yield "a comma at the start", b"{," + whole[1:]
    if body:  # an empty object has neither colons nor quotes
        yield "no colons", whole.replace(b":", b" ")
        yield "single quotes", whole.replace(b'"', b"'")
        yield "no quotes", whole.replace(b'"', b"")
    yield "a key that is no string", with_key(body, b"1:2")
    yield "a key alone", with_key(body, b'"x"')
    yield "a prefix of some server", b")]}',\n" + whole
    yield "a line separator", whole[:-1] + "\u2028}".encode()


def prefixes(body: Body) -> Iterator[Case]:
    """The body, truncated at about 90 lengths."""
    whole = raw(body)
    for length in range(1, len(whole), max(1, len(whole) // 90)):
        yield f"cut off after {length} bytes", whole[:length]


def words_of_javascript(body: Body) -> Iterator[Case]:
    """Literals that some lenient parsers accept, in every field."""
    for path in fields(body):
        for literal in (b"NaN", b"Infinity", b"-Infinity", b"undefined", b"+1", b"01", b".5", b"0x10"):
            yield f"{path} {literal!r}", filled(body, path, literal)


def encodings(body: Body) -> Iterator[Case]:
    """Bytes that are not UTF-8, or text that cannot be stored."""
    whole = raw(body)
    for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "cp037"):
        yield name, whole.decode().encode(name)
    yield "utf-7", b"+AHs-" + whole[1:]
    yield "gzip", gzip.compress(whole)
    yield "deflate", zlib.compress(whole)
    path = text_field(body)
    for name, inside in {
        "latin-1": b"caf\xe9",
        "a continuation byte": b"\x80",
        "a sequence cut off": b"\xe2\x82",
        "overlong NUL": b"\xc0\x80",
        "overlong slash": b"\xe0\x80\xaf",
        "beyond Unicode": b"\xf4\x90\x80\x80",
        "five bytes": b"\xf8\x88\x80\x80\x80",
        "0xFF": b"\xff",
        "a high surrogate": b"\xed\xa0\x80",
        "a low surrogate": b"\xed\xb0\x80",
        "a pair of surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
        "NUL": b"\x00",
        "a newline": b"\n",
        "a tab": b"\t",
        "escape": b"\x1b",
        "NUL, escaped": rb"\u0000",
        "NUL among text, escaped": rb"a\u0000b",
        "NUL behind a backslash": rb"\\\u0000",
        "a high surrogate, escaped": rb"\ud83d",
        "a low surrogate, escaped": rb"\ude00",
        "a pair the wrong way round": rb"\ude00\ud83d",
        "two high surrogates": rb"\ud83d\ud83d",
        "a high surrogate before text": rb"\ud83dx",
        "half escaped, half not": rb"\ud83d" + b"\xed\xb8\x80",
        "an escape cut off": rb"\u12",
        "an escape of no number": rb"\uzzzz",
        "an escape of no letter": rb"\x41",
        "a backslash": b"\\",
    }.items():
        yield f"{name} in a value", filled(body, path, b'"%b"' % inside)
        yield f"{name} in a key", with_key(body, b'"%b":1' % inside)


def depths(body: Body) -> Iterator[Case]:
    """Nesting that would crash a recursive parser."""
    many = 100_000
    for name, nested in {
        "arrays": b"[" * many + b"]" * many,
        "arrays that do not end": b"[" * many,
        "objects that do not end": b'{"":' * (many // 2),
        "objects": b'{"":' * (many // 4) + b"1" + b"}" * (many // 4),
        "both": b'[{"":' * (many // 4) + b"1" + b"}]" * (many // 4),
        "ends alone": b"]" * many,
        "arrays beside the limit of the language": b"[" * 990 + b"]" * 990,
        "arrays below it": b"[" * 500 + b"]" * 500,
    }.items():
        yield name, nested
        for path in fields(body):
            yield f"{name} in {path}", filled(body, path, nested)
        yield f"{name} in a key that is not known", with_key(body, b'"more":' + nested)


def twice(body: Body) -> Iterator[Case]:
    """Every key twice, at every level: with the same value, with another, and spelled with an escape."""
    for path, members in objects(body):
        for key, value in members.items():
            for name, again, other in (
                ("the same", raw(key), raw(value)),
                ("null", raw(key), b"null"),
                ("an escape", b'"\\u%04x%b"' % (ord(key[0]), key[1:].encode()), raw(value)),
            ):
                repeated = raw(members)[:-1] + b"," + again + b":" + other + b"}"
                yield f"{path} {key} twice, {name}", filled(body, path, repeated) if path else repeated


UNKNOWN_KEYS = (
    "more", "", " ", "__proto__", "constructor", "prototype", "__class__", "$ref", "$where", "toString", "id",
    "entity_id", "company_id", "created_at", "source", "schema_version", "ключ", "clé", "cle\u0301", "😀", "\u202e",
    "\ufeff", "x" * 10_000, "a.b", "a[0]", "../..", "'; DROP TABLE ticket; --", "%s", "{}", "{0.__class__}", "\\",
)  # fmt: skip


def unknown_keys(body: Body) -> Iterator[Case]:
    """Unknown keys at every level, among them misspellings of known ones."""
    for path, members in objects(body):
        first_name = next(iter(members), "own-key")
        likes = (
            first_name.upper(),
            first_name.title(),
            f" {first_name}",
            f"{first_name} ",
            first_name.replace("_", "-"),
            f"{first_name}\u200b",
            first_name[:-1],
        )
        others = [*UNKNOWN_KEYS, *(like for like in likes if like not in members)]
        for key in others:
            values: tuple[Any, ...] = (None, 1) if key in ("more", "__proto__") else ({},)
            for value in values:
                changed = members | {key: value}
                yield f"{path} {key[:20]!r}: {value}", filled(body, path, raw(changed)) if path else raw(changed)
        many = members | {f"key {number}": number for number in range(10_000)}
        yield f"{path} 10,000 keys", filled(body, path, raw(many)) if path else raw(many)


def sizes(body: Body) -> Iterator[Case]:
    """Bodies over the size limit."""
    whole = raw(body)
    for size in (LONGEST + 1, LONGEST + 2, 1_000_000):
        yield f"{size} bytes, blanks behind", whole.ljust(size)
        yield f"{size} bytes, blanks in front", whole.rjust(size)
    path = text_field(body)
    yield "a long text", filled(body, path, b'"%b"' % (b"x" * LONGEST))
    yield "a long text of escapes", filled(body, path, b'"%b"' % (rb"\u0061" * (LONGEST // 6)))


NOT_JSON: dict[str, Callable[[Body], Iterator[Case]]] = {
    "that are no JSON object": no_object,
    "that are cut off": prefixes,
    "in other encodings": encodings,
    "with words of JavaScript": words_of_javascript,
    "that nest too deeply": depths,
    "with a key twice": twice,
    "that are too long": sizes,
}
"""Bodies that are refused with 400 for their form, before any field is checked."""

LITERALS: dict[str, tuple[bytes, ...]] = {
    "null": (b"null",),
    "boolean": (b"true", b"false"),
    "integer": (
        b"0", b"-0", b"1", b"-1", *(b"%d" % (2**bits + more) for bits in (31, 32, 53, 63, 64) for more in (-1, 0)),
        b"%d" % -(2**63), b"%d" % (-(2**63) - 1), b"1" + b"0" * 400, b"1" + b"0" * 5000, b"-1" + b"0" * 5000,
    ),
    "number": (
        b"1.0", b"-0.0", b"0.5", b"1e2", b"1E400", b"-1e400", b"1e-400", b"9" * 400 + b".0", b"1.0000000000000001",
        b"1e99999999999999999999", b"0e0",
    ),
    "string": (
        b'""', b'" "', b'"\\t"', b'"1"', b'"true"', b'"null"', b'"x"', '"\u3000"'.encode(), '"\u200b"'.encode(),
    ),
    "array": (b"[]", b"[null]", b"[[]]", b"[1]", b'["x"]', b"[{}]", b"[" + b"0," * 999 + b"0]"),
    "object": (b"{}", b'{"x":1}', b'{"__proto__":{}}', b'{"$ref":"#"}', b'{"length":1}'),
}  # fmt: skip
"""Literals by their JSON Schema type."""

DATES = (
    "2026-02-30", "2026-02-29", "2100-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "2026-01-32", "2026-04-31",
    "0000-01-01", "0000-00-00", "+10000-01-01", "10000-01-01", "-0001-01-01", "-2026-01-01", "99999-12-31", "2026",
    "2026-01", "2026-1-1", "26-01-01", "20260131", "2026-W05-6", "2026-031", "2026-01-31T00:00:00Z",
    "2026-01-31T00:00:00", "2026-01-31 00:00", "2026-01-31Z", "2026-01-31+00:00", " 2026-01-31", "2026-01-31 ",
    "2026/01/31", "31.01.2026", "01/31/2026", "2026-01-31\n", "2026_01_31", "2026-01−31", "２０２６-01-31",
    "٢٠٢٦-٠١-٣١", "today", "infinity", "-infinity", "epoch", "now", "NaN", "Jan 31 2026", "2026-01-31 BC", "1e3-01-01",
    "0x7E-01-01", "2026-+1-31", "2026- 1-31", "1769817600",
)  # fmt: skip
"""Texts that are not dates as YYYY-MM-DD, and dates that do not exist."""

INSTANTS = (
    *(text for text in DATES if text != "2026-01-31T00:00:00Z"), "2026-02-30T00:00:00Z", "2026-01-31T24:00:00Z",
    "2026-01-31T00:60:00Z", "2026-01-31T00:00:60Z", "2026-01-31T00:00:00+24:00",
    "2026-01-31T00:00:00UTC", "2026-01-31T00:00:00[UTC]", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z",
    "0001-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
    "T00:00:00Z",
)  # fmt: skip
"""Texts that are not instants with a UTC offset, and instants that do not exist or are outside the years 2 to 9998."""


FILLERS = {
    "letters": "x",
    "letters with accents": "é",
    "combining accents": "e\u0301",
    "astral characters": "😀",
    "joined characters": "👩\u200d🔧",
    "right to left": "א\u202e",
    "the last character": "\U0010ffff",
}


def long_texts(body: Body, path: Path, length: int) -> Iterator[Case]:
    """The body with texts of `length` code points at the path: characters raw, and short texts also escaped."""
    text = value_at(body, path)
    for name, filler in FILLERS.items():
        if "@" in text:
            yield f"{path} {name}", filled(body, path, raw(text.replace("@", "@" + "x" * (length - len(text)))))
            return
        long = (text + filler * length)[:length]
        yield f"{path} {name}", filled(body, path, json.dumps(long, ensure_ascii=False).encode())
        if text.startswith("https:"):
            return
        if length < 1000:
            yield f"{path} {name}, escaped", filled(body, path, raw(long))


def spelled(path: Path) -> str:
    """The path as error messages spell it: parties[0].email."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
