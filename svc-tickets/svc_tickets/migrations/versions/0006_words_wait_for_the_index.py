"""New entries of the index of words wait in a short list, so that a ticket's row in the search writes less WAL.

Revision ID: 0006_words_wait_for_the_index
Revises: 0005_tickets_are_followed
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0006_words_wait_for_the_index"
down_revision: str | None = "0005_tickets_are_followed"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # A setting only: neither reads nor writes wait for it, and no entry is written anew.
    op.execute("ALTER INDEX ticket_search_terms SET (fastupdate = on, gin_pending_list_limit = 256)")
