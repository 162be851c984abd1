"""The tables of reports: what each record adds to the figures, and the figures."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa


class ReportTables(NamedTuple):
    """The tables of one context."""

    fact: sa.Table
    figure: sa.Table


def add_report_tables(metadata: sa.MetaData) -> ReportTables:
    """Once for each database whose context has reports."""
    # A row for each record: what it has added to the figures (`chassis.reports.facts`). A row whose state is not the
    # record's is made anew, and the figures move by the difference.
    fact = sa.Table(
        "report_fact",
        metadata,
        sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("record_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
    )
    # The figures by day and by month: `FigureKey`. A row without an amount and a histogram does not exist. The key has
    # the order of a page: of some measures the months of a period, and in them all values.
    figure = sa.Table(
        "report_figure",
        metadata,
        sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("grain", sa.Text, primary_key=True),
        sa.Column("dimension", sa.Text, primary_key=True),
        sa.Column("property_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("measure", sa.Text, primary_key=True),
        sa.Column("starts_on", sa.Date, primary_key=True),
        sa.Column("value", sa.Text, primary_key=True),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("histogram", sa.Text),
    )
    return ReportTables(fact, figure)
