"""The encoding of a file's text: found in its bytes, or refused where they leave a doubt.

A byte order mark decides. A file without one is UTF-8 if all of it is, or if any character of more than one byte is
(the other rows are then damaged). Text in the letters of a language of Western Europe is Windows-1252. Else
charset-normalizer decides if one of its candidates is clearly ahead; if not, the file is refused and the candidates are
named: a wrong guess would store wrong names.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from importing.errors import ImportFault, quoted
from importing.lines import UTF_8, WIDE, Lines
from importing.rows import Fault

# The longest marks first: UTF-32's begins with UTF-16's.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WESTERN = "cp1252"
# Encodings of exports besides Windows-1252. charset-normalizer knows a hundred, and takes short texts for odd ones.
OTHERS = ("cp1250", "iso8859_2", "cp1251", "cp1253", "cp1254", "cp1257", "mac_roman", "cp850", "koi8_r", "cp866")
EASTERN = ("cp932", "euc_jp", "gb18030", "big5", "euc_kr")
_LABELS = {
    "mac_roman": "Mac Roman",
    "koi8_r": "KOI8-R",
    "cp932": "Shift-JIS",
    "latin_1": "ISO-8859-1",
    "iso8859_1": "ISO-8859-1",
    "euc_jp": "EUC-JP",
    "euc_kr": "EUC-KR",
    "big5": "Big5",
    "gb18030": "GB18030",
}
# The letters beyond ASCII of languages that Windows-1252 serves. Czech read as Windows-1252 has ø and è in one text.
_ALPHABETS = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "àâæçéèêëîïôœùûüÿ",
        "äöüßéàâ",
        "áéíñóúüçàèòï",
        "àáâãçéêíóôõúü",
        "àèéìíîòóùú",
        "åäöæøéü",
        "éëïöüèáóêç",
    )
)
_SIGNS = frozenset(bytes(range(0x80, 0xC0)).decode(WESTERN, "ignore") + "\xd7\xf7") - frozenset("ŠŒŽšœžŸ")
# A sign between letters, except an apostrophe (U+2019), a middle dot, a soft hyphen and a space; a sign at a letter
# that no language writes so.
_SIGN_IN_WORD = re.compile(
    r"[^\W\d_](?:[^\w\s\x00-\x7f\u2019\xb7\xad\xa0]|[ªº¹²³¼½¾])[^\W\d_]|[¦¤¬][^\W\d_]|[^\W\d_][¦¤¬¼½¾]"
)
_RUN = re.compile(r"[^\W\d_]+")
_BLOCK_BYTES = 1024 * 1024
_SAMPLE_BYTES = 128 * 1024
# How far the best candidate must be ahead of every other one that reads the text differently.
_LEAD = 0.1


def label(encoding: str) -> str:
    """The name of a codec for people: `cp1252` is Windows-1252."""
    name = encoding.lower().replace("-", "_")
    if name in _LABELS:
        return _LABELS[name]
    if match := re.fullmatch(r"cp(125\d)", name):
        return f"Windows-{match[1]}"
    if match := re.fullmatch(r"cp(\d+)", name):
        return f"code page {match[1]}"
    if match := re.fullmatch(r"(?:iso)?8859_(\d+)|iso8859_(\d+)", name):
        return f"ISO-8859-{match[1] or match[2]}"
    return "-".join(name.upper().split("_")[:2])


def not_text(lines: Lines, field: str = "", value: str | None = None) -> Fault:
    """The fault of a row that is not text in the file's encoding. The reason names the first byte at fault, if any."""
    cause = f"is not {label(lines.encoding)} text"
    return Fault(field, f"{cause} ({lines.damage})" if lines.damage else cause, cause, value)


def codec(name: str) -> str:
    """The codec of a name. Raises ValueError if there is none, or if it can't be that of a file of rows."""
    try:
        codec_name = codecs.lookup(name).name
        is_plain = all(sign.encode(codec_name) == sign.encode("ascii") for sign in ',;\t|"\n\r')
    except (LookupError, ValueError):
        raise ValueError('is no known encoding; use a name such as "utf-8", "windows-1252" or "utf-16"') from None
    if not is_plain and codec_name not in WIDE:
        raise ValueError("can't be the encoding of a CSV file: a comma or a line end is another byte in it")
    return "utf-8" if codec_name == "utf-8-sig" else codec_name


def marked(start: bytes) -> str | None:
    """The encoding that a byte order mark at the start of a file names."""
    return next((name for mark, name in MARKS if start.startswith(mark)), None)


@dataclass(slots=True)
class _Evidence:
    """The lines of a file that are not ASCII. `sample` has the first of those that are not UTF-8."""

    utf_8: int = 0
    line: int = 0
    byte: int = 0
    sample: list[bytes] = field(default_factory=list)
    sampled: int = 0


def detected(name: str, stream: BinaryIO) -> str:
    """The encoding of a file, which is read to its end. Raises ImportFault if it is in doubt."""
    evidence, line = _Evidence(), 1
    for number, block in enumerate(_blocks(stream)):
        if number == 0 and (encoding := marked(block) or _unmarked_wide(block)):
            return encoding
        if not block.isascii():
            _examine(block, line, evidence)
            if evidence.utf_8 and evidence.sampled:
                return UTF_8
        line += block.count(b"\n")
    return UTF_8 if not evidence.sampled else _of_bytes(name, evidence)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The file in pieces that end with a line, if its lines are not endless."""
    carried = b""
    while True:
        try:
            block = stream.read(_BLOCK_BYTES)
        except (EOFError, OSError, zlib.error):  # the rows before the damage are imported, and the import reports it
            block = b""
        if not block:
            break
        head, end, tail = (carried + block).rpartition(b"\n")
        carried = tail if head or len(tail) <= _BLOCK_BYTES else b""
        yield head + end if head or end else tail
    if carried:
        yield carried


def _unmarked_wide(start: bytes) -> str | None:
    """UTF-16 without a mark: every second byte of its ASCII characters is NUL."""
    start = start[:1024]
    half = len(start) // 2
    if half and start[1::2].count(0) > half * 0.7 and not start[::2].count(0):
        return "utf-16-le"
    if half and start[::2].count(0) > half * 0.7 and not start[1::2].count(0):
        return "utf-16-be"
    return None


def _examine(block: bytes, first_line: int, evidence: _Evidence) -> None:
    try:
        block.decode(UTF_8)
    except UnicodeDecodeError:
        pass
    else:
        evidence.utf_8 += 1
        return
    for line, text in enumerate(block.split(b"\n"), first_line):
        if text.isascii():
            continue
        try:
            text.decode(UTF_8)
        except UnicodeDecodeError as error:
            if not evidence.line:
                evidence.line, evidence.byte = line, text[error.start]
            if re.search(rb"[\xc3-\xf4][\x80-\xbf]", text) and _is_mostly_utf_8(text):
                evidence.utf_8 += 1
            if evidence.sampled < _SAMPLE_BYTES:
                evidence.sample.append(text[:2000])
            evidence.sampled += len(text)
        else:
            evidence.utf_8 += 1


def _is_mostly_utf_8(text: bytes) -> bool:
    """Whether a line is UTF-8 but for single bytes."""
    decoded = text.decode(UTF_8, "surrogateescape")
    damaged = sum("\udc80" <= character <= "\udcff" for character in decoded)
    return sum(not character.isascii() for character in decoded) - damaged > damaged


def _of_bytes(name: str, evidence: _Evidence) -> str:
    """The encoding of lines that are not UTF-8. Raises ImportFault."""
    sample = b"\n".join(evidence.sample)
    if (western := _decoded(sample, WESTERN)) is not None and _is_western(western):
        return WESTERN
    # Loaded only here: it takes 8 MB, and most files are UTF-8.
    from charset_normalizer import from_bytes  # noqa: PLC0415 - only now, for the reason above

    matches = list(from_bytes(sample, cp_isolation=[*OTHERS, *EASTERN], enable_fallback=False))
    texts = ((match, str(match)) for match in matches)
    read = [
        (match.encoding, text, match.chaos - match.coherence) for match, text in texts if not _SIGN_IN_WORD.search(text)
    ]
    read.sort(key=lambda reading: reading[2])
    if read and all(text == read[0][1] or score >= read[0][2] + _LEAD for _, text, score in read[1:]):
        return codecs.lookup(read[0][0]).name
    byte = bytes([evidence.byte])
    seen = dict.fromkeys([WESTERN, *(encoding for encoding, _, _ in read)][:4])
    reads = [
        f"{label(encoding)} ({quoted(character)})"
        for encoding in seen
        if (character := _decoded(byte, encoding)) and character.isprintable()
    ]
    candidates = f" It may be {', '.join(reads)}." if reads else ""
    raise ImportFault(
        f"{name} is not UTF-8 text (line {evidence.line}, byte 0x{evidence.byte:02X}), and its encoding is in doubt."
        f'{candidates} Set it with --encoding, or as encoding in the mapping, such as encoding = "windows-1252".'
    )


def _decoded(text: bytes, encoding: str) -> str | None:
    try:
        return text.decode(encoding)
    except UnicodeDecodeError:
        return None


def _is_western(text: str) -> bool:
    """Whether the text can be in a language of Western Europe: the letters of one alphabet beyond ASCII, never three of
    them in a row, no capital inside a word, and no sign between letters."""
    beyond = {character for character in text if not character.isascii()}
    letters = beyond - _SIGNS
    if not any(letters <= alphabet for alphabet in _ALPHABETS):
        return False
    for match in _RUN.finditer(text):
        word = match[0]
        if re.search(r"[^\x00-\x7f]{3}", word) or (not word.isupper() and re.search(r"[a-zß-ÿ][À-ÖØ-ÞŒŸ]", word)):
            return False
    return _SIGN_IN_WORD.search(text) is None
