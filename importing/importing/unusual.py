"""Rows that are accepted although their dates are in an unusual order: a person should look at them. Pure."""

from __future__ import annotations

import msgspec

from importing.rows import Fault

# By kind, the fields of two dates of which the first usually comes first.
ORDERS = {"turns": (("move_in_date", "move_out_date"),)}


def unusual(kind: str, sent: bytes) -> Fault | None:
    """What is unusual about a row that was sent; None if nothing is. `sent` is its JSON."""
    orders = ORDERS.get(kind, ())
    if not orders:
        return None
    row = msgspec.json.decode(sent)
    for first, second in orders:
        before, after = row.get(first), row.get(second)
        # Both are dates as YYYY-MM-DD, or the owner has rejected the row.
        if before and after and after < before:
            return Fault(second, f"is before the {first}, {before}", f"is before the {first}", after)
    return None
