"""The interface at a glance: one line a page. Menus, permissions, 404 and 405, and the walks of the tests come from it.

A `POST` is an action; its page is that of the same area. A page calls only the RPCs of its line. The lines of an area
stand together. `kit.context.MENU` has the order of the menu.
"""

from __future__ import annotations

from console.areas.account import pages as account
from console.areas.board import actions as board_actions
from console.areas.board import bulk as task_bulk
from console.areas.board import endings, forgetting, notices_and_move_ins, ordering, residents, turn_templates
from console.areas.board import pages as board
from console.areas.clock import pages as clock
from console.areas.company import audit, sandboxes
from console.areas.company import people as administrators
from console.areas.company import settings as company
from console.areas.entry import pages as entry
from console.areas.events import pages as events
from console.areas.home import pages as home
from console.areas.imports import pages as imports
from console.areas.inspections import actions as inspection_actions
from console.areas.inspections import bulk as inspection_bulk
from console.areas.inspections import pages as inspections
from console.areas.inspections import row_photos, walking
from console.areas.inspections import template_pages as inspection_templates
from console.areas.keys import pages as keys
from console.areas.meters import forms as meter_forms
from console.areas.meters import pages as meters
from console.areas.notices import composing
from console.areas.notices import pages as notices
from console.areas.people import forms as people_forms
from console.areas.people import pages as people
from console.areas.people import picking as people_picking
from console.areas.places import assets, order, places, properties, units
from console.areas.places import forms as place_forms
from console.areas.places import picking as places_picking
from console.areas.reports import integrations
from console.areas.reports import measures as report_measures
from console.areas.reports import pages as reports
from console.areas.requests import pages as requests
from console.areas.search import pages as search
from console.areas.tickets import actions as ticket_actions
from console.areas.tickets import bulk as ticket_bulk
from console.areas.tickets import opening, work_order
from console.areas.tickets import pages as tickets
from console.areas.tickets import photos as ticket_photos
from console.areas.tickets import texts as ticket_texts
from console.areas.upkeep import actions as upkeep_actions
from console.areas.upkeep import pages as upkeep
from console.areas.vendors import actions as vendor_actions
from console.areas.vendors import pages as vendors
from console.areas.vendors import picking as vendors_picking
from console.areas.views import pages as views
from console.areas.webhooks import actions as webhook_actions
from console.areas.webhooks import deliveries, endpoint
from console.areas.webhooks import pages as webhooks
from console.areas.work import pages as work
from console.kit import photos
from console.kit.browser_session import ADMINISTRATORS, EVERYBODY, NOBODY, PEOPLE, STAFF
from console.kit.bulk import Records
from console.kit.context import Page

STRANGERS, STAFF_ALONE = frozenset({NOBODY}), frozenset({STAFF})
MAINTENANCE, PORTFOLIO, INTEGRATIONS, COMPANY = "Maintenance", "Portfolio", "Integrations", "Company"


def bulk(records: Records, *rpcs: str) -> tuple[Page, ...]:
    """The pages of a list's bulk acts, for people. rpcs: what reads the records."""
    return (
        Page("GET", records.path, records.show, PEOPLE, rpcs),
        Page("POST", records.path, records.run, PEOPLE, (*records.rpcs, *rpcs)),
        Page("POST", records.undo_path, records.undo, PEOPLE, (*records.rpcs, *rpcs)),
    )


PAGES = (
    Page("GET", "/sign-in", entry.show_sign_in, STRANGERS),
    Page("POST", "/sign-in", entry.sign_in, STRANGERS),
    Page("POST", "/sign-in/code", entry.second_factor, STRANGERS),
    Page("POST", "/sign-in/passkey/start", entry.start_passkey, STRANGERS),
    Page("POST", "/sign-in/passkey", entry.finish_passkey, STRANGERS),
    Page("GET", "/invitations/{link}", entry.show_link, EVERYBODY, due=True),
    Page("POST", "/invitations/{link}", entry.use_link, EVERYBODY, due=True),
    Page("GET", "/reset/{link}", entry.show_link, EVERYBODY, due=True),
    Page("POST", "/reset/{link}", entry.use_link, EVERYBODY, due=True),
    Page("POST", "/sign-out", entry.sign_out, EVERYBODY, due=True),
    Page("POST", "/confirm/passkey", entry.start_passkey, PEOPLE, due=True, is_secret=True),
    Page("GET", "/", home.home, PEOPLE, menu=("", home.HERE, "home"), on_device=True),
    Page("POST", home.DISMISS_PATH, home.dismiss, ADMINISTRATORS),
    # saved views
    Page("POST", "/views", views.save, PEOPLE),
    Page("GET", "/views/{view_id}", views.show, PEOPLE),
    Page("POST", "/views/{view_id}", views.change, PEOPLE),
    # work
    Page("GET", work.PATH, work.show, PEOPLE, menu=("", work.HERE, "check"), on_device=True),
    # search
    Page("GET", search.PATH, search.search, PEOPLE),
    Page("POST", search.PATH, search.send, PEOPLE),
    # Maintenance
    # tickets
    Page("GET", tickets.PATH, tickets.list_tickets, PEOPLE, tickets.LISTS, menu=(MAINTENANCE, tickets.HERE, "ticket"),
         views=True, on_device=True),
    Page("GET", "/tickets/new", opening.show_new, PEOPLE, (opening.PLACE, opening.SEARCH)),
    Page("POST", "/tickets/new", opening.open_ticket, PEOPLE, (opening.OPEN, opening.PLACE, opening.SEARCH)),
    Page("GET", opening.ALIKE_PATH, opening.alike, PEOPLE, (opening.SEARCH,), panel="Tickets"),
    *bulk(ticket_bulk.RECORDS, ticket_bulk.SEVERAL),
    Page("GET", "/tickets/{ticket_id}", tickets.show_ticket, PEOPLE, tickets.SHOWS, on_device=True),
    Page("GET", "/tickets/work-orders", work_order.show_several, PEOPLE, work_order.SHOWS),
    Page("GET", "/tickets/{ticket_id}/work-order", work_order.show, PEOPLE, work_order.SHOWS),
    Page("POST", "/tickets/{ticket_id}/comment", tickets.comment, PEOPLE, (ticket_actions.COMMENT, *tickets.SHOWS),
         on_device=True),
    Page("POST", "/tickets/{ticket_id}/status", tickets.move, PEOPLE, (ticket_actions.STATUS, *tickets.SHOWS),
         on_device=True),
    Page("POST", "/tickets/{ticket_id}/take", ticket_actions.take, STAFF_ALONE, (ticket_actions.ASSIGN,)),
    Page("GET", "/tickets/{ticket_id}/assign", ticket_actions.show_assign, PEOPLE, (ticket_actions.GET,)),
    Page("POST", "/tickets/{ticket_id}/assign", ticket_actions.assign, PEOPLE,
         (ticket_actions.GET, ticket_actions.ASSIGN)),
    Page("GET", "/tickets/{ticket_id}/edit", ticket_actions.show_edit, PEOPLE, (ticket_actions.GET,)),
    Page("POST", "/tickets/{ticket_id}/edit", ticket_actions.edit, PEOPLE, (ticket_actions.GET, ticket_actions.UPDATE)),
    Page("GET", "/tickets/panel", tickets.panel, PEOPLE, tickets.PARTS, panel="Tickets"),
    Page("GET", "/tickets/work", tickets.work, PEOPLE, (tickets.SEARCH,), panel="Tickets", work=True),
    Page("GET", "/tickets/home", tickets.home, PEOPLE, tickets.LISTS, panel="Tickets"),
    Page("GET", "/tickets/found", tickets.search_hits, PEOPLE, (tickets.SEARCH,), panel="Tickets"),
    # photos of tickets
    Page("GET", "/tickets/{ticket_id}/photos", ticket_photos.show, PEOPLE, ticket_photos.SHOWS),
    Page("POST", "/tickets/{ticket_id}/photos", ticket_photos.add, PEOPLE, (ticket_photos.ADD, *ticket_photos.SHOWS),
         uploads=photos.FORM_BYTES_MAX, on_device=True),
    Page("POST", "/tickets/{ticket_id}/photos/remove", ticket_photos.remove, PEOPLE,
         (ticket_photos.REMOVE, ticket_photos.GET)),
    # board
    Page("GET", board.PATH, board.show_board, PEOPLE, (board.BOARD, board.COUNTS, board.TEMPLATES),
         menu=(MAINTENANCE, board.HERE, "board"), views=True),
    Page("GET", "/board/panel", board.panel, PEOPLE, (board.UNIT, board.BOARD, board.COUNTS), panel="Turn board"),
    Page("GET", "/board/work", board.work, PEOPLE, (board.OPEN_TASKS,), panel="Make-ready tasks", work=True),
    Page("GET", "/board/home", board.home, PEOPLE, (board.BOARD, board.COUNTS, board.OPEN_TASKS), panel="Turn board"),
    Page("GET", board.TURNS_PATH, board.list_turns, PEOPLE, (board.TURNS,), views=True),
    Page("GET", "/turns/{turn_id}", board.show_turn, PEOPLE, (board.TURN, board.UNIT, board.TASKS, board.TEMPLATES)),
    Page("POST", "/turns/{turn_id}/order", ordering.order, PEOPLE, (ordering.ORDER, board.TASKS)),
    Page("GET", task_bulk.TASKS_PATH, board.list_tasks, PEOPLE, (board.OPEN_TASKS, board.COUNTS), views=True),
    *bulk(task_bulk.RECORDS, task_bulk.TASK),
    Page("GET", "/turn-tasks/{task_id}", board.show_task, PEOPLE, (task_bulk.TASK,), on_device=True),
    Page("GET", "/residents/contacts", board.contacts, PEOPLE, (board.RESIDENCIES,), panel="Residents"),
    Page("GET", "/residents/found", residents.search_hits, PEOPLE, (residents.SEARCH,), panel="Residents"),
    Page("GET", opening.CALLERS_PATH, residents.callers, PEOPLE, (residents.SEARCH,), panel="Residents"),
    Page("GET", "/units/{unit_id}/transitions", board.show_transitions, PEOPLE,
         (board.RESIDENCIES, board.UNIT, board.CHANGES, board.NAMES)),
    Page("GET", "/board/units/{unit_id}", board_actions.show_card, PEOPLE, board_actions.SHOWS),
    Page("POST", "/board/units/{unit_id}", board_actions.save_card, PEOPLE, board_actions.PLANS),
    Page("POST", "/turn-tasks/{task_id}/complete", board_actions.complete_task, PEOPLE,
         (board_actions.COMPLETE_TASK, task_bulk.TASK), on_device=True),
    Page("POST", "/turn-tasks/{task_id}/cancel", board_actions.cancel_task, PEOPLE,
         (board_actions.CANCEL_TASK, task_bulk.TASK)),
    Page("GET", "/turn-tasks/{task_id}/change", board_actions.show_change, PEOPLE, (task_bulk.TASK,)),
    Page("POST", "/turn-tasks/{task_id}/change", board_actions.change_task, PEOPLE,
         (task_bulk.UPDATE_TASK, task_bulk.TASK)),
    Page("GET", "/units/{unit_id}/notice", notices_and_move_ins.show_notice, PEOPLE, (board.UNIT,)),
    Page("POST", "/units/{unit_id}/notice", notices_and_move_ins.add_notice, PEOPLE,
         (notices_and_move_ins.NOTICE, board.UNIT)),
    Page("GET", "/units/{unit_id}/move-in", notices_and_move_ins.show_move_in, PEOPLE, (board.UNIT,)),
    Page("POST", "/units/{unit_id}/move-in", notices_and_move_ins.add_move_in, PEOPLE,
         (notices_and_move_ins.MOVE_IN, board.UNIT)),
    Page("GET", "/turns/{turn_id}/move-in", notices_and_move_ins.show_change, PEOPLE, (board.TURN, board.UNIT)),
    Page("POST", "/turns/{turn_id}/move-in", notices_and_move_ins.change_move_in, PEOPLE,
         (notices_and_move_ins.CHANGE, board.TURN, board.UNIT)),
    Page("GET", "/turns/{turn_id}/notice/cancel", endings.show_cancel_notice, PEOPLE,
         (board.TURN, board.UNIT, endings.INSPECTIONS)),
    Page("POST", "/turns/{turn_id}/notice/cancel", endings.cancel_notice, PEOPLE,
         (endings.CANCEL_NOTICE, board.TURN, board.UNIT, endings.INSPECTIONS, endings.CANCEL_INSPECTION)),
    Page("GET", "/turns/{turn_id}/cancel", endings.show_cancel_turn, PEOPLE, (board.TURN, board.UNIT)),
    Page("POST", "/turns/{turn_id}/cancel", endings.cancel_turn, PEOPLE,
         (endings.CANCEL_TURN, board.TURN, board.UNIT)),
    # board: templates of tasks
    Page("GET", board.TEMPLATES_PATH, turn_templates.list_templates, ADMINISTRATORS, (board.TEMPLATES,)),
    Page("GET", "/turn-templates/new", turn_templates.show_new, ADMINISTRATORS),
    Page("POST", "/turn-templates/new", turn_templates.add, ADMINISTRATORS, (turn_templates.ADD,)),
    Page("GET", "/turn-templates/{template_id}", turn_templates.show, ADMINISTRATORS, (board.TEMPLATES,)),
    Page("POST", "/turn-templates/{template_id}", turn_templates.update, ADMINISTRATORS,
         (turn_templates.UPDATE, board.TEMPLATES)),
    Page("POST", "/turn-templates/{template_id}/tasks", turn_templates.add_task, ADMINISTRATORS,
         (turn_templates.UPDATE, board.TEMPLATES)),
    Page("GET", "/turn-templates/{template_id}/tasks/{number}", turn_templates.show_task, ADMINISTRATORS,
         (board.TEMPLATES,)),
    Page("POST", "/turn-templates/{template_id}/tasks/{number}", turn_templates.change_task, ADMINISTRATORS,
         (turn_templates.UPDATE, board.TEMPLATES)),
    Page("POST", "/turn-templates/{template_id}/remove", turn_templates.remove, ADMINISTRATORS,
         (turn_templates.REMOVE,)),
    # board: people who are forgotten
    Page("GET", forgetting.PATH, forgetting.show, ADMINISTRATORS, (forgetting.PARTY,)),
    Page("POST", forgetting.PATH, forgetting.forget, ADMINISTRATORS, (forgetting.PARTY, forgetting.FORGET)),
    Page("GET", "/tickets/texts", ticket_texts.panel, ADMINISTRATORS, (ticket_texts.TEXTS,), panel="Ticket text"),
    # inspections
    Page("GET", "/inspections", inspections.list_inspections, PEOPLE,
         (inspections.SEARCH, inspections.DAYS, inspections.COUNT), menu=(MAINTENANCE, inspections.HERE, "clip"),
         views=True, on_device=True),
    *bulk(inspection_bulk.RECORDS, inspection_bulk.GET),
    Page("GET", "/inspections/panel", inspections.panel, PEOPLE, (inspections.SEARCH,), panel="Inspections"),
    Page("GET", "/inspections/work", inspections.work, PEOPLE, (inspections.SEARCH,), panel="Inspections", work=True),
    Page("GET", "/inspections/home", inspections.home, PEOPLE, (inspections.SEARCH, inspections.COUNT),
         panel="Inspections"),
    Page("GET", "/inspections/{inspection_id}", inspections.show_inspection, PEOPLE,
         inspections.SHOWS_ONE, on_device=True),
    Page("GET", "/inspections/new", inspection_actions.show_new, PEOPLE, inspection_actions.PLANS),
    Page("POST", "/inspections/new", inspection_actions.schedule, PEOPLE, inspection_actions.SCHEDULES),
    Page("GET", inspection_templates.LIST_PATH, inspection_templates.show_list, PEOPLE,
         (inspection_actions.TEMPLATES,)),
    Page("GET", "/inspection-templates/new", inspection_templates.show_new, ADMINISTRATORS),
    Page("POST", "/inspection-templates/new", inspection_templates.add, ADMINISTRATORS, (inspection_templates.ADD,)),
    Page("GET", "/inspection-templates/{template_id}", inspection_templates.show_one, ADMINISTRATORS,
         (inspection_actions.TEMPLATES,)),
    Page("POST", "/inspection-templates/{template_id}", inspection_templates.change, ADMINISTRATORS,
         (inspection_templates.UPDATE, inspection_actions.TEMPLATES)),
    Page("POST", "/inspection-templates/{template_id}/remove", inspection_templates.remove, ADMINISTRATORS,
         (inspection_templates.REMOVE,)),
    Page("POST", "/inspections/{inspection_id}/rows/{row_id}/photo", row_photos.add, PEOPLE,
         (row_photos.SET, *inspections.SHOWS_ONE), uploads=photos.FORM_BYTES_MAX),
    Page("POST", "/inspections/{inspection_id}/rows/{row_id}/photo/remove", row_photos.remove, PEOPLE,
         (row_photos.SET, *inspections.SHOWS_ONE)),
    Page("GET", "/inspections/{inspection_id}/edit", inspection_actions.show_edit, PEOPLE, (inspections.GET,)),
    Page("POST", "/inspections/{inspection_id}/edit", inspection_actions.edit, PEOPLE,
         (inspection_actions.UPDATE, inspections.GET)),
    Page("POST", "/inspections/{inspection_id}/start", inspection_actions.start, PEOPLE, inspection_actions.STARTS,
         on_device=True),
    Page("POST", "/inspections/{inspection_id}/complete", inspection_actions.complete, PEOPLE,
         inspection_actions.COMPLETES, on_device=True),
    Page("POST", "/inspections/{inspection_id}/cancel", inspection_actions.cancel, PEOPLE, inspection_actions.CANCELS),
    Page("POST", "/inspections/{inspection_id}/rows", inspection_actions.add_row, PEOPLE, inspection_actions.ADDS_ROW),
    Page("POST", "/inspections/{inspection_id}/rows/{row_id}/remove", inspection_actions.remove_row, PEOPLE,
         inspection_actions.REMOVES_ROW),
    Page("GET", "/inspections/{inspection_id}/walk", walking.show_walk, PEOPLE, walking.WALKS, on_device=True),
    Page("POST", "/inspections/{inspection_id}/rows/{row_id}/pass", walking.pass_row, PEOPLE, walking.PASSES,
         on_device=True),
    Page("POST", "/inspections/{inspection_id}/rows/{row_id}/fail", walking.fail_row, PEOPLE, walking.FAILS,
         on_device=True),
    # upkeep
    Page("GET", upkeep.PATH, upkeep.list_tasks, PEOPLE, upkeep.LISTS, menu=(MAINTENANCE, upkeep.HERE, "wrench"),
         views=True),
    Page("GET", "/pm-tasks/{pm_task_id}", upkeep.show_task, PEOPLE, (upkeep.GET,), on_device=True),
    Page("GET", "/pm-tasks/new", upkeep_actions.show_new, PEOPLE),
    Page("POST", "/pm-tasks/new", upkeep_actions.add, PEOPLE, (upkeep_actions.ADD,)),
    Page("GET", "/pm-tasks/{pm_task_id}/edit", upkeep_actions.show_edit, PEOPLE, (upkeep.GET,)),
    Page("POST", "/pm-tasks/{pm_task_id}/edit", upkeep_actions.edit, PEOPLE, (upkeep_actions.UPDATE, upkeep.GET)),
    Page("POST", "/pm-tasks/{pm_task_id}/complete", upkeep_actions.complete, PEOPLE,
         (upkeep_actions.COMPLETE, upkeep.GET), on_device=True),
    Page("POST", "/pm-tasks/{pm_task_id}/cancel", upkeep_actions.cancel, PEOPLE, (upkeep_actions.CANCEL, upkeep.GET)),
    Page("GET", "/pm-tasks/panel", upkeep.panel, PEOPLE, (upkeep.LIST,), panel="Preventive maintenance"),
    Page("GET", "/upkeep/work", upkeep.work, PEOPLE, (upkeep.LIST,), panel="Preventive maintenance", work=True),
    Page("GET", "/upkeep/home", upkeep.home, PEOPLE, (upkeep.COUNT,), panel="Preventive maintenance"),
    # notices
    Page("GET", "/notices", notices.list_notices, PEOPLE, (notices.LIST, notices.COUNT),
         menu=(MAINTENANCE, notices.HERE, "horn"), views=True),
    Page("GET", "/notices/panel", notices.panel, PEOPLE, (notices.LIST,), panel="Notices"),
    Page("GET", "/notices/{notice_id}", notices.show_notice, PEOPLE, (notices.GET,)),
    Page("GET", "/notices/new", composing.show_compose, PEOPLE, composing.COMPOSES),
    Page("POST", "/notices/new", composing.compose, PEOPLE, (composing.COMPOSE, *composing.COMPOSES)),
    Page("GET", "/notices/{notice_id}/edit", composing.show_edit, PEOPLE, (notices.GET, *composing.COMPOSES)),
    Page("POST", "/notices/{notice_id}/edit", composing.edit, PEOPLE,
         (composing.UPDATE, notices.GET, *composing.COMPOSES)),
    Page("GET", "/notices/{notice_id}/publish", composing.show_publish, PEOPLE, (notices.GET,)),
    Page("POST", "/notices/{notice_id}/publish", composing.publish, PEOPLE, (composing.PUBLISH, notices.GET)),
    Page("POST", "/notices/{notice_id}/discard", composing.discard, PEOPLE, (composing.DISCARD, notices.GET)),
    Page("GET", "/notices/{notice_id}/print", composing.show_print, PEOPLE, (notices.GET,)),
    # reports
    Page("GET", reports.PATH, reports.index, PEOPLE, reports.RPCS, menu=(MAINTENANCE, reports.HERE, "chart")),
    *(
        Page("GET", report.path, reports.page_of(report), PEOPLE, (report.rpc,))
        for report in report_measures.REPORTS
    ),
    Page("GET", integrations.API, integrations.api, ADMINISTRATORS, integrations.OF_API),
    Page("GET", integrations.WEBHOOKS, integrations.webhooks, ADMINISTRATORS, integrations.OF_WEBHOOKS),
    # Portfolio
    # places
    Page("GET", "/places/found", places.search_hits, PEOPLE, (places.SEARCH,), panel="Places"),
    Page("GET", "/places/home", places.home, ADMINISTRATORS, places.HOME, panel="Places"),
    Page("GET", order.PATH, order.panel, PEOPLE, order.RPCS, panel="Location"),
    Page("GET", places_picking.PATH, places_picking.pick, PEOPLE, places_picking.RPCS, panel="Places"),
    Page("GET", "/properties", properties.list_properties, PEOPLE, (places.SEARCH_PROPERTIES, places.COUNT),
         menu=(PORTFOLIO, properties.HERE, "building"), views=True),
    Page("GET", "/properties/new", place_forms.show_add_property, ADMINISTRATORS),
    Page("POST", "/properties/new", place_forms.add_property, ADMINISTRATORS, (place_forms.ADD_PROPERTY,)),
    Page("GET", "/properties/{property_id}", properties.show_property, PEOPLE, properties.SHOWS),
    Page("GET", "/properties/{property_id}/edit", place_forms.show_edit_property, ADMINISTRATORS,
         (place_forms.GET_PROPERTY,)),
    Page("POST", "/properties/{property_id}/edit", place_forms.edit_property, ADMINISTRATORS,
         (place_forms.UPDATE_PROPERTY, place_forms.GET_PROPERTY)),
    Page("GET", "/properties/{property_id}/units/{unit_id}", units.show_unit, PEOPLE, units.SHOWS),
    Page("GET", "/properties/{property_id}/units/{unit_id}/edit", place_forms.show_edit_unit, ADMINISTRATORS,
         (place_forms.GET_UNIT, place_forms.PARTS)),
    Page("POST", "/properties/{property_id}/units/{unit_id}/edit", place_forms.edit_unit, ADMINISTRATORS,
         (place_forms.UPDATE_UNIT, place_forms.GET_UNIT, place_forms.PARTS)),
    Page("GET", "/units/new", place_forms.show_add_unit, ADMINISTRATORS, (place_forms.PARTS,)),
    Page("POST", "/units/new", place_forms.add_unit, ADMINISTRATORS, (place_forms.ADD_UNIT, place_forms.PARTS)),
    Page("GET", "/units", units.list_units, PEOPLE, units.LISTS, menu=(PORTFOLIO, units.HERE, "door"), views=True),
    Page("GET", "/units/panel", units.panel, PEOPLE, (units.LIST,), panel="Units"),
    Page("GET", "/assets", assets.list_assets, PEOPLE, assets.LISTS, menu=(PORTFOLIO, assets.HERE, "box"), views=True),
    Page("GET", "/assets/panel", assets.panel, PEOPLE, (assets.LIST,), panel="Assets"),
    Page("GET", "/assets/new", place_forms.show_add_asset, ADMINISTRATORS),
    Page("POST", "/assets/new", place_forms.add_asset, ADMINISTRATORS, (place_forms.ADD_ASSET,)),
    Page("GET", "/assets/{asset_id}", assets.show_asset, PEOPLE, (assets.GET,)),
    Page("GET", "/assets/{asset_id}/edit", place_forms.show_edit_asset, ADMINISTRATORS, (place_forms.GET_ASSET,)),
    Page("POST", "/assets/{asset_id}/edit", place_forms.edit_asset, ADMINISTRATORS,
         (place_forms.UPDATE_ASSET, place_forms.GET_ASSET)),
    Page("POST", "/assets/{asset_id}/status", place_forms.set_asset_status, ADMINISTRATORS,
         (place_forms.UPDATE_ASSET, place_forms.GET_ASSET)),
    # meters
    Page("GET", "/meters", meters.list_meters, PEOPLE, meters.LISTS, menu=(PORTFOLIO, meters.HERE, "gauge"),
         views=True),
    Page("GET", "/meters/panel", meters.panel, PEOPLE, (meters.LIST,), panel="Meters"),
    Page("GET", "/meters/new", meter_forms.show_add, ADMINISTRATORS),
    Page("POST", "/meters/new", meter_forms.add, ADMINISTRATORS, (meter_forms.ADD,)),
    Page("GET", "/meters/{meter_id}", meters.show_meter, PEOPLE, meters.SHOWS),
    Page("GET", "/meters/{meter_id}/edit", meter_forms.show_edit, ADMINISTRATORS, (meters.GET,)),
    Page("POST", "/meters/{meter_id}/edit", meter_forms.edit, ADMINISTRATORS, (meter_forms.UPDATE, meters.GET)),
    Page("GET", "/meters/{meter_id}/readings/new", meter_forms.show_record, PEOPLE, (meters.GET, meters.READINGS)),
    Page("POST", "/meters/{meter_id}/readings/new", meter_forms.record_reading, PEOPLE,
         (meter_forms.RECORD, meters.GET, meters.READINGS)),
    Page("GET", "/meters/{meter_id}/readings/{reading_id}", meter_forms.show_correct, PEOPLE,
         (meters.GET, meter_forms.READING)),
    Page("POST", "/meters/{meter_id}/readings/{reading_id}", meter_forms.correct, PEOPLE,
         (meter_forms.CORRECT, meters.GET, meter_forms.READING)),
    # vendors
    Page("GET", "/vendors", vendors.list_vendors, PEOPLE, (vendors.SEARCH, vendors.COUNT),
         menu=(PORTFOLIO, vendors.HERE, "truck"), views=True),
    Page("GET", "/vendors/panel", vendors.panel, PEOPLE, (vendors.GET,), panel="Vendor"),
    Page("GET", "/vendors/home", vendors.home, PEOPLE, (vendors.SEARCH, vendors.COUNT), panel="Vendors"),
    Page("GET", "/vendors/found", vendors.search_hits, PEOPLE, (vendors.SEARCH,), panel="Vendors"),
    Page("GET", vendors_picking.PATH, vendors_picking.pick, PEOPLE, vendors_picking.RPCS, panel="Vendors"),
    Page("GET", "/vendors/{vendor_id}", vendors.show_vendor, PEOPLE, (vendors.GET, vendors.NAMES)),
    Page("GET", "/vendors/new", vendor_actions.show_add, ADMINISTRATORS),
    Page("POST", "/vendors/new", vendor_actions.add, ADMINISTRATORS, (vendor_actions.ADD,)),
    Page("GET", "/vendors/{vendor_id}/edit", vendor_actions.show_edit, ADMINISTRATORS, (vendors.GET,)),
    Page("POST", "/vendors/{vendor_id}/edit", vendor_actions.edit, ADMINISTRATORS,
         (vendor_actions.UPDATE, vendors.GET)),
    Page("GET", "/vendors/{vendor_id}/hold", vendor_actions.show_hold, ADMINISTRATORS, (vendors.GET,)),
    Page("POST", "/vendors/{vendor_id}/hold", vendor_actions.hold, ADMINISTRATORS, (vendor_actions.HOLD, vendors.GET)),
    Page("GET", "/vendors/{vendor_id}/release", vendor_actions.show_release, ADMINISTRATORS, (vendors.GET,)),
    Page("POST", "/vendors/{vendor_id}/release", vendor_actions.release, ADMINISTRATORS,
         (vendor_actions.RELEASE, vendors.GET)),
    Page("GET", "/vendors/{vendor_id}/insurance", vendor_actions.show_insurance, ADMINISTRATORS, (vendors.GET,)),
    Page("POST", "/vendors/{vendor_id}/insurance", vendor_actions.insure, ADMINISTRATORS,
         (vendor_actions.INSURE, vendors.GET)),
    Page("GET", "/vendors/{vendor_id}/end", vendor_actions.show_end, ADMINISTRATORS, (vendors.GET,)),
    Page("POST", "/vendors/{vendor_id}/end", vendor_actions.end, ADMINISTRATORS, (vendor_actions.UPDATE, vendors.GET)),
    Page("POST", "/vendors/{vendor_id}/resume", vendor_actions.resume, ADMINISTRATORS,
         (vendor_actions.UPDATE, vendors.GET)),
    # people
    Page("GET", people.PATH, people.list_staff, PEOPLE, (people.LIST,), menu=(PORTFOLIO, people.HERE, "people"),
         views=True),
    Page("GET", "/people/found", people.search_hits, PEOPLE, (people.LIST,), panel="Staff"),
    Page("GET", "/people/home", people.home, ADMINISTRATORS, (people.LIST,), panel="Staff"),
    Page("GET", people_picking.PATH, people_picking.pick, PEOPLE, people_picking.RPCS, panel="Staff"),
    Page("GET", "/staff/new", people_forms.show_add, ADMINISTRATORS),
    Page("POST", "/staff/new", people_forms.add, ADMINISTRATORS, (people_forms.ADD,)),
    Page("GET", "/staff/{staff_id}", people.show, PEOPLE, (people.GET,)),
    Page("GET", "/staff/{staff_id}/edit", people_forms.show_edit, ADMINISTRATORS, (people.GET,)),
    Page("POST", "/staff/{staff_id}/edit", people_forms.edit, ADMINISTRATORS, (people_forms.UPDATE, people.GET)),
    Page("POST", "/staff/{staff_id}/invite", people.invite, ADMINISTRATORS, (people.INVITE, people.GET)),
    Page("POST", "/staff/{staff_id}/link", people.make_link, ADMINISTRATORS, (people.LINK, people.GET)),
    Page("POST", "/staff/{staff_id}/end", people.end, ADMINISTRATORS, (people.END, people.GET)),
    Page("POST", "/staff/{staff_id}/reinstate", people.reinstate, ADMINISTRATORS, (people.REINSTATE, people.GET)),
    # Integrations
    # keys
    Page("GET", "/keys/home", keys.home, ADMINISTRATORS, (keys.LIST, keys.REQUESTS), panel="API keys"),
    Page("GET", "/keys", keys.list_keys, ADMINISTRATORS, (keys.LIST, keys.USAGE, keys.REQUESTS),
         menu=(INTEGRATIONS, keys.HERE, "key"), views=True),
    Page("GET", "/keys/new", keys.show_mint, ADMINISTRATORS),
    Page("POST", "/keys/new", keys.mint, ADMINISTRATORS, (keys.MINT, keys.LIST, keys.USAGE, keys.REQUESTS)),
    Page("GET", "/keys/{key_id}", keys.show_key, ADMINISTRATORS, (keys.GET, keys.USAGE, keys.REQUESTS)),
    Page("POST", "/keys/{key_id}/rotate", keys.rotate, ADMINISTRATORS,
         (keys.ROTATE, keys.GET, keys.USAGE, keys.REQUESTS)),
    Page("POST", "/keys/{key_id}/revoke", keys.revoke, ADMINISTRATORS,
         (keys.GET, keys.REVOKE, keys.USAGE, keys.REQUESTS)),
    Page("POST", "/keys/{key_id}/take-over", keys.take_over, ADMINISTRATORS,
         (keys.TAKE_OVER, keys.GET, keys.USAGE, keys.REQUESTS)),
    # webhooks
    Page("GET", webhooks.PATH, webhooks.list_subscriptions, ADMINISTRATORS, webhooks.SHOWS,
         menu=(INTEGRATIONS, webhooks.HERE, "hook")),
    Page("GET", "/webhooks/home", webhooks.home, ADMINISTRATORS, (webhooks.LIST,), panel="Webhooks"),
    Page("GET", "/webhooks/panel", webhooks.panel, ADMINISTRATORS, (webhooks.LIST,), panel="Subscribed endpoints"),
    Page("GET", "/webhooks/new", webhook_actions.show_create, ADMINISTRATORS),
    Page("POST", "/webhooks/new", webhook_actions.create, ADMINISTRATORS, (webhook_actions.ADD,)),
    Page("GET", "/webhooks/{sub_id}", endpoint.show_endpoint, ADMINISTRATORS, endpoint.SHOWS),
    Page("POST", "/webhooks/{sub_id}/test", webhook_actions.test, ADMINISTRATORS,
         (webhook_actions.TEST, *endpoint.SHOWS)),
    Page("GET", "/webhooks/{sub_id}/change", webhook_actions.show_change, ADMINISTRATORS, (endpoint.GET,)),
    Page("POST", "/webhooks/{sub_id}/change", webhook_actions.change, ADMINISTRATORS,
         (webhook_actions.CHANGE, endpoint.GET)),
    Page("GET", "/webhooks/{sub_id}/pause", webhook_actions.show_pause, ADMINISTRATORS, (endpoint.GET,)),
    Page("POST", "/webhooks/{sub_id}/pause", webhook_actions.pause, ADMINISTRATORS,
         (webhook_actions.PAUSE, endpoint.GET)),
    Page("POST", "/webhooks/{sub_id}/resume", webhook_actions.resume, ADMINISTRATORS, (webhook_actions.RESUME,)),
    Page("GET", "/webhooks/{sub_id}/rotate", webhook_actions.show_rotate, ADMINISTRATORS, (endpoint.GET,)),
    Page("POST", "/webhooks/{sub_id}/rotate", webhook_actions.rotate, ADMINISTRATORS,
         (webhook_actions.ROTATE, endpoint.GET)),
    Page("GET", "/webhooks/{sub_id}/signature", webhook_actions.show_check, ADMINISTRATORS, (endpoint.GET,)),
    Page("POST", "/webhooks/{sub_id}/signature", webhook_actions.check, ADMINISTRATORS,
         (webhook_actions.CHECK, endpoint.GET)),
    Page("GET", "/webhooks/{sub_id}/retry", webhook_actions.show_retry, ADMINISTRATORS, webhook_actions.RETRIES),
    Page("POST", "/webhooks/{sub_id}/retry", webhook_actions.retry, ADMINISTRATORS,
         (webhook_actions.RETRY, *webhook_actions.RETRIES)),
    Page("GET", "/webhooks/{sub_id}/delete", webhook_actions.show_delete, ADMINISTRATORS,
         (endpoint.GET, endpoint.COUNT)),
    Page("POST", "/webhooks/{sub_id}/delete", webhook_actions.delete, ADMINISTRATORS,
         (webhook_actions.REMOVE, endpoint.GET, endpoint.COUNT)),
    # Deliveries and events
    Page("GET", "/webhooks/{sub_id}/deliveries", deliveries.list_deliveries, ADMINISTRATORS,
         (*deliveries.TABLE, deliveries.SUBSCRIPTION), views=True),
    Page("POST", "/webhooks/{sub_id}/deliveries/retry", deliveries.retry_selected, ADMINISTRATORS,
         (deliveries.RETRY_PARKED,)),
    Page("GET", "/webhooks/{sub_id}/deliveries/{event_id}", deliveries.show_delivery, ADMINISTRATORS,
         deliveries.SHOWS),
    Page("POST", "/webhooks/{sub_id}/deliveries/{event_id}/retry", deliveries.retry, ADMINISTRATORS,
         (deliveries.RETRY,)),
    Page("POST", "/webhooks/{sub_id}/deliveries/{event_id}/attempt", deliveries.attempt_now, ADMINISTRATORS,
         (deliveries.ATTEMPT_NOW,)),
    Page("POST", "/webhooks/{sub_id}/deliveries/{event_id}/resend", deliveries.resend, ADMINISTRATORS,
         (deliveries.RESEND,)),
    Page("GET", "/events", events.list_events, ADMINISTRATORS, (events.LIST, *events.SHOWS),
         menu=(INTEGRATIONS, events.HERE, "pulse"), views=True),
    Page("GET", "/events/between", events.between, ADMINISTRATORS, (events.LIST,), panel="Activity"),
    Page("GET", "/events/panel", events.panel, PEOPLE, (events.LIST, events.OF_RECORD), panel="Webhook deliveries"),
    Page("GET", "/events/found", events.search_hits, ADMINISTRATORS, (events.LIST, events.GET), panel="Events"),
    Page("GET", "/events/{event_id}", events.show_event, ADMINISTRATORS, events.SHOWS),
    Page("GET", requests.PATH, requests.list_requests, ADMINISTRATORS, requests.SHOWS,
         menu=(INTEGRATIONS, requests.HERE, "send"), views=True),
    Page("GET", "/requests/panel", requests.panel, ADMINISTRATORS, requests.OF_ONE, panel="API request"),
    # imports
    Page("GET", imports.PATH, imports.list_imports, ADMINISTRATORS, menu=(INTEGRATIONS, imports.HERE, "down"),
         views=True),
    Page("GET", "/imports/new", imports.show_new, ADMINISTRATORS),
    Page("POST", "/imports/new", imports.upload, ADMINISTRATORS, uploads=imports.FORM_BYTES_MAX),
    Page("GET", "/imports/{import_id}", imports.show_import, ADMINISTRATORS),
    Page("POST", "/imports/{import_id}/check", imports.check, ADMINISTRATORS, imports.RUNS,
         uploads=imports.MAPPING_FORM_BYTES_MAX),
    Page("POST", "/imports/{import_id}/check-plain", imports.check_plain, ADMINISTRATORS, imports.RUNS),
    Page("POST", "/imports/{import_id}/sheet", imports.choose_sheet, ADMINISTRATORS),
    Page("POST", "/imports/{import_id}/check-undo", imports.check_undo, ADMINISTRATORS, imports.UNDOES),
    Page("POST", "/imports/{import_id}/undo", imports.undo, ADMINISTRATORS, imports.UNDOES),
    Page("POST", "/imports/{import_id}/run", imports.run, ADMINISTRATORS, imports.RUNS),
    Page("POST", "/imports/{import_id}/go-on", imports.go_on, ADMINISTRATORS, imports.RUNS),
    Page("POST", "/imports/{import_id}/cancel", imports.cancel, ADMINISTRATORS),
    Page("POST", "/imports/{import_id}/delete", imports.delete, ADMINISTRATORS),
    Page("GET", "/imports/{import_id}/rejects", imports.download_rejects, ADMINISTRATORS),
    Page("GET", "/imports/{import_id}/mapping", imports.download_mapping, ADMINISTRATORS),
    # clock
    Page("GET", clock.PATH, clock.show, ADMINISTRATORS, (clock.GET,), menu=(INTEGRATIONS, clock.HERE, "clock"),
         in_sandboxes=True),
    Page("POST", clock.PATH, clock.advance, ADMINISTRATORS, (clock.GET, clock.ADVANCE)),
    # company
    Page("GET", company.PATH, company.show_settings, ADMINISTRATORS, company.SHOWS,
         menu=(COMPANY, company.HERE, "gear")),
    Page("POST", "/settings/company", company.update_company, ADMINISTRATORS, (company.UPDATE, *company.SHOWS)),
    Page("POST", "/settings/second-factor", company.update_factor, ADMINISTRATORS, (company.UPDATE, *company.SHOWS)),
    Page("POST", "/settings/tickets", company.update_policy, ADMINISTRATORS,
         (company.STALE, company.UPDATE_POLICY, *company.SHOWS)),
    Page("GET", sandboxes.PATH, sandboxes.show_sandboxes, ADMINISTRATORS, (sandboxes.LIST,),
         menu=(COMPANY, sandboxes.HERE, "box")),
    Page("POST", sandboxes.PATH, sandboxes.create, ADMINISTRATORS, (sandboxes.CREATE, sandboxes.LIST)),
    Page("GET", "/settings/sandboxes/{company_id}/end", sandboxes.show_end, ADMINISTRATORS, (sandboxes.LIST,)),
    Page("POST", "/settings/sandboxes/{company_id}/end", sandboxes.end, ADMINISTRATORS,
         (sandboxes.END, sandboxes.LIST)),
    Page("POST", sandboxes.SWITCH_PATH, sandboxes.switch, ADMINISTRATORS),
    Page("GET", administrators.PATH, administrators.show_administrators, ADMINISTRATORS, (administrators.LIST,),
         menu=(COMPANY, administrators.HERE, "shield")),
    Page("POST", administrators.PATH, administrators.invite, ADMINISTRATORS,
         (administrators.INVITE, administrators.LIST)),
    Page("GET", "/settings/administrators/{administrator_id}", administrators.show_administrator, ADMINISTRATORS,
         administrators.SHOWS),
    Page("POST", "/settings/administrators/{administrator_id}", administrators.update, ADMINISTRATORS,
         (administrators.UPDATE, *administrators.SHOWS)),
    Page("POST", "/settings/administrators/{administrator_id}/deactivate", administrators.deactivate, ADMINISTRATORS,
         (administrators.DEACTIVATE, *administrators.SHOWS)),
    Page("POST", "/settings/administrators/{administrator_id}/reactivate", administrators.reactivate, ADMINISTRATORS,
         (administrators.REACTIVATE, *administrators.SHOWS)),
    Page("POST", "/settings/administrators/{administrator_id}/link", administrators.make_link, ADMINISTRATORS,
         (administrators.LINK, *administrators.SHOWS)),
    Page("POST", "/settings/administrators/{administrator_id}/take-over-keys", administrators.take_over_keys,
         ADMINISTRATORS, (administrators.TAKE_OVER, *administrators.SHOWS)),
    Page("POST", "/settings/administrators/{administrator_id}/revoke-keys", administrators.revoke_keys,
         ADMINISTRATORS, (administrators.REVOKE, *administrators.SHOWS)),
    Page("GET", "/audit/panel", audit.panel, PEOPLE, audit.SHOWS, panel="History"),
    Page("GET", "/audit/recent", audit.recent, ADMINISTRATORS, (*audit.SHOWS, audit.EVENTS), panel="Recent activity"),
    Page("GET", audit.PATH, audit.show_audit, ADMINISTRATORS, audit.WITH_KEYS, menu=(COMPANY, audit.HERE, "log"),
         views=True),
    Page("GET", account.PATH, account.show_account, PEOPLE, account.SHOWS, due=True),
    Page("POST", "/account/password", account.change_password, PEOPLE, (account.PASSWORD, *account.SHOWS),
         due=True, is_secret=True),
    Page("POST", "/account/confirm", account.confirm, PEOPLE, due=True, is_secret=True),
    Page("POST", "/account/passkeys/start", account.start_passkey, PEOPLE, (account.START_PASSKEY,),
         due=True, is_secret=True),
    Page("POST", "/account/passkeys", account.add_passkey, PEOPLE, (account.FINISH_PASSKEY, *account.SHOWS),
         due=True, is_secret=True),
    Page("POST", "/account/passkeys/{passkey_id}/remove", account.remove_passkey, PEOPLE,
         (account.REMOVE_PASSKEY, *account.SHOWS), due=True),
    Page("POST", "/account/totp", account.enrol, PEOPLE, (account.ENROL, *account.SHOWS), due=True, is_secret=True),
    Page("POST", "/account/totp/confirm", account.confirm_totp, PEOPLE, (account.CONFIRM, *account.SHOWS),
         due=True, is_secret=True),
    Page("POST", "/account/totp/remove", account.remove_totp, PEOPLE, (account.REMOVE_TOTP, *account.SHOWS), due=True),
    Page("POST", "/account/recovery-codes", account.make_codes, PEOPLE, (account.CODES, *account.SHOWS), due=True),
    Page("POST", "/account/sessions/end", account.end_session, PEOPLE, (account.END, *account.SHOWS), due=True),
    Page("POST", "/account/shortcuts", account.set_shortcuts, PEOPLE, due=True),
    Page("POST", "/account/theme", account.set_theme, PEOPLE, due=True),
)  # fmt: skip
