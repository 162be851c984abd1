"""Photos: decoded apart, upright, without what else was in the file; refused if they are none."""

from __future__ import annotations

import asyncio
import io
import os
import struct
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from PIL import Image, ImageCms

from chassis.refusals import Refusal
from console import decoding
from console.kit.photos import PhotoError, decoded
from console.kit.uploads import Upload
from makeready.tickets.v1 import ticket_views_pb2 as views_pb

from .browsing import Browser, Reply, Tags
from .samples import sample_answers
from .stubs import Stubs, ago


async def _parts(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]


async def decode(content: bytes) -> list[Image.Image]:
    return [Image.open(io.BytesIO(picture)) for picture in await decoded(Upload("photo", "x", _parts(content)))]


def encoded(image: Image.Image, kind: str, **more: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **more)
    return buffer.getvalue()


def telephone_photo(kind: str = "JPEG", size: tuple[int, int] = (1200, 900)) -> bytes:
    """Red at the left and blue at the right, turned by EXIF: upright it is red at the top. It says where it was."""
    image = Image.new("RGB", size, "blue")
    image.paste("red", (0, 0, size[0] // 2, size[1]))
    exif = Image.Exif()
    exif[decoding.ORIENTATION] = 6
    exif[0x010F] = "Camera of Dana"
    exif.get_ifd(0x8825)[2] = (40.0, 42.0, 46.0)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return encoded(image, kind, exif=exif, icc_profile=profile, **({"comment": b"secret"} if kind == "JPEG" else {}))


def png_of(width: int, height: int) -> bytes:
    """The header of a PNG of this size, and no more than a few bytes of it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))

    header = struct.pack("!IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
async def test_a_photo_is_turned_upright_and_says_nothing_of_where_it_was(kind: str) -> None:
    large, small = await decode(telephone_photo(kind))
    assert (large.size, small.size) == ((900, 1200), (300, 400))
    for picture in (large, small):
        assert picture.format == "JPEG" and not picture.getexif()
        assert picture.info.keys() <= {
            "jfif",
            "jfif_version",
            "jfif_unit",
            "jfif_density",
            "progressive",
            "progression",
        }
        red, _, blue = picture.convert("RGB").getpixel((picture.width // 2, picture.height // 8))  # type: ignore[misc]
        assert red > 200 and blue < 60
        red, _, blue = picture.convert("RGB").getpixel((picture.width // 2, picture.height * 7 // 8))  # type: ignore[misc]
        assert red < 60 and blue > 200


async def test_a_large_photo_becomes_smaller_and_transparency_white() -> None:
    large, small = await decode(encoded(Image.new("RGBA", (5000, 2500), (0, 0, 0, 0)), "PNG"))
    assert (large.size, small.size) == ((2048, 1024), (400, 200))
    assert large.getpixel((1000, 500)) == (255, 255, 255)


BOMB = png_of(7072, 7072)  # 50,013,184 pixels
SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
GIF = encoded(Image.new("P", (4, 4)), "GIF")
ARCHIVE = b"PK\x05\x06" + bytes(18)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (BOMB, "50 million"),
        (png_of(2**31 - 1, 2**31 - 1), "JPEG, PNG or WebP|50 million"),
        (SVG, "more than a photo|JPEG, PNG or WebP"),
        (GIF, "JPEG, PNG or WebP"),
        (b"%PDF-1.7 ...", "more than a photo|JPEG, PNG or WebP"),
        (b"hello", "JPEG, PNG or WebP"),
        (b"", "empty"),
        (telephone_photo() + b"<ScRiPt>alert(1)</script>", "more than a photo"),
        (b"GIF89a=1;/*" + telephone_photo(), "JPEG, PNG or WebP"),
        (telephone_photo() + ARCHIVE, "more than a photo"),
        (telephone_photo()[:2000], "damaged"),
        (png_of(100, 100), "damaged"),
        (telephone_photo() + bytes(decoding.BYTES_MAX), "20 MB"),
    ],
    ids=["bomb", "wide", "svg", "gif", "pdf", "text", "empty", "html", "script", "archive", "half", "short", "bytes"],
)
async def test_what_is_no_photo_is_refused_with_its_reason(content: bytes, why: str) -> None:
    with pytest.raises(PhotoError, match=why):
        await decode(content)


async def test_the_process_that_decodes_can_reach_nothing() -> None:
    """Its limits hold for whatever a photo makes of it: no file, no process, no socket, no more memory."""
    program = f"""
import socket, sys
from console import decoding
decoding._confine()
for name, reach in {{
    "file": lambda: open("/etc/hostname"),
    "process": lambda: __import__("os").posix_spawn("/bin/true", ["true"], {{}}, setpgroup=0),
    "socket": lambda: socket.socket(),
    "memory": lambda: bytearray({decoding.MEMORY_BYTES_MAX}),
}}.items():
    try:
        reach()
        print(name)
    except (OSError, MemoryError):
        pass
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", program, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    reached = out.decode().split()
    # Root is above limits on the number of processes.
    assert reached in ([], ["process"] if os.getuid() == 0 else []), reached
    assert process.returncode == 0


# The pages of a ticket's photos. The stubs' ticket 102 has the photos that were added.

PATH, REMOVE = "/tickets/102/photos", "/tickets/102/photos/remove"
ADD = "tickets.TicketCommandsService/AddTicketPhoto"
DROP = "tickets.TicketCommandsService/RemoveTicketPhoto"
GET = "tickets.TicketViewsService/GetTicketDetails"


@pytest.fixture
def ticket(stubs: Stubs) -> list[str]:
    """The addresses of the ticket's photos."""
    addresses: list[str] = []
    plain = sample_answers()[GET]

    def details(request: Any, who: Any) -> Any:
        response = plain(request, who)
        del response.photos[:]
        response.photos.extend(
            views_pb.TicketPhoto(photo_url=address, added_at=ago(hours=1), author="staff", actor="staff:7")
            for address in addresses
        )
        return response

    def add(request: Any, _who: Any) -> Any:
        if request.photo_url not in addresses:
            addresses.append(request.photo_url)

    def remove(request: Any, _who: Any) -> Any:
        if request.photo_url not in addresses:
            raise Refusal(404, "not_found", "The ticket has no photo with that address.", "photo_url")
        addresses.remove(request.photo_url)

    stubs.answers.update({GET: details, ADD: add, DROP: remove})
    return addresses


async def upload(browser: Browser, act: str, *contents: bytes, by: str = "staff") -> Reply:
    form = aiohttp.FormData()
    form.add_field("act", act)
    form.add_field("by", by)
    for number, content in enumerate(contents):
        form.add_field("photos", content, filename=f"IMG_{number}.jpg" if content else "", content_type="image/jpeg")
    return await browser.request("POST", PATH, data=form, headers={"Origin": browser.url})


async def fetched(http: aiohttp.ClientSession, address: str, method: str = "GET") -> tuple[int, Any, bytes]:
    """As an integration fetches it: without a cookie."""
    async with http.request(method, address) as answer:
        return answer.status, answer.headers.copy(), await answer.read()


async def test_an_uploaded_photo_is_the_tickets_and_can_be_seen_by_who_has_its_address(
    staff: Browser, stubs: Stubs, ticket: list[str], http: aiohttp.ClientSession
) -> None:
    await staff.get(PATH)
    act = staff.form(PATH)["act"]
    reply = await upload(staff, act, telephone_photo(), telephone_photo("WEBP"), by="vendor")
    assert (reply.status, reply.headers["Location"]) == (303, "/tickets/102"), reply.words
    assert [(picture.ticket_id, picture.by, picture.idempotency_key) for picture in stubs.called(ADD)] == [
        (102, 2, f"{act}.0"),
        (102, 2, f"{act}.1"),
    ]
    assert len(set(ticket)) == 2 and all(
        request.startswith(f"{staff.url}/files/") and len(request) > 30 for request in ticket
    )
    status, headers, body = await fetched(http, ticket[0])
    image = Image.open(io.BytesIO(body))
    assert (status, headers["Content-Type"], image.size) == (200, "image/jpeg", (900, 1200)) and not image.getexif()
    assert "sandbox" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in headers["Cache-Control"] and headers["X-Robots-Tag"] == "noindex"
    assert "Set-Cookie" not in headers and "Content-Encoding" not in headers
    assert (await fetched(http, ticket[0], "HEAD"))[0] == 200
    # The same form again, as after Back: the same photos.
    again = await upload(staff, act, telephone_photo(), telephone_photo("WEBP"), by="vendor")
    assert again.status == 303 and len(ticket) == 2
    for path in ("/tickets/102", PATH):
        reply = await staff.get(path)
        pictures = [values for tag, values in Tags(reply.text).found if tag == "img"]
        assert len(pictures) == 2 and all("Photo by staff" in str(address["alt"]) for address in pictures)
        for attributes in pictures:
            status, _, body = await fetched(http, staff.url + str(attributes["src"]))
            assert status == 200 and Image.open(io.BytesIO(body)).size == (300, 400)


async def test_what_is_no_photo_is_named_and_the_others_are_added(
    staff: Browser, stubs: Stubs, ticket: list[str]
) -> None:
    await staff.get(PATH)
    act = staff.form(PATH)["act"]
    reply = await upload(staff, act, SVG, telephone_photo(), BOMB)
    assert reply.status == 422 and len(ticket) == 1
    sentences = (
        "1 photo added. These were not",
        "IMG_0.jpg : The file contains more than a photo",
        "IMG_2.jpg : It has too many",
    )
    assert not [words for words in sentences if words not in reply.words], reply.words
    await staff.get(PATH)
    reply = await upload(staff, staff.form(PATH)["act"], *[b"x"] * 11)
    assert "10 photos can be added at once" in reply.words and len(ticket) == 1
    reply = await upload(staff, staff.form(PATH)["act"], b"")
    assert reply.status == 422 and "Choose at least one photo." in reply.words


async def test_a_photo_is_taken_from_its_own_form_and_for_an_own_ticket_alone(
    staff: Browser, stranger: Browser, stubs: Stubs, ticket: list[str]
) -> None:
    await staff.get(PATH)
    act = staff.form(PATH)["act"]
    await stranger.get("/account")
    for browser, sent in ((staff, ""), (staff, "x" * 43), (stranger, act)):
        assert (await upload(browser, sent, telephone_photo())).status == 403
    broken = f'--b\r\nContent-Disposition: form-data; name="act"\r\n\r\n{act}\r\n--b\r\nContent-Dis'
    headers = {"Origin": staff.url, "Content-Type": "multipart/form-data; boundary=b"}
    assert (await staff.request("POST", PATH, data=broken.encode(), headers=headers)).status in (400, 415)
    assert not stubs.called(ADD) and not ticket


async def test_a_refusal_of_the_ticket_leaves_no_file(
    staff: Browser, stubs: Stubs, ticket: list[str], http: aiohttp.ClientSession
) -> None:
    def refuse(request: Any, _who: Any) -> Any:
        ticket.append(request.photo_url)
        raise Refusal(422, "invalid_request", "Not now.")

    stubs.answers[ADD] = refuse
    await staff.get(PATH)
    reply = await upload(staff, staff.form(PATH)["act"], telephone_photo())
    assert reply.status == 422 and "Not now." in reply.words
    assert (await fetched(http, ticket[0]))[0] == 404


async def test_removing_a_photo_deletes_its_file_of_the_own_company_alone(
    staff: Browser, stubs: Stubs, ticket: list[str], http: aiohttp.ClientSession, signed_in: Callable[..., Browser]
) -> None:
    await staff.get(PATH)
    await upload(staff, staff.form(PATH)["act"], telephone_photo())
    (address,) = ticket
    # Another company has the address on a ticket of its own: it forgets the address, and the file stays.
    other = signed_in("olga@other.example")
    plain, of_company = stubs.answers[GET], next(call.identity for call in stubs.calls if call.rpc == GET)
    stubs.answers[GET] = lambda request, _who: plain(request, of_company)
    await other.get(PATH)
    assert (await other.send(REMOVE, photo_url=address)).status == 303
    assert ticket == [] and (await fetched(http, address))[0] == 200
    ticket.append(address)
    await staff.get(PATH)
    form = staff.form(REMOVE)
    assert form["photo_url"] == address
    reply = await staff.follow(await staff.post(REMOVE, form))
    assert "Photo removed." in reply.words and "No photos yet." in reply.words and ticket == []
    status, headers, _ = await fetched(http, address)
    assert (status, headers["Cache-Control"]) == (404, "no-store")
    assert (await fetched(http, address.replace(".jpg", "-400.jpg")))[0] == 404
    reply = await staff.follow(await staff.post(REMOVE, form))
    assert "was already removed" in reply.words


@pytest.mark.parametrize(
    "path", ["/files/", "/files/x.jpg", "/files/../photos.json", "/files/" + "a" * 22, "/files/" + "a" * 22 + ".json"]
)
async def test_an_address_that_no_photo_has_is_not_found(path: str, nobody: Browser) -> None:
    assert (await nobody.get(path)).status == 404
