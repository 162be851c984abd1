"""Imports: one under way, one of another company, one with hostile texts."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import asyncpg

HOSTILE = "\"><script>alert(1)</script>'{{7*7}}<img src=x onerror=alert(2)>"


def _outcome(text: str) -> dict[str, Any]:
    counts = {"read": 14371, "created": 14356, "changed": 0, "unchanged": 0, "rejected": 15, "skipped": 2}
    example = {"line": 17, "reason": text, "value": text}
    reason = {
        "kind": "tickets",
        "field": "property",
        "text": text,
        "columns": [text],
        "rows": 15,
        "examples": [example],
    }
    return {"kinds": [{"kind": "tickets", "counts": counts, "rejects_file": None}], "reasons": [reason]}


def _job(company_id: int, act: str, state: str, text: str) -> tuple[Any, ...]:
    facts = {"columns": [{"name": text, "samples": [text, "2"]}], "description": text, "rows": 2, "kind": "tickets"}
    mapping = "kind = " + json.dumps("tickets") + "\n[fields]\ntitle = " + json.dumps(text) + "\n"
    return (
        *(company_id, act, text, f"{text}.csv", 4000000, f"imports/{company_id}/{act}", state, "tickets", mapping),
        *(json.dumps(facts), json.dumps(_outcome(text)), 2000000, "", ""),
    )


_COLUMNS = {
    "CASE_ENQUIRY_ID": ["101001218153", "101001218154", "101001218155"],
    "OPEN_DT": ["01/05/2015 04:07:12 PM", "02/02/2015 08:00:00 AM", "02/03/2015 11:41:09 AM"],
    "CASE_STATUS": ["Closed", "Open"],
    "CLOSURE_REASON": ["Case Closed. Closed date : 2015-03-18. Resolved by the crew that was sent to the place", "n/a"],
    "CASE_TITLE": ["Heat - Excessive  Insufficient", "Bed Bugs", "Unsatisfactory Living Conditions"],
    "TYPE": ["Heat", "Bed Bugs", "Electrical", "Plumbing"],
    "Property_ID": ["286744.0", "4810.0"],
    "Größe (m²)": ["1.234,50", "98,00"],
    "LOCATION_ZIPCODE": [],
}
_READ = {
    "columns": [{"name": name, "samples": samples} for name, samples in _COLUMNS.items()],
    "description": "read as Windows-1252, separated by semicolons",
    "rows": 500,
    "kind": "tickets",
}
_MAPPING = """kind = "tickets"
ignore = ["*"]
duplicates = "keep-first"

[fields]
external_id = "CASE_ENQUIRY_ID"
title = "CASE_TITLE"
category = { column = "TYPE", values = { "Bed Bugs" = "Pest Control", "Heat" = "HVAC" } }
property = { template = "Address {Property_ID}" }
"""
_UNKNOWN = "No property with that external_id is known."
_REASONS: list[tuple[str, str, list[str], list[tuple[str | None, str]]]] = [
    ("property", _UNKNOWN, ["Property_ID"], [(f"Address {n}", _UNKNOWN) for n in (286744, 4810, 77120)]),
    ("category", "This is none of its values.", ["TYPE"], [("Graffiti removal and other things", "It is none.")]),
    ("", "The row has more values than the header has columns.", [], [(None, "It has 12 values for 9 columns.")]),
]


def _counts(read: int, created: int, rejected: int, skipped: int = 0) -> dict[str, int]:
    others = {"rejected": rejected, "skipped": skipped}
    return {"read": read, "created": created, "changed": 0, "unchanged": read - created - rejected, **others}


def _seen(*kinds: tuple[str, dict[str, int]]) -> dict[str, Any]:
    reasons = [
        {
            "kind": "tickets",
            "field": field,
            "text": text,
            "columns": columns,
            "rows": 400 - 150 * place,
            "examples": [{"line": 17 + n, "reason": why, "value": value} for n, (value, why) in enumerate(examples)],
        }
        for place, (field, text, columns, examples) in enumerate(_REASONS)
    ]
    results = [{"kind": kind, "counts": counts, "rejects_file": None} for kind, counts in kinds]
    return {"kinds": results, "reasons": reasons if any(counts["rejected"] for _, counts in kinds) else []}


def _real(act: str, state: str, name: str, kind: str = "", *more: Any) -> tuple[Any, ...]:
    """more: the outcome, the bytes done, the state in which it stopped, the fault."""
    outcome, position, stopped_in, fault = more + ({}, 0, "", "")[len(more) :]
    facts = {} if state == "reading" else _READ
    mapping = _MAPPING if kind else ""
    return (
        *(1, act, "Marguerite Okafor", name, 4_187_331, f"imports/1/{act}", state, kind, mapping),
        *(json.dumps(facts), json.dumps(outcome), position, stopped_in, fault),
    )


_HALF = _seen(("tickets", _counts(6000, 5250, 750)))
_WHOLE = _seen(("tickets", _counts(14371, 13621, 750, 12)))
_SEVERAL = _seen(("properties", _counts(14371, 9761, 0, 15)), ("tickets", _counts(14371, 14371, 0)))
_ODD_ROW = {"line": 17, "reason": "is before the move_in_date, 2026-02-01", "value": "2026-01-31"}
_ODD = {
    "kind": "turns",
    "field": "move_out_date",
    "text": "is before the move_in_date",
    "columns": ["MoveOut"],
    "rows": 2,
    "examples": [_ODD_ROW],
}
_UNUSUAL = {**_seen(("turns", _counts(120, 120, 0))), "unusual": [_ODD]}
_CAMPUS = [
    [f"B{n}", "Main Campus", f"{100 + n} College Ave", "Oakland", "CA", "94612", str(12 + n), "1964"] for n in range(10)
]
_PREVIEWED = {
    **_seen(("properties", _counts(569, 569, 0))),
    "previews": [
        {
            "kind": "properties",
            "fields": [*("external_id", "name", "address", "city", "state", "postal_code", "unit_count", "year_built")],
            "records": _CAMPUS,
            "warnings": [{"field": "name", "value": "Main Campus", "rows": 569, "is_all": True}],
            "rows": 569,
        }
    ],
}
_UNDONE = {
    "kinds": [
        {"kind": "units", "withdrawn": 1204, "restored": 0, "kept": 3},
        {"kind": "properties", "withdrawn": 566, "restored": 2, "kept": 1},
    ],
    "kept": [
        {"kind": "units", "used_by": "ticket", "records": 2, "examples": ["B7-101", "B7-102"]},
        {"kind": "units", "used_by": "", "records": 1, "examples": ["B9-4"]},
        {"kind": "properties", "used_by": "unit", "records": 1, "examples": ["B7"]},
    ],
}
# The states of an undo, of jobs by their number.
UNDOES = {15: _UNDONE, 16: _UNDONE, 17: _UNDONE}
_AWAY = "A part of Makeready does not answer."
REAL = (
    _real("d", "mapping", "311-cases-2015.csv"),
    _real(
        "e", "checked", "311-cases-2015 (Boston, with a rather long name of a file) – final v2.csv", "tickets", _WHOLE
    ),
    _real("f", "stopped", "Wohnungen Größe.xlsx", "tickets", _HALF, 0, "checking", _AWAY),
    _real("g", "stopped", "cases.csv.gz", "tickets", _HALF, 2_000_000, "running", _AWAY),
    _real("h", "cancelled", "cases-2016.csv", "tickets", _HALF, 2_000_000, "running"),
    _real("i", "done", "registry.jsonl", "all", _SEVERAL),
    _real("j", "done", "cases-2017.csv", "tickets", _WHOLE),
    _real("k", "reading", "cases-2018.csv"),
    _real("l", "checking", "cases-2019.csv", "tickets", _HALF, 1_500_000),
    _real("m", "checked", "residencies.csv", "turns", _UNUSUAL),
    _real("n", "checked", "Portfolio export.xlsx", "properties", _PREVIEWED),
    _real("o", "checked", "registry-2.jsonl", "all", _SEVERAL),
    _real("p", "done", "registry-3.jsonl", "all", _SEVERAL),
    _real("q", "running", "registry-4.jsonl", "all", _SEVERAL),
)


async def fill(url: str) -> None:
    """Adds the imports: 1, under way; 2, of company 2; 3, hostile; from 4 on one in each state. And saved views, all of
    them shared: 1; 2, of company 2; 3, hostile."""
    connection = await asyncpg.connect(url)
    jobs = (_job(1, "a", "running", "Dana"), _job(2, "b", "done", "Olga"), _job(1, "c", "done", HOSTILE))
    try:
        for values in (*jobs, *REAL):
            await connection.execute(
                "INSERT INTO job (company_id, act, person, file_name, file_bytes, stored_as, state, kind, mapping,"
                " facts, outcome, position, stopped_in, fault)"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                *values,
            )
        parts = [(1, 1, b"reject_line,id\n"), (1, 2, b"17,x\n"), (3, 1, HOSTILE.encode()), (10, 1, b"reject_line\n")]
        await connection.executemany("INSERT INTO reject VALUES ($1, $2, '', $3)", parts)
        views = [
            (1, "a", "priority=Emergency&order=oldest", "Emergencies"),
            (2, "b", "priority=Low", "Olga’s"),
            (1, "c", f"q={quote(HOSTILE)}&view=%00&property=1%27--", HOSTILE),
        ]
        await connection.executemany(
            "INSERT INTO saved_view (company_id, person, act, list, query, name, is_shared)"
            " VALUES ($1, 'administrator:9', $2, '/tickets', $3, $4, true)",
            views,
        )
        for job_id, undo in UNDOES.items():
            await connection.execute("UPDATE job SET undoes = true, undo = $2 WHERE id = $1", job_id, json.dumps(undo))
        sheets = ["Portfolio", "Units", "Contacts"]
        facts = json.dumps(_READ | {"sheets": sheets, "reading": {"sheet": "Portfolio"}, "kind": "tickets"})
        await connection.execute("UPDATE job SET facts = $1 WHERE id = 14", facts)
        # Another process works on it, so that a cancellation does not end it at once.
        await connection.execute("UPDATE job SET runner = 'other', lease_until = '2100-01-01' WHERE id IN (1, 17)")
    finally:
        await connection.close()
