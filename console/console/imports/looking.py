"""A first look at a file: its columns with samples, and the kind of record that it probably has."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from importing.errors import ImportFault
from importing.kinds import KINDS, Column, Kind
from importing.opening import opened
from importing.rows import Reading
from importing.xlsx_source import SheetNotNamed, XlsxSource

SAMPLES, SAMPLE_CHARACTERS, ROWS, COLUMNS_MAX, SHEETS_MAX = 5, 80, 500, 600, 50
# How the cells of a workbook are read that are dates, with a time or without.
OF_CELLS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d")
# The formats of dates that files have, in the order in which they are tried. A day before a month first where a value
# shows it.
FORMATS = (
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%m/%d/%y",
    "%Y%m%d",
    "%b %d, %Y",
    "%d-%b-%Y",
)
# What files call the fields, besides their own names.
OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "external_id": (
        *("id", "key", "number", "reference", "ref", "code", "uid", "guid", "no", "scode"),
        *("workorder", "workordernumber", "workorderno", "workorderid", "wo", "wonumber", "woid"),
        *("servicerequest", "servicerequestnumber", "sr", "srnumber", "requestid", "requestnumber"),
        *(
            "ticket",
            "ticketnumber",
            "inspection",
            "inspectionid",
            "taskid",
            "tasknumber",
            "propertycode",
            "unitcode",
            "vendorcode",
            "vendorid",
        ),
    ),
    "property": (
        *("propertyid", "propertycode", "building", "buildingid", "bldg", "bldgid", "site", "siteid", "community"),
        *("propertyname", "complex", "entity", "entityid", "projectname"),
    ),
    "unit": ("unitid", "unitcode", "unitnumber", "apartment", "apt", "aptnumber", "flat", "suite", "suiteid", "space"),
    "asset": ("assetid", "equipment", "equipmentid"),
    "meter": ("meterid",),
    "turn": ("turnid",),
    "name": (
        *("title", "label", "propertyname", "unitname", "buildingname", "vendorname", "companyname", "company"),
        *("fullname", "employeename", "employee", "assetname", "equipmentname", "metername", "description"),
    ),
    "title": (
        *("subject", "summary", "briefdesc", "briefdescription", "shortdescription", "problem", "issue"),
        *("jobdescription", "requestdescription", "problemdescription", "request", "name"),
    ),
    "address": ("street", "streetaddress", "siteaddress", "address1", "streetaddress1", "addressline1", "addr1"),
    "state": ("province", "st"),
    "postal_code": ("zip", "zipcode", "postcode", "postalcode"),
    "building_type": ("propertytype", "buildingclass", "assetclass"),
    "unit_count": ("units", "totalunits", "numberofunits", "unitcount", "nounits"),
    "year_built": ("built", "constructionyear"),
    "created_at": (
        *("created", "opened", "createdon", "opendate", "opendt", "datecreated", "createddate", "calldate", "callin"),
        *("reported", "datereported", "reporteddate", "reportedon", "requestdate", "requestedon", "requested"),
        *("dateopened", "dateentered", "entrydate", "datesubmitted", "submitted"),
    ),
    "completed_at": (
        *("completed", "closed", "closedate", "closeddt", "completedon", "datecompleted", "completeddate"),
        *("completiondate", "closedon", "closeddate", "dateclosed", "finished", "workdoneon"),
    ),
    "category": ("type", "problemtype", "trade", "craft", "worktype", "workordertype", "servicetype", "issuetype"),
    "subcategory": ("subtype", "problemcode", "issuecategory"),
    "priority": ("urgency", "severity", "prioritylevel"),
    "status": ("state", "workorderstatus", "wostatus", "currentstatus", "requeststatus"),
    "description": (
        *("details", "notes", "comments", "fulldesc", "fulldescription", "longdescription", "detaileddescription"),
        *("problemdescription", "instructions", "workdescription", "remarks"),
    ),
    "permission_to_enter": ("permission", "accessok", "oktoenter", "permissiontoenterunit", "mayenter", "entryallowed"),
    "preferred_access_time": ("accessnotes", "preferredtime", "accesstime", "entrynotes"),
    "room": ("location", "area", "roomname"),
    "assigned_vendor": ("vendor", "vendorname", "vendorid", "contractor", "vendorcode"),
    "email": ("mail", "emailaddress"),
    "assignee": ("assignedto", "technician", "tech", "assigned", "assigneduser", "employee", "maintenancetech"),
    "inspection_type": ("inspectiontemplate", "template"),
    "scheduled_date": ("scheduled", "scheduledfor", "scheduleddate", "scheddate", "scheduleon"),
    "move_out_date": ("moveout", "moveoutdate", "vacatedate", "vacated", "dateout"),
    "move_in_date": ("movein", "moveindate", "nextmovein", "datein"),
    "projected_ready_on": ("makeready", "makereadydate", "readydate", "targetdate", "estimatedreadydate"),
    "floorplan": ("unittype", "floorplanname", "unitmodel"),
    "bedrooms": ("beds", "bed", "br", "bedroomcount"),
    "bathrooms": ("baths", "bath", "ba", "bathroomcount"),
    "square_feet": ("sqft", "squarefootage", "squarefeet", "sf", "area", "marketsqft", "rentablesqft"),
    "make": ("manufacturer", "brand"),
    "model": ("modelnumber", "modelno"),
    "serial_number": ("serial", "serialno"),
    "installed_on": ("installdate", "installed", "installationdate"),
    "warranty_expires_on": ("warrantyexpiration", "warrantyexpires", "warrantyend", "warranty"),
    "insurance_expires_on": ("insuranceexpiration", "insuranceexpires", "coiexpiration", "liabilityinsuranceexpires"),
    "website": ("url", "web", "webaddress"),
    "due_date": ("due", "dueon"),
    "task_name": ("task", "name", "title"),
    "consumption": ("usage", "amount", "quantity", "value"),
    "period_start": ("start", "from", "startdate"),
    "period_end": ("end", "to", "enddate"),
    "body": ("text", "message"),
    "subject": ("title", "headline"),
}
# Words in the names of columns that say what the rows are, whatever else they have.
SIGNS: Mapping[str, Sequence[str]] = {
    "tickets": (
        "workorder",
        "wonumber",
        "servicerequest",
        "ticket",
        "problem",
        "trade",
        "permissiontoenter",
        "calldate",
    ),
    "inspections": ("inspection", "inspector", "inspected"),
    "readings": ("consumption", "usage", "reading"),
    "meters": ("metertype", "utilitytype", "meternumber"),
    "vendors": ("vendorname", "insuranceexpir", "contractor"),
    "turns": ("moveout", "movein", "makeready"),
    "assets": ("manufacturer", "serial", "warranty"),
    "units": ("bedroom", "beds", "sqft", "squarefeet", "unittype", "floorplan"),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A column of a file. samples: up to five different values, shortened."""

    name: str
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What a first look shows. description: how the file is read; empty if that needs no word. rows: the number of the
    file's rows, up to ROWS. kind: the probable one. is_plain: the columns have that kind's names. more: the number of
    columns past COLUMNS_MAX, which are left out: a form with thousands of choices a field is of use to no one."""

    columns: tuple[Seen, ...] = ()
    description: str = ""
    rows: int = 0
    kind: str = ""
    is_plain: bool = False
    reading: Reading = field(default_factory=Reading)
    more: int = 0
    sheets: tuple[str, ...] = ()
    """The sheets of a workbook, if it has several; `reading` says which was read."""

    @property
    def is_workbook(self) -> bool:
        return bool(self.reading.sheet)


def look(path: Path, reading: Reading) -> Facts:
    """Reads the beginning of a file: of a workbook's sheets, the first whose columns look like records, if none is
    named. Raises ImportFault."""
    try:
        return _look(path, reading)
    except SheetNotNamed as unclear:
        sheets, fault = unclear.sheets[:SHEETS_MAX], unclear
    looks = []
    for sheet in sheets:
        with contextlib.suppress(ImportFault):  # an empty one, perhaps
            looks.append(_look(path, replace(reading, sheet=sheet)))
    if not looks:
        raise fault
    return next((facts for facts in looks if facts.kind and facts.rows), looks[0])


def _look(path: Path, reading: Reading) -> Facts:
    sheets: tuple[str, ...] = ()
    samples: dict[str, dict[str, None]] = {}
    count = 0
    with opened(path, reading) as opened_file:
        header = opened_file.source.columns or ()
        if isinstance(opened_file.source, XlsxSource):
            sheets = opened_file.source.sheets[:SHEETS_MAX] if len(opened_file.source.sheets) > 1 else ()
        samples = {name: {} for name in header[:COLUMNS_MAX]}
        more = set(header[COLUMNS_MAX:])
        for row in opened_file.source.rows():
            count += 1
            for name, value in row.values.items():
                if len(samples) == COLUMNS_MAX and name not in samples:
                    more.add(name)
                else:
                    texts = samples.setdefault(name, {})
                    text = "" if value is None else str(value).strip()
                    if text and len(texts) < SAMPLES:
                        texts.setdefault(text[:SAMPLE_CHARACTERS])
            if count >= ROWS:
                break
        description = opened_file.description
        reading = opened_file.reading
    if not samples:
        raise ImportFault(f"{path.name} has no row that can be read.")
    columns = tuple(Seen(name, tuple(_printable(text) for text in texts)) for name, texts in samples.items())
    kind = guessed(list(samples))
    is_plain = kind is not None and not more and set(samples) <= set(kind.fields) and set(kind.required) <= set(samples)
    return Facts(columns, description, count, kind.name if kind else "", is_plain, reading, len(more), sheets)


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def guessed(columns: Sequence[str]) -> Kind | None:
    """The kind whose fields the columns fit best; None if none fits."""
    best, most = None, 0.0
    for kind in KINDS.values():
        sources = matched(kind, columns)
        named = sum(1 for name in sources if name in columns)
        required = sum(1 for name in kind.required if name in sources) / len(kind.required)
        signs = SIGNS.get(kind.name)
        has_sign = signs is not None and any(sign in _plain(name) for name in columns for sign in signs)
        score = 3 * required + len(sources) / 4 + named / 2 + 2 * has_sign
        if kind.name == "inspections" and not has_sign:
            score -= 2  # a property and an id are all that one needs
        if required >= 0.5 and score > most:
            best, most = kind, score
    return best


def matched(kind: Kind, columns: Sequence[str]) -> dict[str, str]:
    """The column that each field probably comes from."""
    plain: dict[str, str] = {}
    for name in columns:
        plain.setdefault(_plain(name), name)
    sources: dict[str, str] = {}

    def is_free(name: str) -> bool:
        return name not in sources.values()

    def take(field: str, source: str | None) -> None:
        if source is not None and field not in sources:
            sources[field] = source

    # A field's own name goes before what others call it, and that before names whose last words it is: "Site Code".
    for field_name in kind.fields:
        take(field_name, plain.get(_plain(field_name)))
    for field_name in kind.fields:
        take(
            field_name,
            next(
                (plain[text] for text in OTHER_NAMES.get(field_name, ()) if text in plain and is_free(plain[text])),
                None,
            ),
        )
    ends = {name: _ends(name) for name in plain.values()}
    for field_name in kind.fields:
        others = {_plain(field_name), *OTHER_NAMES.get(field_name, ())}
        take(
            field_name, next((name for name, last_words in ends.items() if last_words & others and is_free(name)), None)
        )
    return sources


def _ends(name: str) -> set[str]:
    """The last one, two and three words of a name, each as `_plain` has it."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+", name)
    return {_plain("".join(words[-count:])) for count in (1, 2, 3)}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def date_format(column: Column, samples: Sequence[str], *, is_workbook: bool = False) -> str:
    """The format in which the samples are dates, or lines of several; empty if they need none, or fit none. A
    workbook's dates have no timezone, also those without a time."""
    if column.type not in ("date", "date-time") or not samples:
        return ""
    of_cells = is_workbook and column.type == "date-time"
    if of_cells and all(any(_fits(text, form) for form in OF_CELLS) for text in samples):
        return "\n".join(OF_CELLS)
    try:
        for text in samples:
            datetime.date.fromisoformat(text) if column.type == "date" else _zoned(text)
    except ValueError:
        return next((form for form in FORMATS if all(_fits(text, form) for text in samples)), "")
    return ""


def _zoned(text: str) -> None:
    at = datetime.datetime.fromisoformat(text)
    if at.tzinfo is None and len(text) > len("2026-01-01"):
        raise ValueError


def _fits(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True
