"""The character between the values of a CSV file, found in its first rows.

A wrong answer never goes unnoticed: the header then lacks the columns that the import needs, which stops it.
"""

from __future__ import annotations

import csv
import io

LABELS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
SAMPLE_CHARACTERS = 64 * 1024


def label(delimiter: str) -> str:
    """The delimiter for a sentence: `separated by semicolons`."""
    return LABELS.get(delimiter, f'"{delimiter}"')


def checked(delimiter: str) -> str:
    """Raises ValueError if a text can't be a delimiter."""
    if (
        len(delimiter) != 1
        or delimiter.isalnum()
        or (not delimiter.isprintable() and delimiter != "\t")
        or delimiter == '"'
    ):
        raise ValueError(
            r'must be one character that is no letter, digit or quote, such as "," ";" "|" or "\t" for a tab'
        )
    return delimiter


def detected(sample: str) -> str:
    """The delimiter of the first SAMPLE_CHARACTERS of a file; a comma if there is one column only.

    The header and the rows agree on the number of columns under the right delimiter. csv.Sniffer looks at characters
    instead: it takes a letter for the delimiter of a file with one column.
    """
    best, delimiter = 0.0, ","
    for candidate in LABELS:
        rows = [row for row in csv.reader(io.StringIO(sample, newline=""), delimiter=candidate) if any(row)]
        if not rows or len(rows[0]) < 2:
            continue
        fitting = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        score = fitting * (len(rows[0]) - 1)
        if score > best:
            best, delimiter = score, candidate
    return delimiter
