"""Indexes for people's lists of vendors, inspections and notices, and for the words of vendors' names.

Revision ID: 0004_people_search_vendors
Revises: 0003_people_find_places
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004_people_search_vendors"
down_revision: str | None = "0003_people_find_places"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"business": "SHARE", "inspection": "SHARE", "notice": "SHARE", "vendor": "SHARE"}

_INSPECTION_STATE = "textcat(published_status, textcat(' ', coalesce(result, '')))"
_INSPECTION_LEADS = {
    "company": "company_id",
    "property": "property_id",
    "unit": "unit_id",
    "assignee": "hashint8extended(coalesce(assignee_id, 0), company_id)",
    "assignee_in_property": "hashint8extended(coalesce(assignee_id, 0), property_id)",
}
_SERVED = "kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"
_VENDOR_KEY = (
    "hashtextextended(textcat(text(on_hold), textcat(text(is_active), coalesce(last_compliance_state, 'unknown'))),"
    " company_id)"
)
_CASED = "".join(map(chr, (*range(0x41, 0x5B), *range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x402, 0x430))))
_UPPER = _CASED + "\u0110\u00d8\u0141\u00c6\u0152\u00de\u0111\u00f8\u0142\u0131\u03c2\u0491\u0490"
_LOWER = _CASED.lower() + "dol\u00e6\u0153\u00fedoli\u03c3\u0433\u0433"
_SIGNS = (
    "!\"#$&''()*+,-./:;<=>?@[\\]^_`{|}~"
    "\u00a1\u00bf\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u00b7\u2022\u2032\u2033"
    "\u3001\u3002\uff0c\uff01\uff1f\uff1b\uff1a\uff08\uff09\u300c\u300d\u300e\u300f\u3010\u3011\u30fb\u301c"
)
_BLANKS = " " * (len(_SIGNS) - 1)  # one sign is an apostrophe, written twice
_RUNS = "[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u9fff]"


def _words_of(text: str) -> str:
    """The words of a text as svc_catalog.vendors.words makes them in this release."""
    folded = f"translate(regexp_replace(normalize({text}, NFKD), '[\\u0300-\\u036f]', '', 'g'), '{_UPPER}', '{_LOWER}')"
    spaced = f"translate(replace({folded}, 'ß', 'ss'), '{_SIGNS}', '{_BLANKS}')"
    runs = f"regexp_replace(btrim(regexp_replace({spaced}, '[ ]+', ' ', 'g')), '({_RUNS})', ' \\1 ', 'g')"
    words = f"btrim(regexp_replace(regexp_replace({runs}, '([^ ]{{48}})[^ ]+', '\\1', 'g'), '[ ]+', ' ', 'g'))"
    marked = f"regexp_replace({words}, '([^ ]+)', textcat(to_hex(company_id), '|\\1'), 'g')"
    return f"array_to_tsvector(string_to_array({marked}, ' '))"


def upgrade() -> None:
    for name, lead in _INSPECTION_LEADS.items():
        op.create_index(
            f"inspection_search_{name}",
            "inspection",
            [
                sa.literal_column(f"hashtextextended({_INSPECTION_STATE}, {lead})"),
                sa.literal_column("coalesce(scheduled_date, completed_date, 'infinity'::date)"),
                "id",
            ],
            postgresql_where=sa.text(_SERVED),
        )
    published = sa.literal_column("coalesce(published_at, 'infinity'::timestamptz)")
    op.create_index("notice_newest", "notice", ["company_id", published, "id"])
    op.create_index("notice_newest_of_property", "notice", ["company_id", "property_id", published, "id"])
    insured_until = sa.literal_column("coalesce(insurance_expires_on, 'infinity'::date)")
    op.create_index("vendor_search", "vendor", [sa.literal_column(_VENDOR_KEY), "id"])
    op.create_index("vendor_search_insurance", "vendor", [sa.literal_column(_VENDOR_KEY), insured_until, "id"])
    named = "textcat(coalesce(nickname, ''), textcat(' ', coalesce(external_id, '')))"
    for table, text in (("vendor", named), ("business", "legal_name")):
        op.create_index(
            f"{table}_words",
            table,
            [sa.literal_column(_words_of(text))],
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
        )
