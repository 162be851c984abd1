"""Forms in parts, in whatever pieces they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.kit.multipart import HEADERS_BYTES_MAX, Multipart, MultipartError

TYPE = "multipart/form-data; boundary=b"


async def arriving(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def read(body: bytes, size: int = 7, content_type: str = TYPE) -> list[tuple[str, str | None, bytes]]:
    parts = Multipart(content_type, arriving(body, size))
    parts_read = []
    while (part := await parts.next()) is not None:
        parts_read.append((part.name, part.filename, b"".join([piece async for piece in part.content])))
    return parts_read


def sent(*parts: tuple[str, bytes]) -> bytes:
    head = b"--b\r\nContent-Disposition: form-data; %b\r\nContent-Type: text/plain\r\n\r\n%b\r\n"
    return b"".join(head % (name.encode(), content) for name, content in parts) + b"--b--\r\n"


@given(
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b"\r\n--", b"\r\n-", b"--b", b"\r", b"\r\n\r\n"]))),
    st.integers(1, 60),
)
async def test_every_part_arrives_whole_however_it_is_cut(contents: list[bytes], size: int) -> None:
    contents = [content for content in contents if b"\r\n--b" not in b"\r\n" + content]
    body = sent(*((f'name="f{number}"', content) for number, content in enumerate(contents)))
    assert await read(body, size) == [(f"f{number}", None, content) for number, content in enumerate(contents)]


async def test_a_file_has_its_name_and_what_is_not_read_of_it_is_skipped() -> None:
    body = b"what stands before\r\n" + sent(
        ('name="a"; filename="q.csv"', b"x" * 5000), ('name="b"; filename=""', b""), ('name="c"', "ü".encode())
    )
    assert [(name, filename) for name, filename, _ in await read(body)] == [("a", "q.csv"), ("b", ""), ("c", None)]
    parts = Multipart(TYPE, arriving(body, 100))
    names = []
    while (part := await parts.next()) is not None:
        names.append(part.name)
        if part.name == "a":
            assert await anext(part.content) and len(await anext(part.content)) < 200
    assert names == ["a", "b", "c"] and await parts.next() is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no delimiter",
        sent(('name="a"', b"x"))[:-8],
        b"--b\r\n\r\nno headers\r\n--b--",
        b'--b\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n--b--',
        b"--b\r\nX: " + b"x" * HEADERS_BYTES_MAX + b"\r\n\r\nx\r\n--b--",
        b"--b and more\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--",
        b"--b\r\nContent-Disposition: form-data; name=a",
        b"--b\r\nContent-Disposition: form-data; name=a; filename*0*='x\r\n\r\nx\r\n--b--",
    ],
)
async def test_what_is_no_form_in_parts_is_refused(body: bytes) -> None:
    for size in (1, 1000, 100_000):
        with pytest.raises(MultipartError):
            await read(body, size)


@pytest.mark.parametrize("content_type", ["multipart/form-data", f"multipart/form-data; boundary={'x' * 71}", ""])
async def test_a_boundary_is_asked_for(content_type: str) -> None:
    with pytest.raises(MultipartError):
        await read(sent(('name="a"', b"x")), content_type=content_type)
