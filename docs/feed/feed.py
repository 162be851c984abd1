"""Sends notices and move-ins of a property-management system (PMS) from a CSV file, each once, however often it runs.

    MAKEREADY_API_KEY=mk_… MAKEREADY_BASE_URL=https://HOST/api/v1 python3 feed.py yardi occupancy.csv

Columns: id, kind (notice or move-in), unit (its external_id), date, lease_start, lease_end, first_name, last_name,
email, phone. Ends with 1 if rows were refused. Kill it at any moment: the next run goes on.
"""

import csv
import datetime
import sys
from collections.abc import Iterator

from makeready_client import Makeready, errors, models

Row = dict[str, str]
# No row would fare better.
STOPS = (
    errors.Unauthorized,
    errors.KeyRevoked,
    errors.InsufficientScope,
    errors.CompanyInactive,
    errors.CreatedByMissing,
)


def day(text: str) -> datetime.date | None:
    return datetime.date.fromisoformat(text) if text else None


def turns_of(client: Makeready, unit_id: int) -> list[models.Turn]:
    """The unit's residencies, the earliest first; those that were cancelled are none."""
    turns = [turn for turn in client.turns.list(unit_id=unit_id) if turn.status != "Cancelled"]
    return sorted(turns, key=lambda turn: (turn.move_in_date or datetime.date.min, turn.entity_id))


def send_notice(client: Makeready, provider: str, unit_id: int, row: Row) -> str:
    if any(turn.move_out_date == day(row["date"]) for turn in turns_of(client, unit_id)):
        return "unchanged"
    client.units.record_notice(
        unit_id,
        move_out_date=datetime.date.fromisoformat(row["date"]),
        provider=provider,
        external_id=row["id"],
        idempotency_key=f"notice-{row['id']}-{row['date']}",
    )
    return "sent"


def send_move_in(client: Makeready, provider: str, unit_id: int, row: Row) -> str:
    turns = turns_of(client, unit_id)
    for turn in turns:
        if turn.external_id == row["id"]:  # the row was sent before
            moved = turn.move_in_date != day(row["date"])
            return f"refused: planned for {turn.move_in_date}; change the date in the console" if moved else "unchanged"
    last = turns[-1] if turns and turns[-1].status == "Active" else None
    party: models.PartyCreate = {"first_name": row["first_name"], "last_name": row["last_name"], "role": "leaseholder"}
    if row["email"]:
        party["email"] = row["email"]
    if row["phone"]:
        party["phone"] = row["phone"]
    client.units.record_move_in(
        unit_id,
        move_in_date=datetime.date.fromisoformat(row["date"]),
        lease_start_date=day(row["lease_start"]) or datetime.date.fromisoformat(row["date"]),
        lease_end_date=day(row["lease_end"]),
        predecessor_transition_id=last.entity_id if last and last.move_out_date else None,
        provider=provider,
        parties=[party],
        external_id=row["id"],
        # Without the predecessor: it is another one once the move-in has been recorded.
        idempotency_key=f"move-in-{row['id']}",
    )
    return "sent"


SEND = {"notice": send_notice, "move-in": send_move_in}


def outcomes(client: Makeready, provider: str, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """What became of each row: sent, unchanged, or refused with the reason."""
    for row in sorted(rows, key=lambda row: row["date"]):  # a notice before the move-in that follows it
        try:
            units = client.search(external_id=row["unit"], kind="unit").data
            if not units:
                yield row["id"], f"refused: no unit has the external_id {row['unit']}"
            else:
                yield row["id"], SEND[row["kind"]](client, provider, units[0].entity_id, row)
        except STOPS:
            raise
        except errors.ApiError as error:
            if error.status == 429 or error.status >= 500:
                raise  # it may pass: run again later
            yield row["id"], f"refused: {error.message}"
        except (KeyError, ValueError) as error:
            yield row["id"], f"refused: the row cannot be read: {error!r}"


if __name__ == "__main__":
    _, PROVIDER, FILE = sys.argv
    with open(FILE, newline="", encoding="utf-8-sig") as file, Makeready() as api:
        refused = 0
        for row_id, outcome in outcomes(api, PROVIDER, list(csv.DictReader(file))):
            print(row_id, outcome, flush=True)
            refused += outcome.startswith("refused")
    sys.exit(1 if refused else 0)
