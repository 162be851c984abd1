"""Every RPC that people may call has a page, or a line that says why it has none."""

from __future__ import annotations

from chassis.auth.rpcs import services_of
from console.kit.browser_session import PEOPLE
from console.pages import PAGES
from makeready.common.v1 import options_pb2

CONTEXTS = ("identity", "common", "tickets", "catalog", "occupancy", "webhooks")
KINDS = {options_pb2.KIND_ADMINISTRATOR: "administrator", options_pb2.KIND_STAFF: "staff"}

_BY_PLACE_SEARCH = "PlaceSearchService finds the same records, by words and filters, with what a row shows"
WITHOUT_A_PAGE = {
    "tickets.TicketCommandsService/ListTicketComments": "ListTicketTimeline has the comments among all that happened",
    "tickets.TicketsService/ListTicketHistory": "ListTicketTimeline has the changes of status among all that happened",
    "catalog.PropertiesService/ListProperties": _BY_PLACE_SEARCH,
    "catalog.UnitsService/ListUnits": _BY_PLACE_SEARCH,
    "catalog.AssetsService/ListAssets": _BY_PLACE_SEARCH,
    "catalog.MetersService/ListMeters": "SearchMeters finds them, with the last reading",
    "catalog.VendorCommandsService/ListVendorHolds": "GetVendorDetails and SearchVendors have the holds",
    "webhooks.SubscriptionsService/ListSubscriptions": "ListSubscriptionDetails has them, with how they do",
    "webhooks.DeliveriesService/CountUndelivered": "CountDeliveries counts each state",
    "webhooks.AdministrationService/ListUndelivered": "ListDeliveries has them, by state",
}


def rpcs() -> dict[str, set[str]]:
    """The kinds of people that may call each RPC, by its name as pages.py spells it."""
    return {
        f"{context}.{service}/{method.name}": {
            KINDS[kind] for kind in method.GetOptions().Extensions[options_pb2.allowed] if kind in KINDS
        }
        for context in CONTEXTS
        for service, descriptor in services_of(f"makeready.{context}.v1").items()
        for method in descriptor.methods
    }


def test_every_rpc_that_people_may_call_has_a_page_or_a_reason() -> None:
    for_people = {rpc for rpc, kinds in rpcs().items() if kinds}
    with_page = {rpc for page in PAGES for rpc in page.rpcs}
    assert for_people - with_page == WITHOUT_A_PAGE.keys()
    assert all(WITHOUT_A_PAGE.values())


def test_who_may_do_an_act_may_call_all_its_rpcs() -> None:
    allowed = rpcs()
    for page in PAGES:
        for rpc in page.rpcs:
            assert allowed[rpc] & page.kinds, f"{page.method} {page.path} calls {rpc}, which none of its people may"
            assert page.method == "GET" or allowed[rpc] >= page.kinds & PEOPLE, f"{page.path}: {rpc}"
