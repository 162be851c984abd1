"""An administrator imports files in the console; a kill -9 in the middle changes neither records nor counts."""

from __future__ import annotations

import contextlib
import datetime
import functools
import gzip
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import openpyxl
import psutil
import pytest

from testkit.examples import is_whole
from testkit.patience import until as wait_until
from testkit.prepared import prepare_state

from .console_browser import Browser, Page
from .real_files import EXAMPLES
from .system import Company, System

pytestmark = pytest.mark.chaos

# A batch has up to 512 KiB: of the rows with the wide texts, a few more than BATCH.
BATCH, BATCHES, WIDE = 200, 2, "屋" * 200
BAD = 107  # the index of a bad row in every batch
ROWS = BATCH * BATCHES
CREATED = ROWS - BATCHES
WHOLE = {"read": ROWS, "created": CREATED, "changed": 0, "unchanged": 0, "rejected": BATCHES, "skipped": 0}
PATIENCE_SECONDS = 120.0
COUNTS = ("created", "changed", "unchanged", "rejected")
HEADER = "Site Code,Site Name,Street,Year,Kind"
WIDE_FIELDS = ("building_type", "city", "construction_type", "state")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the console's processes copy the files that they import."""
    return tmp_path_factory.mktemp("copies")


@pytest.fixture(scope="module")
def house(states: Path, copies: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A separate system, as its processes are held and killed."""
    prepare_state(states / "console_imports")
    more = {"MAKEREADY_STRIKE_FILE": str(tmp_path_factory.mktemp("strike") / "strike"), "TMPDIR": str(copies)}
    system = System(states / "console_imports", MAKEREADY_DEMO="0", **more)
    try:
        system.start()
        yield system
    finally:
        system.stop()


@pytest.fixture
def company(house: System) -> Company:
    return house.company("Imports by hand")


@pytest.fixture
def browser(house: System, company: Company) -> Browser:
    return Browser(house).sign_in(company.email)


def sites(rows: int) -> bytes:
    """A CSV of properties under names of its own. A row in each batch lacks its street."""
    lines = [f"P{n},House {n},{'' if n % BATCH == BAD else f'{n} Elm St'},{1900 + n % 99},{WIDE}" for n in range(rows)]
    return "\n".join([HEADER, *lines, ""]).encode()


def until(browser: Browser, path: str, word: str) -> Page:
    """The import's page once its heading has the word."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        page = browser.get(path)
        if word in page.text:
            return page
        assert time.monotonic() < give_up and "Stopped" not in page.words, page.words
        time.sleep(0.2)


def counts(page: Page) -> dict[str, int]:
    pairs = re.findall(r'data-count="(\w+)">\s*([\d,]+)\s*<', page.text)
    return {name: int(number.replace(",", "")) for name, number in pairs}


def counts_of_kinds(page: Page) -> list[tuple[str, ...]]:
    """Kind, created, changed, unchanged and rejected of each row of the page's table."""
    rows = re.findall(r'<tr>\s*<td class="b">([\w-]+)</td>(.*?)</tr>', page.text, re.DOTALL)
    counts_by_kind = [(kind, dict(re.findall(r'data-count="(\w+)">\s*([\d,]+)\s*<', cells))) for kind, cells in rows]
    return [(kind, *(kind_counts[name].replace(",", "") for name in COUNTS)) for kind, kind_counts in counts_by_kind]


def newest_worker(house: System) -> psutil.Process:
    """The process of the last task that began: the one before may need a moment to end."""
    console = psutil.Process(house.runtime["processes"]["console"]["pid"])
    workers = {}
    for child in console.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # also for one that has ended and is not reaped yet
            if "console.imports.worker" in child.cmdline():
                workers[child.create_time()] = child
    return workers[max(workers)]


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def held(house: System) -> psutil.Process:
    """Waits until svc-catalog is stopped at its point; a signal to go on that came before would be lost."""
    strike = Path(house.settings["MAKEREADY_STRIKE_FILE"])
    catalog = psutil.Process(house.runtime["processes"]["svc-catalog"]["pid"])
    wait_until(lambda: not strike.exists() and catalog.status() == psutil.STATUS_STOPPED)
    return catalog


def no_copy_is_left(copies: Path) -> None:
    """An import's process may need a moment to end after its last word."""
    wait_until(lambda: not list(copies.glob("makeready-import-*")))


def checked(browser: Browser, content: bytes) -> str:
    """The path of an import whose rows are checked."""
    browser.get("/imports/new")
    page = browser.upload("/imports/new", "sites.csv", content)
    link = re.search(r'href="(/imports/\d+)"', page.text)
    assert link, page.words
    path = link[1]
    page = until(browser, path, "Match the columns")
    assert "Detected: properties" in page.words
    chosen = {"external_id": "Site Code", "name": "Site Name", "address": "Street", "year_built": "Year"}
    chosen |= dict.fromkeys(WIDE_FIELDS, "Kind")
    browser.send(f"{path}/check", **{f"from.{field}": f"column:{column}" for field, column in chosen.items()})
    until(browser, path, "All rows checked")
    return path


def test_an_example_is_imported_with_the_counts_of_the_command_line(company: Company, browser: Browser) -> None:
    """As in test_mapped_imports: a file in Windows-1252 with semicolons becomes three kinds of record."""
    browser.get("/imports/new")
    page = browser.upload("/imports/new", "ablesung.csv", (EXAMPLES.parent / "files" / "ablesung.csv").read_bytes())
    link = re.search(r'href="(/imports/\d+)"', page.text)
    assert link, page.words
    path = link[1]
    page = until(browser, path, "Match the columns")
    assert "read as Windows-1252, separated by semicolons" in page.words
    mapping = (EXAMPLES / "ablesung.toml").read_bytes()
    page = browser.upload(f"{path}/check", "ablesung.toml", mapping, field="mapping", **{"as": "toml"})
    expected = [("properties", "2", "0", "2", "0"), ("meters", "2", "0", "2", "0"), ("readings", "3", "0", "0", "0")]
    assert counts_of_kinds(until(browser, path, "All rows checked")) == expected
    browser.send(f"{path}/check", **{"as": "again"})
    assert counts_of_kinds(until(browser, path, "All rows checked")) == expected
    assert next(iter(company.walk("/properties")), None) is None
    browser.send(f"{path}/run")
    assert counts_of_kinds(until(browser, path, "Import complete.")) == expected
    meters = list(company.walk("/meters"))
    readings = [reading for meter in meters for reading in company.walk(f"/meters/{meter['entity_id']}/readings")]
    assert [(reading["consumption"], reading["cost"]) for reading in readings] == [
        (1234.5, 148.14),
        (1100, 132),
        (987.25, 118.47),
    ]


# One kind, a kind that refers to another, and several at once; then those of the profile `nightly` alone.
CITIES = (
    ("boston-properties", "properties", "boston-311-housing/Plumbing.csv"),
    ("boston-cases", "tickets", "boston-311-housing/Plumbing.csv"),
    ("toronto-registry", "all", "toronto-rentsafe/registrations_2026-08-22.csv.gz"),
)
MORE_CITIES = (
    ("new-york-buildings", "properties", "nyc-elevators/elevators_raw_every5th.csv.gz"),
    ("new-york-elevators", "assets", "nyc-elevators/elevators_raw_every5th.csv.gz"),
)
LINES = 110  # of each file


def test_the_examples_of_cities_have_the_counts_of_the_command_line(
    house: System, company: Company, browser: Browser, data: Path, tmp_path: Path
) -> None:
    by_command = house.company("Cities by command")
    for mapping, kind, name in (*CITIES, *(MORE_CITIES if is_whole() else ())):
        whole = (data / name).read_bytes()
        lines = (gzip.decompress(whole) if name.endswith(".gz") else whole).splitlines(keepends=True)[:LINES]
        file, rules = tmp_path / f"{mapping}.csv", EXAMPLES / f"{mapping}.toml"
        file.write_bytes(b"".join(lines))
        words = ("import", str(by_command.company_id), kind, str(file), "--mapping", str(rules))
        report = json.loads(house.run("--json", *words).stdout)

        browser.get("/imports/new")
        page = browser.upload("/imports/new", file.name, file.read_bytes())
        link = re.search(r'href="(/imports/\d+)"', page.text)
        assert link, page.words
        path = link[1]
        until(browser, path, "Match the columns")
        browser.upload(f"{path}/check", rules.name, rules.read_bytes(), field="mapping", **{"as": "toml"})
        until(browser, path, "All rows checked")
        browser.send(f"{path}/run")
        page = until(browser, path, "Import complete.")
        if kind == "all":
            kinds = [(kind["kind"], *(str(kind[count]) for count in COUNTS)) for kind in report["kinds"]]
            assert counts_of_kinds(page) == kinds, mapping
        else:
            assert report["read"] > 100, mapping
            assert {count: counts(page)[count] for count in COUNTS} == {count: report[count] for count in COUNTS}


def test_an_import_counts_each_row_once_however_it_is_killed(
    house: System, company: Company, browser: Browser, copies: Path
) -> None:
    """Its worker, its console and both, each between a commit of the catalog and its answer; then the catalog itself
    before a commit, which ends everything."""
    batches = 6
    whole = WHOLE | {"read": batches * BATCH, "created": batches * (BATCH - 1), "rejected": batches}
    path = checked(browser, sites(batches * BATCH))
    page = browser.get(path)
    assert counts(page) == whole and "Nothing has been imported yet" in page.words
    assert next(iter(company.walk("/properties")), None) is None

    strike = Path(house.settings["MAKEREADY_STRIKE_FILE"])
    strike.write_text("import-after-commit hold")
    browser.send(f"{path}/run")
    kept: list[Path] = []
    for kills_worker, kills_console in ((True, False), (False, True), (True, True)):
        catalog = held(house)
        worker = newest_worker(house)
        kept.append(Path(worker.cmdline()[-1], "sites.csv"))
        assert kept[-1].exists() and kept[-1].is_relative_to(copies)
        console = psutil.Process(house.runtime["processes"]["console"]["pid"])
        for process in [worker] * kills_worker + [console] * kills_console:
            process.kill()
        wait_until(functools.partial(has_ended, worker))
        if kills_console:
            catalog.resume()
            assert house.wait(60) != 0  # the runner ends when one of its processes does
            strike.write_text("import-after-commit hold")
            house.start()
        else:
            strike.write_text("import-after-commit hold")
            catalog.resume()
    held(house)
    strike.write_text("import-before-commit kill")
    psutil.Process(house.runtime["processes"]["svc-catalog"]["pid"]).resume()
    wait_until(lambda: not strike.exists())
    assert house.wait(60) != 0
    no_copy_is_left(copies)
    house.start()
    page = until(browser, path, "Import complete.")
    assert counts(page) == whole and not any(copy.exists() for copy in kept)
    assert sum(1 for _ in company.walk("/properties")) == batches * (BATCH - 1)
    no_copy_is_left(copies)

    lines = browser.get(f"{path}/rejects?kind=").text.splitlines()
    assert lines[0] == f"reject_line,reject_field,reject_reason,{HEADER}"
    assert [line.split(",")[0] for line in lines[1:]] == [str(n * BATCH + BAD + 2) for n in range(batches)]
    it_is_undone(house, company, browser, path, batches * (BATCH - 1))


def it_is_undone(house: System, company: Company, browser: Browser, path: str, records: int) -> None:
    """An undo says beforehand what it will do, and counts each record once, though its worker is killed between the
    catalog's commit and its answer. A record that is used stays, and all come back with their ids."""
    ids = {record["external_id"]: record["entity_id"] for record in company.walk("/properties")}
    key = company.key_for(30)
    following = house.get("/changes/properties", key, limit=200).json
    while following["next_cursor"]:
        following = house.get("/changes/properties", key, limit=200, cursor=following["next_cursor"]).json
    company.import_rows("tickets", [{"external_id": "T", "property": "P3", "title": "Lift", "category": "Elevator"}])
    browser.get(path)
    browser.send(f"{path}/check-undo")
    page = until(browser, path, "Nothing has been changed yet")
    assert undo_counts(page) == {"withdrawn": records - 1, "restored": 0, "kept": 1}
    assert "because tickets refer to them" in page.words
    strike = Path(house.settings["MAKEREADY_STRIKE_FILE"])
    strike.write_text("import-after-commit hold")
    browser.send(f"{path}/undo")
    catalog = held(house)
    worker = newest_worker(house)
    worker.kill()
    wait_until(functools.partial(has_ended, worker))
    catalog.resume()
    page = until(browser, path, "The import is undone.")
    assert undo_counts(page) == {"withdrawn": records - 1, "restored": 0, "kept": 1} and "P3" in page.words
    assert [record["external_id"] for record in company.walk("/properties")] == ["P3"]
    gone: set[int] = set()
    cursor = following["resume_cursor"]
    while cursor:
        page_of_changes = house.get("/changes/properties", key, limit=200, cursor=cursor).json
        gone |= {change["entity_id"] for change in page_of_changes["data"] if change["gone"]}
        cursor = page_of_changes["next_cursor"]
    assert gone == set(ids.values()) - {ids["P3"]}
    assert house.get(f"/properties/{ids['P4']}", key).status == 404
    path = checked(browser, sites(BATCH))
    browser.send(f"{path}/run")
    until(browser, path, "Import complete.")
    assert all(ids[record["external_id"]] == record["entity_id"] for record in company.walk("/properties"))


def uploaded(browser: Browser, file: Path) -> tuple[str, Page]:
    """The path and the page of an import whose file is read."""
    browser.get("/imports/new")
    page = browser.upload("/imports/new", file.name, file.read_bytes())
    link = re.search(r'href="(/imports/\d+)"', page.text)
    assert link, page.words
    return link[1], until(browser, link[1], "Match the columns")


def undo_counts(page: Page) -> dict[str, int]:
    return {name: number for name, number in counts(page).items() if name in ("withdrawn", "restored", "kept")}


def test_a_workbook_of_several_sheets_is_read_as_its_person_says(
    house: System, browser: Browser, company: Company, tmp_path: Path
) -> None:
    """Titles above the columns, a hidden sheet, dates of the file's own type in the company's timezone."""
    house.run("company", "update", str(company.company_id), "--timezone", "America/New_York")
    book = openpyxl.Workbook()
    cover = book.active
    assert cover is not None
    cover.title = "Cover"
    cover.append(["Exported by hand"])
    orders = book.create_sheet("Work orders")
    orders.append([])
    orders.append(["Work orders of June"])
    orders.merge_cells("A2:E2")
    orders.append(["Work Order #", "Property", "Problem", "Trade", "Reported"])
    orders.append(["W1", "B1", "Leak", "Plumbing", datetime.datetime(2026, 6, 1, 14, 30)])
    orders.append(["W2", "B1", "No heat", "HVAC", datetime.datetime(2026, 6, 2)])
    book.create_sheet("Old").sheet_state = "hidden"
    buildings = book.create_sheet("Buildings")
    for row in (
        ["Property Code", "Property Name", "Address 1"],
        *([f"B{n}", "Main Campus", "1 Elm St"] for n in range(6)),
    ):
        buildings.append(row)
    book.save(tmp_path / "export.xlsx")
    path, page = uploaded(browser, tmp_path / "export.xlsx")
    assert "Read now: Work orders" in page.words and "Detected: tickets" in page.words
    browser.send(f"{path}/sheet", sheet="Buildings")
    page = until(browser, path, "Read now: Buildings")
    chosen = {"external_id": "Property Code", "name": "Property Name", "address": "Address 1"}
    assert all(f'value="column:{column}" selected' in page.text for column in chosen.values())
    fields = {f"from.{field}": f"column:{column}" for field, column in chosen.items()}
    browser.send(f"{path}/check", kind="properties", **fields)
    page = until(browser, path, "All rows checked")
    assert "All 6 rows have the name “Main Campus”." in page.words and page.words.count("Main Campus") > 6
    browser.send(f"{path}/run")
    until(browser, path, "Import complete.")
    path, page = uploaded(browser, tmp_path / "export.xlsx")
    chosen = {"external_id": "Work Order #", "property": "Property", "title": "Problem", "category": "Trade"}
    fields = {f"from.{field}": f"column:{column}" for field, column in chosen.items()}
    dates = {"rule.created_at": "date", "detail.created_at": "%Y-%m-%dT%H:%M:%S\r\n%Y-%m-%d"}
    assert "%Y-%m-%dT%H:%M:%S" in page.text
    browser.send(f"{path}/check", kind="tickets", **fields, **dates, **{"from.created_at": "column:Reported"})
    page = until(browser, path, "All rows checked")
    browser.send(f"{path}/run")
    until(browser, path, "Import complete.")
    opened = {ticket["external_id"]: ticket["created_at"] for ticket in company.walk("/tickets")}
    assert opened == {"W1": "2026-06-01T18:30:00.000000Z", "W2": "2026-06-02T04:00:00.000000Z"}
    # The same again would change nothing, and no button says that it would.
    browser.get(f"{path}?step=columns")
    browser.send(f"{path}/check", kind="tickets", **fields, **dates, **{"from.created_at": "column:Reported"})
    page = until(browser, path, "Nothing would change")
    assert "Import 0" not in page.words and f'action="{path}/run"' not in page.text


def test_a_cancelled_import_says_what_it_stored_and_goes_on(house: System, company: Company, browser: Browser) -> None:
    path = checked(browser, sites(ROWS))
    strike = Path(house.settings["MAKEREADY_STRIKE_FILE"])
    strike.write_text("import-before-commit hold")
    browser.send(f"{path}/run")
    catalog = held(house)
    browser.get(path)
    assert "Cancelling after the current batch" in browser.send(f"{path}/cancel").words
    catalog.resume()
    page = until(browser, path, "Import cancelled.")
    assert BATCH - 1 <= counts(page)["created"] < CREATED
    browser.send(f"{path}/go-on")
    assert counts(until(browser, path, "Import complete."))["created"] == CREATED
