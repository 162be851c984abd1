"""Words of a text, as SQL: for an index of names, and for what people look for in it.

The same expression makes the words on both sides, so an index is complete from the statement that creates it, whichever
release writes the rows. It depends on no locale of the server's, and is written as PostgreSQL prints it. Scripts
without spaces between words (Chinese, Japanese, Thai, …) have each character as a word; `holds` then compares the whole
run.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSQUERY, TSVECTOR

from chassis.db.statements import Expression

# Letters of the scripts with two cases, after NFKD has taken accents off: Latin, Greek, Cyrillic; and others.
_CASED = "".join(map(chr, (*range(0x41, 0x5B), *range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x402, 0x430))))
_UPPER = _CASED + "\u0110\u00d8\u0141\u00c6\u0152\u00de\u0111\u00f8\u0142\u0131\u03c2\u0491\u0490"
_LOWER = _CASED.lower() + "dol\u00e6\u0153\u00fedoli\u03c3\u0433\u0433"
_SIGNS = (
    "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
    "\u00a1\u00bf\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u00b7\u2022\u2032\u2033"
    "\u3001\u3002\uff0c\uff01\uff1f\uff1b\uff1a\uff08\uff09\u300c\u300d\u300e\u300f\u3010\u3011\u30fb\u301c"
)
_ACCENTS = "[\\u0300-\\u036f]"
_RUNS = "([\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u9fff])"
# A lexeme has 2046 bytes at most.
_LONGEST = "([^ ]{48})[^ ]+"
_SPACES = "[ ]+"


def plain(text: Expression) -> Expression:
    """The text in lower case, without accents, with one space between its words."""
    bare = _replaced(sa.func.normalize(text, sa.text("NFKD")), _ACCENTS, _quoted(""))
    folded = sa.func.translate(bare, _quoted(_UPPER), _quoted(_LOWER))
    whole = sa.func.replace(folded, _quoted("ß"), _quoted("ss"))
    spaced = sa.func.translate(whole, _quoted(_SIGNS), _quoted(" " * len(_SIGNS)))
    return sa.func.btrim(_replaced(spaced, _SPACES, _quoted(" ")))


def words_of(company_id: Expression, text: Expression) -> Expression:
    """The words as a tsvector, each with its company before it: an index of it reads no other company's."""
    return sa.func.array_to_tsvector(_named(company_id, text), type_=TSVECTOR)


def query_of(company_id: Expression, text: Expression) -> Expression:
    """The query for texts with all words of this one, or with words that begin with them; null if it has no word."""
    word = sa.func.unnest(_named(company_id, text)).column_valued("word")
    prefix = sa.func.concat(_quoted("'"), word, _quoted("':*"))
    return sa.cast(sa.select(sa.func.string_agg(prefix, _quoted(" & "))).scalar_subquery(), TSQUERY)


def holds(text: Expression, other: Expression) -> Expression:
    """Whether the text has each word of the other within it: the characters of a run side by side."""
    word = sa.func.unnest(sa.func.string_to_array(_cut(plain(other)), _quoted(" "))).column_valued("part")
    return sa.select(sa.func.bool_and(sa.func.strpos(plain(text), word) > sa.literal_column("0"))).scalar_subquery()


def _named(company_id: Expression, text: Expression) -> Expression:
    """The words as an array of "11|plumbing": the company's id in base 16, and the word."""
    words = _replaced(_cut(_replaced(plain(text), _RUNS, _quoted(" \\1 "))), _SPACES, _quoted(" "))
    of_company = sa.func.textcat(sa.func.to_hex(company_id), _quoted("|\\1"))
    return sa.func.string_to_array(_replaced(sa.func.btrim(words), "([^ ]+)", of_company), _quoted(" "))


def _cut(words: Expression) -> Expression:
    return _replaced(words, _LONGEST, _quoted("\\1"))


def _replaced(text: Expression, pattern: str, new: Expression | sa.TextClause) -> Expression:
    return sa.func.regexp_replace(text, _quoted(pattern), new, _quoted("g"))


def _quoted(text: str) -> sa.TextClause:
    """A literal in the SQL: an index has no parameters, and finds its table by the first column of its expression."""
    return sa.text("'" + text.replace("'", "''").replace(":", "\\:") + "'")
