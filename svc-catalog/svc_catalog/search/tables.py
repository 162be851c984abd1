"""The words by which people find places. Derived from other tables, and filled after their writes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text
from sqlalchemy.dialects.postgresql import TSVECTOR

from svc_catalog.schema import company_key, metadata, one_of

KINDS = ("property", "unit", "asset", "meter")

# A lexeme is COMPANY, the kind's first letter, ".", WORD: a search reads the index entries of its own company and kind.
place_search = Table(
    "place_search",
    metadata,
    company_key(),
    Column("kind", Text, primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("property_id", BigInteger, nullable=False),
    Column("name_order", Text, nullable=False),
    Column("words", TSVECTOR, nullable=False),
    one_of("place_search", "kind", KINDS),
)
Index("place_search_words", place_search.c.words, postgresql_using="gin")


def lexeme_prefix(company_id: int, kind: str) -> str:
    """The beginning of the lexemes of one company's records of one kind."""
    return f"{company_id}{kind[0]}."
