"""Patterns of people: regular expressions whose time grows with the text, and never faster.

A pattern and a text may both be hostile. Python's `re` tries every way to match a text, of which `((?:a|a)+)+b` has
2^40 for 40 letters; RE2 reads a text once. docs/imports.md says what RE2 reads otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import re2

from importing.errors import printable

# Of a compiled pattern. RE2 refuses a larger one: its size and the text's multiply.
MEMORY_BYTES_MAX = 1024 * 1024
# \C is one byte: a group could hold a part of a character.
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class Pattern:
    """A regular expression that matches whole texts. It has so many `groups`."""

    def __init__(self, text: str) -> None:
        """Raises ValueError, whose text says what RE2 does not take."""
        options = re2.Options()
        options.max_mem = MEMORY_BYTES_MAX
        options.log_errors = False
        if _ONE_BYTE.search(text):
            raise ValueError(r"is no regular expression that RE2 takes here: \C may be a part of a character")
        try:
            self._compiled = re2.compile(text.encode(), options)
        except re2.error as error:
            reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
            raise ValueError(f"is no regular expression that RE2 takes: {printable(reason)}") from None
        except UnicodeEncodeError:
            raise ValueError("is no text that can be written as UTF-8") from None
        finally:
            re2.purge()  # it would keep the last 128
        self.groups: int = self._compiled.groups

    def groups_of(self, text: str) -> Sequence[str] | None:
        """The texts of the groups, blank for one that took no part; None if the pattern does not match the whole
        text."""
        match = self._compiled.fullmatch(text.encode("utf-8", "surrogatepass"))
        if match is None:
            return None
        return [group.decode("utf-8", "surrogatepass") for group in match.groups(b"")]

    def matches(self, text: str) -> bool:
        return self._compiled.fullmatch(text.encode("utf-8", "surrogatepass")) is not None


def escaped(text: str) -> str:
    """A pattern that matches this text."""
    return str(re2.escape(text))
