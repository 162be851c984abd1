"""Checks that one context makes for another: no context imports another, so only these tests hold the two together."""

from __future__ import annotations

from svc_catalog.inspection_templates import rules as row_labels
from svc_catalog.inspections import rules as failed_rows
from svc_tickets.tickets.rules import fields as tickets
from svc_webhooks.rules import filters


def test_a_failed_row_may_be_all_that_its_ticket_may_be() -> None:
    assert failed_rows.TICKET_CATEGORIES == tickets.CATEGORIES
    assert failed_rows.TICKET_PRIORITIES == tickets.PRIORITIES
    assert failed_rows.DEFAULT_PRIORITY == tickets.DEFAULT_PRIORITY
    assert row_labels.LABEL_POINTS_MAX <= tickets.TITLE_POINTS_MAX


def test_a_filter_may_name_all_that_a_ticket_may_be() -> None:
    assert filters.CATEGORIES == tickets.CATEGORIES
    assert filters.PRIORITIES == tickets.PRIORITIES
