"""What a template of an inspection may have. Pure."""

from __future__ import annotations

from chassis.refusals import invalid_request

NAME_POINTS_MAX = 200
ROWS_MAX = 500
LABEL_POINTS_MAX = 150  # must fit into a ticket's title
TEMPLATES_MAX = 200
"""Of one company: they are listed whole."""


def check_number(templates: int) -> None:
    """Raises Refusal 422 if no further template fits. templates: how many the company has."""
    if templates >= TEMPLATES_MAX:
        raise invalid_request(f"A company has at most {TEMPLATES_MAX} templates of inspections.", status=422)


def check_default(inspection_type: str | None, *, is_default: bool) -> None:
    """Raises Refusal 422 for a default template without a type."""
    if is_default and inspection_type is None:
        raise invalid_request("A default template needs the type that it is the default of.", "inspection_type", 422)
