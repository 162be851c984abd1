"""Decodes one photo, in a process of its own: `python -m console.decoding` reads it from standard input and writes the
same picture as JPEGs, upright and without metadata, in the sizes SIDES to standard output.

Whatever a picture does to a decoder, it does it here: in a process that ends after it, and that may have no more
memory, time and files than it needs. Exit status 0; REFUSED, with the reason on standard error, for what is no photo
that the console takes; anything else for one that the decoder failed on.
"""

from __future__ import annotations

import io
import resource
import struct
import sys
from collections.abc import Iterator

from PIL import Image, ImageCms

SIDES = (2048, 400)
"""The longest side of each size, in pixels; smaller photos stay as they are."""
BYTES_MAX = 20_000_000
PIXELS_MAX = 50_000_000
SECONDS_MAX = 10
MEMORY_BYTES_MAX = 512 * 1024 * 1024
REFUSED = 3
FORMATS = ("JPEG", "PNG", "WEBP")
QUALITY = 82
NO_PHOTO, TOO_LARGE, TWO_THINGS, DAMAGED = "no_photo", "pixels", "two_things", "damaged"
LENGTH = struct.Struct("!I")
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What turns a photo upright, by the orientation in its EXIF."""
# Beginnings of other kinds of files, which have no place in a photo: together they make one that is two things at once.
_OTHERS = (b"<script", b"<html", b"<svg", b"<!doctype", b"<?php", b"%pdf-")
_ARCHIVE_END, _ARCHIVE_TAIL = b"PK\x05\x06", 65_557


class _RefusedError(Exception):
    pass


def photos(content: bytes) -> Iterator[bytes]:
    """The photo in each of SIDES. Raises _RefusedError."""
    lowered = content.lower()
    if any(mark in lowered for mark in _OTHERS) or _ARCHIVE_END in content[-_ARCHIVE_TAIL:]:
        raise _RefusedError(TWO_THINGS)
    try:
        image: Image.Image = Image.open(io.BytesIO(content), formats=FORMATS)
    except Exception:
        raise _RefusedError(NO_PHOTO) from None
    if image.width * image.height > PIXELS_MAX:
        raise _RefusedError(TOO_LARGE)
    try:
        for side in SIDES:  # the smaller one of the larger one, which is upright already
            image = _of_side(image, side)
            yield _jpeg(image)
    except MemoryError:
        raise _RefusedError(TOO_LARGE) from None
    except (OSError, ValueError, SyntaxError, struct.error):
        raise _RefusedError(DAMAGED) from None


def _of_side(image: Image.Image, side: int) -> Image.Image:
    """The photo with this longest side at most, upright, in the colours that a file without a profile has."""
    if image.format == "JPEG":
        image.draft("RGB", (side, side))  # decodes a large one at a half, a quarter or an eighth of its size
    turn, profile = image.getexif().get(ORIENTATION, 1), image.info.get("icc_profile")
    image.load()
    # Whole pixels first: the further steps copy the picture, and there is no memory for two copies of a large one.
    factor = max(1, max(image.size) // (2 * side))
    if factor > 1:
        image = image.reduce(factor) if image.mode != "P" else image.convert("RGBA").reduce(factor)
    image = _flat(image)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    image = image.transpose(TURNS[turn]) if turn in TURNS else image
    return _in_srgb(image, profile) if profile else image


def _flat(image: Image.Image) -> Image.Image:
    """In red, green and blue, without transparency: on white."""
    if "A" not in image.mode and "transparency" not in image.info:
        return image.convert("RGB")
    seen = image.convert("RGBA")
    flat = Image.new("RGB", image.size, "white")
    flat.paste(seen, mask=seen.getchannel("A"))
    return flat


def _in_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """The colours of a telephone's wider space in the one that all screens have. Another kind's profile is no loss."""
    try:
        own_profile = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        return ImageCms.profileToProfile(image, own_profile, ImageCms.createProfile("sRGB")) or image
    except (ImageCms.PyCMSError, OSError, ValueError):
        return image


def _jpeg(image: Image.Image) -> bytes:
    image.info = {}  # comments, places, names of cameras
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=QUALITY, optimize=True, progressive=True)
    return encoded.getvalue()


def _confine() -> None:
    """No more memory and time, no other file, no other process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def main() -> None:
    Image.MAX_IMAGE_PIXELS = None  # PIXELS_MAX counts
    Image.preinit()
    Image.init()
    _confine()
    try:
        content = sys.stdin.buffer.read(BYTES_MAX + 1)
        for photo in photos(content):
            sys.stdout.buffer.write(LENGTH.pack(len(photo)) + photo)
        sys.stdout.buffer.flush()
    except _RefusedError as error:
        sys.stderr.write(str(error))
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
