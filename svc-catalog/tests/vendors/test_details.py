"""People's lists of vendors: by words in any script, hold, compliance and the end of the insurance."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, STAFF, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import vendor_commands_pb2 as commands_pb
from makeready.catalog.v1 import vendor_details_pb2 as pb
from makeready.events.v1.events_pb2 import CompanyReference, References
from svc_catalog import consumers
from testkit.clocks import today

from ..overdue_companies import compliance

RPCS = [rpc.name for rpc in pb.DESCRIPTOR.services_by_name["VendorDetailsService"].methods]


def day(number: int) -> str:
    return str(today() + datetime.timedelta(days=number))


async def names_of(company: Any, **filters: Any) -> list[str]:
    """The names of all pages, in their order, three a page."""
    names: list[str] = []
    after: str | None = None
    while True:
        answer = await company.command(pb, "SearchVendors", limit=3, after=after, **filters)
        names += [vendor.name for vendor in answer.vendors]
        if not answer.HasField("next"):
            return names
        assert len(answer.vendors) == 3
        after = answer.next


async def put(company: Any, *names: str, **values: Any) -> None:
    rows = [{"external_id": f"V-{name}", "name": name, **values} for name in names]
    assert set(await company.put("vendors", *rows)) == {"created"}


NAMES = (
    "Müller & Söhne Roofing",
    "漏水管理株式会社",
    "Công ty Điện Nước",
    "ЙОГУРТ Сантехника",
    "האחים כהן",
    "ช่างประปา",
    "O’Brien's “Plumbing” 24/7",
)


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("muller", [0]),
        ("SÖHNE mül", [0]),
        ("漏水", [1]),
        ("管理", [1]),
        ("漏理", []),
        ("dien nuoc", [2]),
        ("йогурт САНТЕХ", [3]),
        ("כהן", [4]),
        ("ประปา", [5]),
        ("obrien", []),
        ("o'brien plumb", [6]),
        ("24/7", [6]),
        ("24 muller", []),
        ("V-ЙОГУРТ", [3]),
        ("%", []),
        ("' & ( | ! : * \\", []),
        ("x" * 200, []),
    ],
)
async def test_words_find_names_in_any_script(named_vendors: Any, words: str, places: Sequence[int]) -> None:
    assert await names_of(named_vendors, words=words) == [NAMES[place] for place in places]


@pytest.fixture(scope="module")
async def named_vendors(new_company: Any) -> Any:
    company, other = new_company(), new_company()
    for owner in (company, other):
        await put(owner, *NAMES)
    return company


async def test_a_legal_name_is_found_too_and_longest_names_are_stored(company: Any) -> None:
    await put(company, "Ace", legal_name="Universal Heating Inc.")
    longest = {"external_id": "L", "name": "ﷺ" * 200, "legal_name": "漢" * 200}
    assert await company.put("vendors", longest) == ["created"]
    assert await names_of(company, words="heat univ") == ["Ace"]
    assert await names_of(company, words="漢漢") == ["ﷺ" * 200]
    assert (await company.command(pb, "SearchVendors", external_id="V-Ace")).vendors[0].name == "Ace"
    assert not (await company.command(pb, "SearchVendors", external_id="V-Ace", on_hold=True)).vendors


async def test_filters_combine_and_the_order_is_by_age_or_by_the_end_of_the_insurance(company: Any) -> None:
    await put(company, "A1", insurance_expires_on=day(10))
    await put(company, "A2", insurance_expires_on=day(-5))
    await put(company, "A3", insurance_expires_on="")
    await put(company, "A4", is_active="no")
    await put(company, "A5", insurance_expires_on=day(400), last_compliance_state="compliant")
    ids = {vendor.name: vendor.vendor_id for vendor in (await company.command(pb, "SearchVendors")).vendors}
    await company.command(commands_pb, "HoldVendor", vendor_id=ids["A5"], reason="Dug up the wrong pipe")
    everything = ["A5", "A4", "A3", "A2", "A1"]
    assert await names_of(company) == everything
    assert await names_of(company, order=pb.VENDOR_ORDER_INSURANCE) == ["A2", "A1", "A5", "A3", "A4"]
    assert await names_of(company, is_active=True) == ["A5", "A3", "A2", "A1"]
    assert await names_of(company, on_hold=True) == ["A5", "A2"]
    assert await names_of(company, on_hold=True, state=[pb.COMPLIANCE_STATE_COMPLIANT]) == ["A5"]
    assert await names_of(company, insured_until=day(30)) == ["A2", "A1"]
    assert await names_of(company, insured_from=day(0)) == ["A1", "A5"]
    assert await names_of(company, insured_from=day(0), insured_until=day(30), words="a") == ["A1"]
    assert await names_of(company, words="a") == everything
    assert await names_of(company, words="a", order=pb.VENDOR_ORDER_INSURANCE, is_active=False) == ["A4"]
    counts = await company.command(pb, "CountVendors")
    assert (counts.active, counts.on_hold, counts.lapsed, counts.ending) == (4, 2, 1, 1)
    assert (await company.command(pb, "CountVendors", days=500)).ending == 2


async def test_a_page_has_no_gap_and_no_double_while_vendors_come(company: Any) -> None:
    await put(company, "A1", "A2", "A3", "A4")
    first = await company.command(pb, "SearchVendors", limit=2)
    await put(company, "A5")
    second = await company.command(pb, "SearchVendors", limit=2, after=first.next)
    assert [vendor.name for vendor in (*first.vendors, *second.vendors)] == ["A4", "A3", "A2", "A1"]
    assert not second.HasField("next")


@pytest.mark.parametrize("by", ["administrator", "clock", "file"])
async def test_details_say_why_since_when_and_by_whom_a_vendor_is_on_hold(
    company: Any, database: Database, by: str
) -> None:
    lapsed = {"insurance_expires_on": day(-1)} if by != "administrator" else {}
    row = {"external_id": "V", "name": "Ace", "website": "https://ace.example", **lapsed}
    assert await company.put("vendors", row, events=by == "clock") == ["created"]
    (vendor,) = (await company.command(pb, "SearchVendors")).vendors
    assert not vendor.HasField("held_at") or by == "file"
    if by == "administrator":
        who = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=7)
        await company.command(commands_pb, "HoldVendor", who, vendor_id=vendor.vendor_id, reason="Late again")
    elif by == "clock":
        async with database.transaction() as connection:
            house = CompanyReference(id=company.id, version=1, name="C", active=True, timezone="UTC")
            await consumers.put_references(connection, [References(companies=[house])])
        await compliance(database).sweep(datetime.datetime.now(datetime.UTC))
    answer = await company.command(pb, "GetVendorDetails", vendor_id=vendor.vendor_id)
    reason = "Late again" if by == "administrator" else "insurance_lapsed"
    assert (answer.vendor.on_hold, answer.vendor.hold_reason) == (True, reason)
    assert answer.vendor.held_at.seconds > 0
    assert answer.held_by == {"administrator": "administrator:7", "clock": "svc-catalog", "file": ""}[by]
    assert (answer.vendor.external_id, answer.vendor.website) == ("V", "https://ace.example")
    assert answer.vendor.url == f"https://app.test/vendors/{vendor.vendor_id}"
    await company.command(commands_pb, "ReleaseVendor", vendor_id=vendor.vendor_id)
    answer = await company.command(pb, "GetVendorDetails", vendor_id=vendor.vendor_id)
    assert not answer.vendor.on_hold and not answer.vendor.HasField("held_at") and not answer.HasField("held_by")


@pytest.mark.parametrize(
    "values",
    [
        {"limit": 0},
        {"limit": 201},
        {"words": "x" * 201},
        {"words": "\0"},
        {"state": [9]},
        {"order": 7},
        {"insured_until": "2026-2-1"},
        {"insured_from": "2026-02-02", "insured_until": "2026-02-01"},
        {"after": "x"},
        {"after": "2026-01-01.-1"},
        {"external_id": "V", "words": "x"},
    ],
)
async def test_a_request_that_cannot_be_read_is_refused(company: Any, values: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        await company.command(pb, "SearchVendors", **values)
    assert refused.value.status == 400 and refused.value.field in values


async def test_no_company_sees_anothers(company: Any, other: Any) -> None:
    await put(other, "Ace", insurance_expires_on=day(-5))
    ((theirs),) = (await other.command(pb, "SearchVendors")).vendors
    for filters in ({}, {"words": "ace"}, {"order": pb.VENDOR_ORDER_INSURANCE}, {"external_id": "V-Ace"}):
        assert not (await company.command(pb, "SearchVendors", **filters)).vendors
    assert (await company.command(pb, "CountVendors")) == pb.CountVendorsResponse()
    refusals = []
    for vendor_id in (theirs.vendor_id, 2**62):
        with pytest.raises(Refusal) as refused:
            await company.command(pb, "GetVendorDetails", vendor_id=vendor_id)
        refusals.append(vars(refused.value))
    assert refusals[0] == refusals[1] and refusals[0]["status"] == 404


@pytest.mark.parametrize("kind", [INTEGRATION, SERVICE, OPERATOR, STAFF, ADMINISTRATOR])
@pytest.mark.parametrize("rpc", RPCS)
async def test_people_alone_may(company: Any, rpc: str, kind: str) -> None:
    may = kind in (OPERATOR, STAFF, ADMINISTRATOR)
    assert await company.status_for(pb, rpc, kind) in ({200, 404} if may else {None})
