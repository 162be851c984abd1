"""What people may mean by words that no record has: words with one typing error less, of those that records have.

There is no table of words. One typing error makes some hundred words of another (`near_words`), and each is looked up
in the GIN index by which records are found, however many records there are: in 1 to 6 ms for a word, and in 30 ms if
new words wait to be merged into the index, because each look-up reads those. So a corrected word is always one that a
record has now, and nothing remains of one that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSQUERY

from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, Expression, Statement, param
from chassis.lists.words import near_words

WORDS_MAX = 2
"""A search with more words that no record has is taken as it is spelled."""
# Each word is looked up in the index, though an empty table looks as cheap. Of a word that many records have, the index
# returns some hundred: that there are any is enough.
BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL gin_fuzzy_search_limit = 100"

Near = Mapping[str, Sequence[str]]
"""Words that may be meant, by the word of the search; without words for which there is none."""


class Spelling:
    """Corrects the words of searches in one table."""

    def __init__(self, terms: sa.Column[str]) -> None:
        """terms: a `tsvector` with a GIN index, in which few words wait: each look-up reads all of those."""
        lexemes = sa.select(sa.func.unnest(param("lexemes", TEXTS), type_=sa.Text).label("lexeme")).subquery("lexemes")
        lexeme: Expression = lexemes.c.lexeme
        has_it = sa.exists(sa.select(terms).where(terms.op("@@")(sa.cast(lexeme, TSQUERY))))
        self.statement = Statement(sa.select(lexeme).where(has_it))

    async def near(self, database: Database, words: Sequence[str], prefix: str) -> Near:
        """prefix: how the lexemes of words begin, with the company."""
        async with database.transaction(BY_INDEX) as connection:
            there = await self._there(connection, words, prefix)
            near = {word: near_words(word) for word in words if word not in there}
            if not 0 < sum(map(bool, near.values())) <= WORDS_MAX:
                return {}
            there = await self._there(connection, [other for others in near.values() for other in others], prefix)
        meant = {word: [other for other in others if other in there] for word, others in near.items()}
        return {word: others for word, others in meant.items() if others}

    async def _there(self, connection: Connection, words: Sequence[str], prefix: str) -> set[str]:
        """Those of the words that a record has."""
        lexemes = {f"'{prefix}{word}'": word for word in words}
        return {lexemes[row["lexeme"]] for row in await connection.rows(self.statement, lexemes=list(lexemes))}
