"""Answers of the contexts about one company: enough for every page to show each of its parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from makeready.common.v1 import audit_pb2 as audit_pb
from makeready.common.v1 import documents_pb2 as documents_pb
from makeready.identity.v1 import accounts_pb2 as accounts_pb
from makeready.identity.v1 import actors_pb2 as actors_pb
from makeready.identity.v1 import administrators_pb2 as administrators_pb
from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1 import key_usage_pb2 as usage_pb
from makeready.identity.v1 import requests_pb2 as requests_pb
from makeready.identity.v1 import sandbox_pb2 as sandbox_pb
from makeready.identity.v1 import sessions_pb2 as sessions_pb
from makeready.identity.v1 import staff_commands_pb2 as staff_pb
from makeready.tickets.v1 import pm_tasks_pb2 as pm_pb
from makeready.tickets.v1 import ticket_commands_pb2 as commands_pb
from makeready.tickets.v1 import ticket_views_pb2 as views_pb
from makeready.tickets.v1 import tickets_pb2 as tickets_pb

from . import samples_board
from .samples_deliveries import delivery_answers
from .samples_forgetting import answers as forgetting_answers
from .samples_places import place_answers
from .samples_reports import report_answers
from .samples_vendors import vendors_inspections_notices
from .samples_webhooks import webhook_answers
from .stubs import ago

HOSTILE = "\"><script>alert(1)</script>'{{7*7}}<img src=x onerror=alert(2)>"
"""Markup that a page must show as text."""


CODES = [f"{number:04}-abcd" for number in range(10)]


def keys() -> Sequence[pb.Key]:
    return [
        pb.Key(
            id=1,
            company_id=1,
            name="demo read",
            prefix="mk_hxSRPyzf",
            scope=pb.SCOPE_READ,
            created_at=ago(days=260),
            administrator_id=1,
            administrator_name="Dana Adler",
            administrator_email="dana@demo.example",
            administrator_active=True,
            last_used_at=ago(seconds=20),
            last_used_address="10.2.3.4",
            last_used_for="GET /tickets/{ticket_id}",
        ),
        pb.Key(
            id=2,
            company_id=1,
            name="Leasing sync",
            prefix="mk_Tq4nY0vK",
            scope=pb.SCOPE_WRITE,
            created_at=ago(days=3),
            administrator_id=2,
            administrator_name="Marguerite Okafor",
            administrator_active=True,
            expires_at=ago(days=-90),
        ),
        pb.Key(
            id=3,
            company_id=1,
            name=HOSTILE,
            prefix="mk_8SGkiKzA",
            scope=pb.SCOPE_WEBHOOK_ONLY,
            created_at=ago(days=40),
            last_used_at=ago(days=30),
            last_used_address=HOSTILE,
            last_used_for=HOSTILE,
        ),
        pb.Key(
            id=4,
            company_id=1,
            name="Leasing sync (old)",
            prefix="mk_old",
            scope=pb.SCOPE_READ,
            created_at=ago(days=400),
            revoked_at=ago(days=2),
        ),
        pb.Key(
            id=5,
            company_id=1,
            name="Meter readings",
            prefix="mk_left",
            scope=pb.SCOPE_WRITE,
            created_at=ago(days=100),
            administrator_id=3,
            administrator_name=HOSTILE,
            administrator_email=f"{HOSTILE}@x.example",
            administrator_active=False,
        ),
    ]


def of_company(request: Any, who: Identity) -> None:
    """As the gateway does: another company does not exist for an administrator."""
    if request.company_id != who.company_id or who.company_id != 1:
        raise Refusal(404, "not_found", "No company with that id is visible to you; check the id.")


def _list_keys(request: Any, who: Identity) -> Any:
    own_keys = keys() if who.company_id == 1 == request.company_id else []
    if request.HasField("administrator_id"):
        own_keys = [key for key in own_keys if key.administrator_id == request.administrator_id]
    return pb.ListKeysResponse(keys=own_keys)


def _get_key(request: Any, who: Identity) -> Any:
    for key in keys():
        if key.id == request.key_id and who.company_id == 1:
            return pb.GetKeyResponse(key=key)
    raise Refusal(404, "not_found", "No key with that id is visible to you; check the id.")


def _usage(request: Any, who: Identity) -> Any:
    hours = [
        usage_pb.KeyUsage(key_id=1, hour=ago(hours=place), succeeded=(place * 7) % 23 + 1, refused=place % 2, failed=0)
        for place in range(24)
    ]
    return usage_pb.ListKeyUsageResponse(hours=hours if who.company_id == 1 else [], counted_to=ago(hours=-1))


def _logged() -> list[Any]:
    return [
        requests_pb.LoggedRequest(
            id=2,
            requested_at=ago(minutes=39),
            key_id=2,
            method="PATCH",
            route="/tickets/{ticket_id}",
            status=422,
            code="invalid_request",
            request_id="5c1f0b8a5c1f0b8a5c1f0b8a",
            path="/tickets/102",
            message="A note of five or more words is needed to complete a ticket; send note.",
            field="note",
            milliseconds=8.4,
            bytes_in=31,
            bytes_out=120,
            address="203.0.113.9",
            user_agent="makeready-client/0.3",
            entity_type="ticket",
            entity_id=102,
        ),
        requests_pb.LoggedRequest(
            id=1,
            requested_at=ago(days=1),
            key_id=4,
            method="GET",
            route=HOSTILE,
            status=401,
            code=HOSTILE,
            request_id=HOSTILE,
            path=HOSTILE,
            query=HOSTILE,
            message=HOSTILE,
            field=HOSTILE,
            address=HOSTILE,
            user_agent=HOSTILE,
        ),
    ]


def _requests(request: Any, who: Identity) -> Any:
    return requests_pb.ListRequestsResponse(requests=_logged() if who.company_id == 1 else [])


def _request(request: Any, who: Identity) -> Any:
    for logged in _logged():
        if who.company_id == 1 and logged.request_id == request.request_id:
            return requests_pb.GetRequestResponse(request=logged)
    raise Refusal(404, "not_found", "No logged request has that id; check it.")


def _account(_request: Any, who: Identity) -> Any:
    return accounts_pb.GetAccountResponse(
        account=accounts_pb.Account(
            email="dana@demo.example", name="Dana Adler", has_password=True, password_changed_at=ago(days=30),
            totp_since=ago(days=20) if who.kind == "administrator" else None, recovery_codes_left=3,
            password_characters_min=10, passkeys=[
                accounts_pb.Passkey(passkey_id=1, name=HOSTILE, created_at=ago(days=9), last_used_at=ago(hours=2)),
                accounts_pb.Passkey(passkey_id=2, name="My phone", created_at=ago(days=1), synced=True),
            ]))  # fmt: skip


def _sessions(_request: Any, _who: Identity) -> Any:
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"
    return accounts_pb.ListSessionsResponse(sessions=[
        accounts_pb.ListedSession(session_id=1, started_at=ago(hours=1), last_seen_at=ago(seconds=1), method="passkey",
                                  ends_at=ago(hours=-23), address="10.2.3.4", user_agent=firefox, current=True),
        accounts_pb.ListedSession(session_id=2, started_at=ago(hours=9), last_seen_at=ago(hours=3), method="password",
                                  ends_at=ago(hours=-15), address="10.2.3.5", user_agent=HOSTILE),
    ])  # fmt: skip


COMPANY = pb.Company(id=1, name="Makeready Demo", active=True, timezone="America/New_York")


def _company(request: Any, who: Identity) -> Any:
    of_company(request, who)
    return pb.GetCompanyResponse(company=COMPANY)


def _sandboxes(_request: Any, who: Identity) -> Any:
    of_company_1 = {101: "Trial of the new sync", 102: "Second trial", 103: HOSTILE} if who.company_id != 2 else {}
    return pb.ListSandboxesResponse(sandboxes_max=5, sandboxes=[
        pb.Company(id=number, name=sandbox_name, active=number != 103, timezone="America/New_York",
                   created_at=ago(hours=number), is_sandbox=True, sandbox_of=1)
        for number, sandbox_name in of_company_1.items()
    ])  # fmt: skip


def _new_sandbox(request: Any, who: Identity) -> Any:
    company = pb.Company(id=104, name=request.name, is_sandbox=True, content=request.content)
    return pb.CreateCompanyResponse(company=company)


def administrators() -> Sequence[administrators_pb.Administrator]:
    return [
        administrators_pb.Administrator(administrator_id=1, name="Dana Adler", email="dana@demo.example", active=True,
                                        has_password=True, has_totp=True, passkeys=2, last_sign_in_at=ago(hours=1)),
        administrators_pb.Administrator(administrator_id=2, name="Marguerite Okafor", email="marguerite@demo.example",
                                        active=True),
        administrators_pb.Administrator(administrator_id=3, name=HOSTILE, email=f"{HOSTILE}@x.example", active=False),
    ]  # fmt: skip


def _administrators(_request: Any, who: Identity) -> Any:
    own_administrators = administrators() if who.company_id == 1 else []
    return administrators_pb.ListAdministratorsResponse(administrators=own_administrators)


def members() -> Sequence[staff_pb.Staff]:
    return [
        staff_pb.Staff(staff_id=7, name="Nguyễn Thị Hồng Hạnh", email="hanh@demo.example", active=True, invited=True,
                       title="Maintenance technician", external_id="S-7", created_at=ago(days=300), source="import",
                       last_sign_in_at=ago(hours=2)),
        staff_pb.Staff(staff_id=8, name="DeShawn Whitfield", email="deshawn@demo.example", active=True,
                       title="Superintendent", created_at=ago(days=200), source="staff"),
        staff_pb.Staff(staff_id=9, name=HOSTILE, title=HOSTILE, external_id=HOSTILE, active=True, source="import",
                       created_at=ago(days=100)),
        staff_pb.Staff(staff_id=10, name="José Luis Fernández", email="jose@demo.example", active=False,
                       created_at=ago(days=90), source="staff"),
    ]  # fmt: skip


def _has_words(member: staff_pb.Staff, words: str) -> bool:
    text = f"{member.name} {member.email} {member.external_id}".lower()
    return all(word.lower() in text for word in words.split())


def _staff(request: Any, who: Identity) -> Any:
    fitting = [
        member
        for member in members()
        if who.company_id == 1
        and (not request.HasField("active") or member.active == request.active)
        and _has_words(member, request.words)
    ]
    return staff_pb.ListStaffResponse(staff=fitting)


def _member(request: Any, who: Identity) -> Any:
    for member in members():
        if member.staff_id == request.staff_id and who.company_id == 1:
            return staff_pb.GetStaffResponse(staff=member)
    raise Refusal(404, "not_found", "The company has no member of staff with that id; check the id.")


LINK = sessions_pb.Link(purpose=sessions_pb.LINK_PURPOSE_INVITATION, url="http://localhost/invitations/abc",
                        email="new@demo.example", expires_at=ago(days=-7))  # fmt: skip


def entries() -> Sequence[audit_pb.AuditEntry]:
    values: Sequence[tuple[float, str, str, str, int, bytes, bytes]] = [
        (2, "administrator:1", "key.minted", "key", 2, b"", b'{"name": "Leasing sync", "scope": "write"}'),
        (90, "administrator:2", "company.updated", "company", 1, b'{"name": "Old"}', b'{"name": "Makeready Demo"}'),
        (300, "operator", "administrator.created", "administrator", 1, b"", b'{"a": 1, "b": 2, "c": 3, "d": 4}'),
        (3000, "administrator:1", HOSTILE, HOSTILE, 3, b"", json.dumps({HOSTILE: HOSTILE}).encode()),
        (4000, "caller:3", "ticket.created", "ticket", 3, b"[1]", b"not json"),
    ]
    return [
        audit_pb.AuditEntry(id=100 - place, recorded_at=ago(minutes=minutes), actor=actor, action=action,
                            subject=subject, subject_id=subject_id, before=before, after=after,
                            request_id="5c1f0b8a5c1f0b8a5c1f0b8a")
        for place, (minutes, actor, action, subject, subject_id, before, after) in enumerate(values)
    ]  # fmt: skip


def _audit(request: Any, who: Identity) -> Any:
    fitting = [entry for entry in entries() if not request.HasField("before_id") or entry.id < request.before_id]
    return audit_pb.ListAuditResponse(entries=fitting[: request.limit] if who.company_id == 1 else [])


def _actors(request: Any, who: Identity) -> Any:
    names = {
        "administrator:1": "Dana Adler",
        "administrator:2": "Marguerite Okafor",
        "caller:3": HOSTILE,
        "staff:7": "Nguyễn Thị Hồng Hạnh",
        "staff:8": "DeShawn Whitfield",
        "staff:9": HOSTILE,
    }
    actors = [
        actors_pb.NamedActor(actor=actor, name=names[actor], active=True) for actor in request.actors if actor in names
    ]
    actors += [
        actors_pb.NamedActor(
            actor=actor,
            name="Meter readings",
            active=True,
            administrator_name=HOSTILE,
            administrator_active=False,
        )
        for actor in ("caller:5", "api_key:5")
        if actor in request.actors
    ]
    return actors_pb.BatchGetActorsResponse(actors=actors if who.company_id == 1 else [])


def _link(request: Any, _who: Identity) -> Any:
    if request.link != "good-link":
        raise Refusal(404, "link_not_valid", "The link is not valid any more.")
    return sessions_pb.UseLinkResponse(
        purpose=sessions_pb.LINK_PURPOSE_INVITATION, name=HOSTILE, email="new@demo.example",
        company_name="Makeready Demo", password_characters_min=15)  # fmt: skip


LONG = "Cold in kitchen and bathroom since about six. The neighbour in 104 has hot water. Our son has asthma and the bathroom is freezing, so please call before you come."  # noqa: E501
THERMOCOUPLE = "Thermocouple is gone, pilot won't hold. Part is at Northeast Supply, back tomorrow at nine. Gave the family a fan heater for the bathroom."  # noqa: E501


def _ticket(ticket_id: int, title: str, **more: Any) -> views_pb.TicketSummary:
    usual: dict[str, Any] = {
        "ticket_number": ticket_id - 74, "category": "Plumbing", "priority": "High", "status": "Open", "property_id": 1,
        "property_name": "Alder Court", "created_at": ago(days=2), "updated_at": ago(days=1), "source": "staff",
    }  # fmt: skip
    return views_pb.TicketSummary(ticket_id=ticket_id, title=title, **usual | more)


def tickets() -> Sequence[views_pb.TicketSummary]:
    hanh = {"assignee_id": 7, "assignee_name": "Nguyễn Thị Hồng Hạnh", "status": "In Progress"}
    deshawn = {"assignee_id": 8, "assignee_name": "DeShawn Whitfield", "status": "In Progress"}
    vendor = {"vendor_id": 5, "vendor_name": "Müller Roofing", "source": "resident_portal"}
    return [
        _ticket(86, "No heat, furnace won't light", priority="Emergency", status="On Hold", created_at=ago(days=9),
                property_id=5, property_name="Willow Gardens", unit_id=44, unit_name="D-04", category="HVAC",
                assignee_id=9, assignee_name="José Luis Fernández", quiet_since=ago(days=4), stale_from=ago(days=1),
                is_stale=True, source="resident_portal"),
        _ticket(90, "Pool gate doesn't close by itself", created_at=ago(days=20), category="Pool"),
        _ticket(102, "No hot water since this morning", unit_id=15, unit_name="Alder Court 102", asset_id=21,
                asset_name="Water heater WH-102", quiet_since=ago(hours=48), stale_from=ago(hours=-24),
                external_id="RP-48213", unit_number="102", resident_asked=True, **hanh),
        _ticket(82, "卫生间天花板漏水,墙面起泡", property_id=6, property_name="桜コート Sakura Court", unit_id=51,
                unit_name="301号室"),
        _ticket(87, "דליפה מתחת לכיור במטבח", property_id=7, property_name="Harbor Point Townhomes", unit_id=61,
                unit_name="Townhome 2", created_at=ago(days=3)),
        _ticket(88, "Radiateur tiède malgré le réglage au maximum", property_id=8, category="HVAC", unit_id=71,
                property_name="Résidence du Vieux-Port", unit_name="Logement 1C", created_at=ago(days=7)),
        _ticket(100, "Elevator stops ten centimetres above the floor", created_at=ago(days=3), category="Elevator",
                **deshawn),
        _ticket(103, HOSTILE, ticket_number=None, unit_id=15, unit_name=HOSTILE, unit_number=HOSTILE, asset_id=3,
                asset_name=HOSTILE, assignee_id=9, assignee_name=HOSTILE, external_id=HOSTILE, priority="Medium",
                vendor_id=6, vendor_name=HOSTILE, vendor_on_hold=True, property_id=9, property_name=HOSTILE),
        _ticket(95, "Roof drain overflows onto the balcony", created_at=ago(days=9), unit_id=18, category="Roofing",
                unit_name="Alder Court 404", quiet_since=ago(days=9), stale_from=ago(days=6), is_stale=True, **vendor),
        _ticket(83, "Fob reader at the bike room rejects new fobs", priority="Low", category="Security",
                property_id=10, property_name="Meridian Tower", created_at=ago(hours=3), **deshawn),
    ]  # fmt: skip


def _closed() -> views_pb.TicketSummary:
    return _ticket(85, "Radiator cold at the top", status="Completed", closed_at=ago(days=300), unit_id=15)


def _search(request: Any, who: Identity) -> Any:
    fitting = list(tickets())
    if request.HasField("unit_id"):
        fitting = [ticket for ticket in fitting if ticket.unit_id == request.unit_id]
        fitting.append(_closed())
    if request.HasField("asset_id"):
        fitting = [ticket for ticket in fitting if ticket.asset_id == request.asset_id]
    if request.HasField("ticket_number"):
        fitting = [ticket for ticket in fitting if ticket.ticket_number == request.ticket_number]
    if request.HasField("external_id"):
        fitting = [ticket for ticket in fitting if ticket.external_id == request.external_id]
    if request.HasField("words"):
        fitting = [ticket for ticket in fitting if request.words.lower() in ticket.title.lower()]
    if request.HasField("assignee_id"):
        fitting = [ticket for ticket in fitting if ticket.assignee_id == request.assignee_id]
    if who.company_id != 1:
        fitting = []
    fitting = fitting[: request.limit or 50]
    more: dict[str, Any] = {"next": "7.9"} if fitting and not request.HasField("after") and len(fitting) > 5 else {}
    return views_pb.SearchTicketsResponse(tickets=fitting, **more)


def _count(_request: Any, who: Identity) -> Any:
    if who.company_id != 1:
        return views_pb.CountTicketsResponse(stale_after_hours=72)
    counts = views_pb.CountTicketsResponse(
        open=74, stale=9, soon_stale=3, unassigned=20, urgent_unassigned=12, emergencies=1, stale_after_hours=72
    )
    ages = (
        ("under a day", 2, 0, 24),
        ("1 to 3 days", 14, 24, 72),
        ("3 to 7 days", 21, 72, 168),
        ("1 to 2 weeks", 19, 168, 336),
        ("2 to 4 weeks", 13, 336, 672),
        ("older", 5, 672, 0),
    )
    for name, number, first, last in ages:
        counts.by_age.add(
            name=name, tickets=number, hours_from=first, hours_to=last, on_hold=3 if name == "older" else 0
        )
    for record_id, name, number in (
        (7, "Nguyễn Thị Hồng Hạnh", 6),
        (8, "DeShawn Whitfield", 5),
        (9, HOSTILE, 1),
        (0, "", 20),
    ):
        counts.by_assignee.add(id=record_id, name=name, tickets=number, stale=1)
    for record_id, name in ((4, "Alder Court"), (5, "Willow Gardens"), (9, HOSTILE)):
        counts.by_property.add(id=record_id, name=name, tickets=20)
    return counts  # fmt: skip


def _details(request: Any, who: Identity) -> Any:
    own_tickets = [*tickets(), _closed(), _ticket(3, "Fence leans", ticket_number=1)] if who.company_id == 1 else []
    ticket = next((other for other in own_tickets if other.ticket_id == request.ticket_id), None)
    if ticket is None:
        raise Refusal(404, "not_found", "The company has no ticket with that id; check the id.")
    hostile = request.ticket_id == 103
    heater = "javascript:alert(3)" if hostile else "https://photos.example/heater.jpg"
    thermocouple = f"https://photos.example/{HOSTILE}" if hostile else "https://photos.example/thermocouple.jpg"
    photos = [
        views_pb.TicketPhoto(photo_url=heater, added_at=ago(hours=60), is_shown=True),
        views_pb.TicketPhoto(photo_url=thermocouple, added_at=ago(hours=46), author="staff", actor="staff:7"),
    ]
    return views_pb.GetTicketDetailsResponse(
        photos=photos,
        ticket=ticket, description=HOSTILE if hostile else LONG, room=HOSTILE if hostile else "Mechanical closet",
        permission_to_enter=True, preferred_access_time=HOSTILE if hostile else "weekdays after 5 pm",
        photo_url=heater, other_tickets_of_asset=2,
        photo_required=True, inspection_id=12 if hostile else None, inspection_row_id=3 if hostile else None,
        subcategory=HOSTILE if hostile else None, room_instance=HOSTILE if hostile else None)  # fmt: skip


def _timeline(request: Any, who: Identity) -> Any:
    entry: Any = views_pb.TimelineEntry
    if who.company_id != 1:
        raise Refusal(404, "not_found", "The company has no ticket with that id; check the id.")
    rows = [
        entry(
            kind=2,
            occurred_at=ago(hours=20),
            actor="administrator:2",
            author="resident",
            text="Nobody came this morning. When?",
        ),
        entry(
            kind=3,
            occurred_at=ago(hours=46),
            actor="staff:7",
            author="staff",
            text="https://photos.example/thermocouple.jpg",
        ),
        entry(kind=2, occurred_at=ago(hours=47), actor="staff:7", author="staff", text=THERMOCOUPLE),
        entry(kind=4, occurred_at=ago(hours=48), actor="staff:7", from_status="Open", to_status="In Progress"),
        entry(
            kind=5,
            occurred_at=ago(hours=54),
            actor="staff:8",
            changes=[views_pb.TimelineChange(field="assignee", after="Nguyễn Thị Hồng Hạnh")],
        ),
        entry(kind=1, occurred_at=ago(hours=55), source="staff", author="resident", actor="staff:8"),
    ]
    if request.ticket_id == 103:
        rows = [
            entry(kind=3, occurred_at=ago(hours=1), actor="caller:3", author="vendor", text="javascript:alert(4)"),
            entry(kind=2, occurred_at=ago(hours=2), actor="staff:9", author="vendor", text=HOSTILE),
            entry(
                kind=4,
                occurred_at=ago(hours=3),
                actor="caller:3",
                from_status="Open",
                to_status="Cancelled",
                cancellation_reason_code="see_notes",
                text=HOSTILE,
            ),
            entry(
                kind=5,
                occurred_at=ago(hours=4),
                actor="operator",
                changes=[views_pb.TimelineChange(field=HOSTILE, before=HOSTILE, after=HOSTILE)],
            ),
            entry(kind=1, occurred_at=ago(hours=5), source="api", actor="administrator:1"),
        ]
    fitting = [row for row in rows if not request.kinds or row.kind in request.kinds]
    return views_pb.ListTicketTimelineResponse(entries=fitting, next="1.1.1" if not request.after else None)


def _several(request: Any, who: Identity) -> Any:
    own_tickets = {ticket.ticket_id: ticket for ticket in (*tickets(), _closed())} if who.company_id == 1 else {}
    return views_pb.BatchGetTicketsResponse(
        tickets=[own_tickets[ticket_id] for ticket_id in request.ticket_ids if ticket_id in own_tickets]
    )


def _place(request: Any, who: Identity) -> Any:
    if who.company_id != 1:
        raise Refusal(404, "not_found", "The company has no such place; check the ids.")
    return views_pb.GetTicketPlaceResponse(
        property_id=1, property_name="Alder Court", unit_id=request.unit_id or None, asset_id=request.asset_id or None
    )


def _opened(_request: Any, _who: Identity) -> Any:
    return commands_pb.OpenTicketResponse(document=documents_pb.Document(entity_id=102, version=1))


def _of_inspection(_request: Any, who: Identity) -> Any:
    rows = [views_pb.TicketOfRow(row_id=3, ticket=ticket) for ticket in tickets()[:2]] if who.company_id == 1 else []
    return views_pb.ListTicketsOfInspectionResponse(tickets=rows)


def pm_tasks() -> Sequence[pm_pb.PmTask]:
    def task(pm_task_id: int, task_name: str, due_date: str, **more: Any) -> pm_pb.PmTask:
        usual: dict[str, Any] = {
            "property": "Alder Court",
            "unit": "Whole property",
            "property_id": 1,
            "status": "Open",
        }
        return pm_pb.PmTask(pm_task_id=pm_task_id, task_name=task_name, due_date=due_date, created_at=ago(days=90),
                            updated_at=ago(days=9), source="staff", **usual | more)  # fmt: skip

    return [
        task(30, "Replace the filters of the air handlers", "2026-11-18", repeat_months=3, unit="Roof", area="Roof",
             stale_at=ago(days=3)),
        task(31, "Test the fire alarm", "2026-11-23", repeat_months=1, previous_pm_task_id=28, asset_id=21),
        task(32, HOSTILE, "2026-11-26", property=HOSTILE, unit=HOSTILE, unit_id=15, external_id=HOSTILE, area=None),
        task(33, "Clean the gutters", "2027-03-01", repeat_days=180, property="Willow Gardens", property_id=5),
    ]  # fmt: skip


def _list_tasks(_request: Any, who: Identity) -> Any:
    return pm_pb.ListPmTasksResponse(tasks=pm_tasks() if who.company_id == 1 else [])


def _task(request: Any, who: Identity) -> Any:
    pm_task_id_of_sample = 31 if request.pm_task_id in (4, 27, 28) else request.pm_task_id
    pm_task = next(
        (other for other in pm_tasks() if other.pm_task_id == pm_task_id_of_sample and who.company_id == 1), None
    )
    if pm_task is None:
        raise Refusal(404, "not_found", "The company has no preventive-maintenance task with that id.")
    earlier = []
    for pm_task_id, due, days in ((27, "2026-09-23", 61), (28, "2026-10-23", 30)):
        past = pm_pb.PmTask(status="Completed", completed_at=ago(days=days), due_date=due, pm_task_id=pm_task_id)
        copy = pm_pb.PmTask()
        copy.CopyFrom(pm_task)
        copy.MergeFrom(past)
        earlier.append(copy)
    of_asset = "Fire panel FP-1" if request.pm_task_id != 32 else None
    return pm_pb.GetPmTaskResponse(task=pm_task, earlier=earlier if pm_task.repeat_months else [], asset_name=of_asset)


def _changed_task(request: Any, who: Identity) -> Any:
    """The task of the request, which completing has given a successor."""
    task = _task(request, who).task
    if isinstance(request, pm_pb.CompletePmTaskRequest):
        task.next_pm_task_id = 33
        return pm_pb.CompletePmTaskResponse(task=task)
    return pm_pb.CancelPmTaskResponse(task=task)


def _count_tasks(_request: Any, who: Identity) -> Any:
    if who.company_id != 1:
        return pm_pb.CountPmTasksResponse(today="2026-11-22")
    return pm_pb.CountPmTasksResponse(today="2026-11-22", overdue=1, this_week=2, later=1, next=pm_tasks()[1])


def clock(**values: Any) -> Any:
    """The answer about a clock that has been advanced by a day; `values` are fields of it."""
    fields = {
        "now": "2026-11-20T17:20:02.114901Z",
        "status": "ready",
        "start": "2026-11-19T17:20:02.114901Z",
        "target": "2026-11-20T17:20:02.114901Z",
        "done": {"inspection.stale": 1, "ticket.stale": 3, "delivery.failed": 2},
        "waiting": None,
        "next_due": {"at": "2026-11-20T19:02:11.500000Z", "event": "ticket.stale"},
    }
    return sandbox_pb.GetSandboxClockResponse(
        document=documents_pb.Document(json=json.dumps(fields | values).encode(), entity_id=101)
    )


def _clock(_request: Any, _who: Identity) -> Any:
    return clock()


def sample_answers() -> dict[str, Any]:
    return {
        **samples_board.answers(HOSTILE),
        **delivery_answers(),
        **webhook_answers(),
        **vendors_inspections_notices(),
        "identity.KeysService/ListKeys": _list_keys,
        "identity.KeysService/GetKey": _get_key,
        "identity.KeysService/MintKey": pb.MintKeyResponse(
            key_id=5, key="mk_Tq4nY0vKc8WZr1uJmE5xPp7bLs2hGfA9dDiXo3kVwNe"
        ),
        "identity.AccountsService/GetAccount": _account,
        "identity.AccountsService/ListSessions": _sessions,
        "identity.AccountsService/StartAddingPasskey": accounts_pb.StartAddingPasskeyResponse(
            ceremony="ceremony-2", options_json="{}"
        ),
        "identity.AccountsService/EnrolTotp": accounts_pb.EnrolTotpResponse(
            secret="JBSWY3DPEHPK3PXP", uri="otpauth://totp/Makeready:dana%40demo.example?secret=JBSWY3DPEHPK3PXP"
        ),
        "identity.AccountsService/ConfirmTotp": accounts_pb.ConfirmTotpResponse(recovery_codes=CODES),
        "identity.AccountsService/MakeRecoveryCodes": accounts_pb.MakeRecoveryCodesResponse(recovery_codes=CODES),
        "identity.CompaniesService/GetCompany": _company,
        "identity.CompaniesService/ListSandboxes": _sandboxes,
        "identity.CompaniesService/CreateCompany": _new_sandbox,
        "identity.SandboxClockService/GetSandboxClock": _clock,
        "identity.SandboxClockService/AdvanceSandboxClock": sandbox_pb.AdvanceSandboxClockResponse(),
        "identity.AdministratorsService/ListAdministrators": _administrators,
        "identity.AdministratorsService/InviteAdministrator": administrators_pb.InviteAdministratorResponse(
            administrator=administrators()[1], link=LINK
        ),
        "identity.AdministratorsService/MakeLink": administrators_pb.MakeLinkResponse(link=LINK),
        "identity.StaffCommandsService/ListStaff": _staff,
        "identity.StaffCommandsService/GetStaff": _member,
        "identity.StaffCommandsService/InviteStaff": staff_pb.InviteStaffResponse(link=LINK),
        "identity.ActorsService/BatchGetActors": _actors,
        "identity.SessionsService/UseLink": _link,
        "gateway common.AuditService/ListAudit": _audit,
        "tickets.TicketViewsService/SearchTickets": _search,
        "tickets.TicketViewsService/CountTickets": _count,
        "tickets.TicketViewsService/GetTicketDetails": _details,
        "tickets.TicketViewsService/ListTicketTimeline": _timeline,
        "tickets.TicketViewsService/BatchGetTickets": _several,
        "tickets.TicketViewsService/GetTicketPlace": _place,
        "tickets.TicketCommandsService/OpenTicket": _opened,
        "tickets.TicketViewsService/ListTicketsOfInspection": _of_inspection,
        "tickets.PmTasksService/ListPmTasks": _list_tasks,
        "tickets.PmTasksService/GetPmTask": _task,
        "tickets.PmTasksService/CountPmTasks": _count_tasks,
        "tickets.PmTasksService/AddPmTask": pm_pb.AddPmTaskResponse(task=pm_tasks()[1]),
        "tickets.PmTasksService/UpdatePmTask": pm_pb.UpdatePmTaskResponse(task=pm_tasks()[1]),
        "tickets.PmTasksService/CompletePmTask": _changed_task,
        "tickets.PmTasksService/CancelPmTask": _changed_task,
        "tickets.TicketsService/GetTicketPolicy": tickets_pb.GetTicketPolicyResponse(stale_after_hours=72),
        "identity.KeyUsageService/ListKeyUsage": _usage,
        "identity.RequestLogService/ListRequests": _requests,
        "identity.RequestLogService/GetRequest": _request,
        **place_answers(HOSTILE),
        **forgetting_answers(HOSTILE),
        **report_answers(),
    }
