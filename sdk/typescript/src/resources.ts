// The operations of the API, by resource.
// Made by `make openapi` from the tables of the API: change openapi/reference instead.

import { type Answered, type CallOptions, Core, Resource, type WriteOptions, path } from "./core.ts";
import { Following } from "./following.ts";
import type * as models from "./models.ts";
import { Feed, Pages } from "./paging.ts";
import { Snapshot } from "./snapshots.ts";

/** `client.tickets`. */
export class Tickets extends Resource {
  /**
   * List tickets.
   *
   * A page of tickets, ascending by id. Tickets without a property are not included.
   *
   * @param query.property_id Only records of the property with this id. An unknown id gives an empty page.
   * @param query.unit_id Only records of the unit with this id. An unknown id gives an empty page.
   * @param query.status Only records with this status. Any other value is refused with 422.
   * @param query.updated_since Only records that changed at this instant or later. It must carry a UTC offset.
   * @param query.ticket_number Only the ticket with this number. Needs `property_id` beside it; alone it is refused
   *   with 400.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: {
      property_id?: number | undefined;
      unit_id?: number | undefined;
      status?: models.TicketStatus | undefined;
      updated_since?: Date | string | undefined;
      ticket_number?: number | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Pages<models.Ticket> {
    return new Pages(this.client, { method: "GET", path: "/tickets", query, options });
  }

  /**
   * Create a ticket.
   *
   * Opens a ticket on a unit. Fires `ticket.created`.
   */
  create(body: models.TicketCreate, options: WriteOptions = {}): Promise<Answered<models.Ticket>> {
    return this.client.call({ method: "POST", path: "/tickets", body, options });
  }

  /**
   * Fetch a ticket.
   *
   * One ticket by its id. Tickets without a property are not included.
   *
   * @param ticketId The ticket's `entity_id`.
   */
  get(ticketId: number, options: CallOptions = {}): Promise<Answered<models.Ticket>> {
    return this.client.call({ method: "GET", path: path`/tickets/${ticketId}`, options });
  }

  /**
   * Change a ticket's status.
   *
   * Every status can follow every other one, Completed and Cancelled included: `completed_at` is null again when the
   * ticket is no longer Completed, `cancelled_at` and `cancellation_reason_code` when it is no longer Cancelled. The
   * status that the ticket already has is accepted, too. Completed again is another closing: its note is stored, and
   * `completed_at` is the time of the last one. So is Cancelled again, with `cancelled_at`, unless reason and notes are
   * those that are stored. Fires `ticket.status_changed` for each change, with `from` equal to `to` if a ticket is
   * closed again. Cancelled with the stored reason and notes, and Open, In Progress or On Hold again, are answered with
   * 200, change nothing and fire nothing. Notes become comments of the ticket. Words of a note are separated by blanks,
   * and each contains a letter or a digit. In scripts without blanks between words, each Chinese or Japanese character
   * counts as a word, and in Thai, Lao, Khmer, Burmese and similar scripts every three letters do.
   *
   * @param ticketId The ticket's `entity_id`.
   */
  changeStatus(
    ticketId: number,
    body: models.StatusChange,
    options: WriteOptions = {},
  ): Promise<Answered<models.Ticket>> {
    return this.client.call({ method: "PATCH", path: path`/tickets/${ticketId}`, body, options });
  }

  /**
   * Add a photo to a ticket.
   *
   * Adds the address of a photo. The ticket's `photo_url` is then this one, and the ticket can be completed where the
   * company requires a photo. Earlier photos stay with the ticket in the administrator interface. The address that
   * `photo_url` has already is accepted, too, and changes nothing. Fires no event.
   *
   * @param ticketId The ticket's `entity_id`.
   */
  createPhoto(
    ticketId: number,
    body: models.PhotoCreate,
    options: WriteOptions = {},
  ): Promise<Answered<models.Ticket>> {
    return this.client.call({ method: "POST", path: path`/tickets/${ticketId}/photos`, body, options });
  }

  /**
   * Assign a ticket.
   *
   * Sets who has the work: a member of staff, a vendor, both, or with an object without keys nobody. It replaces the
   * assignment: whom the body does not name has the ticket no more. `GET /staff` and `GET /vendors` have the ids. The
   * assignment that the ticket has already changes nothing. Fires no event.
   *
   * @param ticketId The ticket's `entity_id`.
   */
  assign(
    ticketId: number,
    body: models.Assignment = {},
    options: WriteOptions = {},
  ): Promise<Answered<models.Ticket>> {
    return this.client.call({ method: "PUT", path: path`/tickets/${ticketId}/assignment`, body, options });
  }

  /**
   * Comment on a ticket.
   *
   * Adds a comment, which people see with the ticket in the console. The ticket's record and its `updated_at` stay as
   * they are. A comment of staff or of a vendor counts as work: a ticket that a resident filed is quiet anew from then
   * on (`ticket.stale`). Comments cannot be listed: staff write there for one another. Fires no event.
   *
   * @param ticketId The ticket's `entity_id`.
   */
  comment(
    ticketId: number,
    body: models.CommentCreate,
    options: WriteOptions = {},
  ): Promise<Answered<models.TicketComment>> {
    return this.client.call({ method: "POST", path: path`/tickets/${ticketId}/comments`, body, options });
  }
}

/** `client.properties`. */
export class Properties extends Resource {
  /**
   * List properties.
   *
   * A page of properties, ascending by id.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: { limit?: number | undefined; cursor?: string | undefined } = {},
    options: CallOptions = {},
  ): Pages<models.Property> {
    return new Pages(this.client, { method: "GET", path: "/properties", query, options });
  }

  /**
   * Fetch a property.
   *
   * One property by its id.
   *
   * @param propertyId The property's `entity_id`.
   */
  get(propertyId: number, options: CallOptions = {}): Promise<Answered<models.Property>> {
    return this.client.call({ method: "GET", path: path`/properties/${propertyId}`, options });
  }
}

/** `client.units`. */
export class Units extends Resource {
  /**
   * List units.
   *
   * A page of units, ascending by id. `unit_status` and `projected_ready_on` are those of the unit's current turn. They
   * show a notice or a move-in over the API from its 201 on, here and in `GET /units/{unit_id}`; other changes, and
   * these under heavy load, within a second.
   *
   * @param query.property_id Only records of the property with this id. An unknown id gives an empty page.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: { property_id?: number | undefined; limit?: number | undefined; cursor?: string | undefined } = {},
    options: CallOptions = {},
  ): Pages<models.Unit> {
    return new Pages(this.client, { method: "GET", path: "/units", query, options });
  }

  /**
   * Fetch a unit.
   *
   * One unit by its id. `unit_status` and `projected_ready_on` are those of the unit's current turn. They show a notice
   * or a move-in over the API from its 201 on, here and in `GET /units/{unit_id}`; other changes, and these under heavy
   * load, within a second.
   *
   * @param unitId The unit's `entity_id`.
   */
  get(unitId: number, options: CallOptions = {}): Promise<Answered<models.Unit>> {
    return this.client.call({ method: "GET", path: path`/units/${unitId}`, options });
  }

  /**
   * Record a notice to vacate.
   *
   * Records when the unit's current resident leaves. The unit becomes `Notice`, which fires `turn.status_changed` if it
   * was not. Another notice replaces all values of the notice before it; one with the same date changes no status. A
   * resident who has left can leave no more: the same date again, or an earlier one, is refused, and a later one says
   * that the resident stayed on, or, from a planned move-in's day on, that it is the next resident's.
   *
   * @param unitId The unit's `entity_id`.
   */
  recordNotice(
    unitId: number,
    body: models.NoticeCreate,
    options: WriteOptions = {},
  ): Promise<Answered<models.OccupancyRecord>> {
    return this.client.call({ method: "POST", path: path`/units/${unitId}/notice`, body, options });
  }

  /**
   * Record a move-in.
   *
   * Records a new resident of the unit, with the lease and its parties. On its `move_in_date`, in the company's
   * timezone, the unit becomes `Occupied`, which fires `turn.status_changed` if it was not: at once if that is today or
   * before, else just after midnight of that day, and not before the resident before leaves. Until then nothing about
   * the unit changes. If the unit still has a resident whose move_out_date has not passed, `predecessor_transition_id`
   * names the turn that ends: the last of the unit's active turns. The date of a planned move-in is changed in the
   * administrator interface alone.
   *
   * @param unitId The unit's `entity_id`.
   */
  recordMoveIn(
    unitId: number,
    body: models.MoveInCreate,
    options: WriteOptions = {},
  ): Promise<Answered<models.OccupancyRecord>> {
    return this.client.call({ method: "POST", path: path`/units/${unitId}/move-in`, body, options });
  }
}

/** `client.assets`. */
export class Assets extends Resource {
  /**
   * List assets.
   *
   * A page of assets, ascending by id. Retired assets are included.
   *
   * @param query.property_id Only records of the property with this id. An unknown id gives an empty page.
   * @param query.unit_id Only records of the unit with this id. An unknown id gives an empty page.
   * @param query.status Only records with this status. Any other value is refused with 422.
   * @param query.updated_since Only records that changed at this instant or later. It must carry a UTC offset.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: {
      property_id?: number | undefined;
      unit_id?: number | undefined;
      status?: models.AssetStatus | undefined;
      updated_since?: Date | string | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Pages<models.Asset> {
    return new Pages(this.client, { method: "GET", path: "/assets", query, options });
  }

  /**
   * Fetch an asset.
   *
   * One asset by its id. Retired assets are included.
   *
   * @param assetId The asset's `entity_id`.
   */
  get(assetId: number, options: CallOptions = {}): Promise<Answered<models.Asset>> {
    return this.client.call({ method: "GET", path: path`/assets/${assetId}`, options });
  }
}

/** `client.vendors`. */
export class Vendors extends Resource {
  /**
   * List vendors.
   *
   * A page of vendors, ascending by id. Inactive relationships are included.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: { limit?: number | undefined; cursor?: string | undefined } = {},
    options: CallOptions = {},
  ): Pages<models.Vendor> {
    return new Pages(this.client, { method: "GET", path: "/vendors", query, options });
  }

  /**
   * Fetch a vendor.
   *
   * One vendor by its id. Inactive relationships are included.
   *
   * @param vendorId The vendor's `entity_id`.
   */
  get(vendorId: number, options: CallOptions = {}): Promise<Answered<models.Vendor>> {
    return this.client.call({ method: "GET", path: path`/vendors/${vendorId}`, options });
  }
}

/** `client.inspections`. */
export class Inspections extends Resource {
  /**
   * List inspections.
   *
   * A page of inspections, ascending by id. Inspections of operations only: walks of a consulting engagement are not
   * included; a unit's acceptance walk without an engagement is.
   *
   * @param query.property_id Only records of the property with this id. An unknown id gives an empty page.
   * @param query.unit_id Only records of the unit with this id. An unknown id gives an empty page.
   * @param query.status Only records with this status. Any other value is refused with 422.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: {
      property_id?: number | undefined;
      unit_id?: number | undefined;
      status?: models.InspectionStatus | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Pages<models.Inspection> {
    return new Pages(this.client, { method: "GET", path: "/inspections", query, options });
  }

  /**
   * Fetch an inspection.
   *
   * One inspection by its id. Inspections of operations only: walks of a consulting engagement are not included; a
   * unit's acceptance walk without an engagement is.
   *
   * @param inspectionId The inspection's `entity_id`.
   */
  get(inspectionId: number, options: CallOptions = {}): Promise<Answered<models.Inspection>> {
    return this.client.call({ method: "GET", path: path`/inspections/${inspectionId}`, options });
  }
}

/** `client.turns`. */
export class Turns extends Resource {
  /**
   * List turns.
   *
   * A page of turns, ascending by id. Every transition is a turn, a first move-in without a departure too. One of a
   * later date is `Active` from the moment it is recorded.
   *
   * @param query.property_id Only records of the property with this id. An unknown id gives an empty page.
   * @param query.unit_id Only records of the unit with this id. An unknown id gives an empty page.
   * @param query.status Only records with this status. Any other value is refused with 422.
   * @param query.updated_since Only records that changed at this instant or later. It must carry a UTC offset.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: {
      property_id?: number | undefined;
      unit_id?: number | undefined;
      status?: models.TurnStatus | undefined;
      updated_since?: Date | string | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Pages<models.Turn> {
    return new Pages(this.client, { method: "GET", path: "/turns", query, options });
  }

  /**
   * Fetch a turn.
   *
   * One turn by its id. Every transition is a turn, a first move-in without a departure too. One of a later date is
   * `Active` from the moment it is recorded.
   *
   * @param turnId The turn's `entity_id`.
   */
  get(turnId: number, options: CallOptions = {}): Promise<Answered<models.Turn>> {
    return this.client.call({ method: "GET", path: path`/turns/${turnId}`, options });
  }
}

/** `client.meters`. */
export class Meters extends Resource {
  /**
   * List utility meters.
   *
   * A page of utility meters, ascending by id. Inactive meters are included.
   *
   * @param query.property_id Only records of the property with this id. An unknown id gives an empty page.
   * @param query.unit_id Only records of the unit with this id. An unknown id gives an empty page.
   * @param query.updated_since Only records that changed at this instant or later. It must carry a UTC offset.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: {
      property_id?: number | undefined;
      unit_id?: number | undefined;
      updated_since?: Date | string | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Pages<models.Meter> {
    return new Pages(this.client, { method: "GET", path: "/meters", query, options });
  }

  /**
   * Fetch a utility meter.
   *
   * One utility meter by its id. Inactive meters are included.
   *
   * @param meterId The meter's `entity_id`.
   */
  get(meterId: number, options: CallOptions = {}): Promise<Answered<models.Meter>> {
    return this.client.call({ method: "GET", path: path`/meters/${meterId}`, options });
  }

  /**
   * List readings of a meter.
   *
   * A page of readings of a meter, ascending by id. They are in the order in which they were stored. Those of one file
   * of the operator are stored in the order of their periods, the oldest first, whatever the order of the file. As long
   * as nobody adds readings of earlier periods later, the last page holds the latest periods. Readings that are added
   * later, such as a back-fill of last year, come at the end: sort by `period_start`, and follow `GET
   * /changes/readings` for what is new.
   *
   * @param meterId The meter's `entity_id`.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  listReadings(
    meterId: number,
    query: { limit?: number | undefined; cursor?: string | undefined } = {},
    options: CallOptions = {},
  ): Pages<models.Reading> {
    return new Pages(this.client, { method: "GET", path: path`/meters/${meterId}/readings`, query, options });
  }

  /**
   * Add readings to a meter.
   *
   * Stores 1 to 500 readings of a meter, by their periods: one of a period that the meter has no reading of is created,
   * one with other values changes the reading that is there, one with the same values changes nothing. So readings may
   * be sent again and corrected. What a reading leaves out stays as it is. Each gets its outcome. All are stored, or
   * none: the refusal of one that cannot be stored names its index, from 0. Fires no event.
   *
   * @param meterId The meter's `entity_id`.
   */
  addReadings(
    meterId: number,
    body: models.ReadingsCreate,
    options: WriteOptions = {},
  ): Promise<Answered<models.ReadingResults>> {
    return this.client.call({ method: "POST", path: path`/meters/${meterId}/readings`, body, options });
  }
}

/** `client.staff`. */
export class Staff extends Resource {
  /**
   * List staff.
   *
   * A page of staff, ascending by id. Members of the company's staff, to whom tickets can be assigned. Those who have
   * left are included. E-mail addresses are not.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: { limit?: number | undefined; cursor?: string | undefined } = {},
    options: CallOptions = {},
  ): Pages<models.StaffMember> {
    return new Pages(this.client, { method: "GET", path: "/staff", query, options });
  }
}

/** `client.reports`. */
export class Reports extends Resource {
  /**
   * Report on tickets.
   *
   * How many tickets were opened, completed, cancelled and reopened in some months, how long the first response and the
   * completion took, and the backlog: in all, by month or day, and by group. Figures are kept beside the records, so a
   * report costs the same for any number of tickets; they lack what changed in the last seconds. A later correction of
   * a ticket changes the figures of the day that it is about. `measures` says what each is.
   *
   * @param query.from_month The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left
   *   out: 12 months that end with the last one, or by day that month alone.
   * @param query.to_month The last month, as 2026-03. Left out: the present one.
   * @param query.property_id Only records of the property with this id. An unknown id answers 404.
   * @param query.bucket The length of `buckets`, `month` if left out. Any other value is refused with 422.
   * @param query.group_by What the records of a group have in common. Left out: no groups. Any other value is refused
   *   with 422.
   */
  tickets(
    query: {
      from_month?: string | undefined;
      to_month?: string | undefined;
      property_id?: number | undefined;
      bucket?: models.ReportBucket | undefined;
      group_by?: models.TicketReportGroupBy | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Answered<models.Report>> {
    return this.client.call({ method: "GET", path: "/reports/tickets", query, options });
  }

  /**
   * Report on vendors.
   *
   * How many tickets vendors got in some months, how soon they responded and completed them, and how long these were on
   * hold: in all, by month or day, and by group. See `GET /reports/tickets`.
   *
   * @param query.from_month The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left
   *   out: 12 months that end with the last one, or by day that month alone.
   * @param query.to_month The last month, as 2026-03. Left out: the present one.
   * @param query.property_id Only records of the property with this id. An unknown id answers 404.
   * @param query.bucket The length of `buckets`, `month` if left out. Any other value is refused with 422.
   * @param query.group_by What the tickets of a group have in common, such as their vendor. Left out: no groups. Any
   *   other value is refused with 422.
   */
  vendors(
    query: {
      from_month?: string | undefined;
      to_month?: string | undefined;
      property_id?: number | undefined;
      bucket?: models.ReportBucket | undefined;
      group_by?: models.VendorReportGroupBy | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Answered<models.Report>> {
    return this.client.call({ method: "GET", path: "/reports/vendors", query, options });
  }

  /**
   * Report on turns.
   *
   * How many residents moved out in some months, how long units took from the move-out to ready and to the next
   * move-in, and where the days went: in all, by month or day, and by group. See `GET /reports/tickets`.
   *
   * @param query.from_month The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left
   *   out: 12 months that end with the last one, or by day that month alone.
   * @param query.to_month The last month, as 2026-03. Left out: the present one.
   * @param query.property_id Only records of the property with this id. An unknown id answers 404.
   * @param query.bucket The length of `buckets`, `month` if left out. Any other value is refused with 422.
   * @param query.group_by What the turns of a group have in common, or their tasks: `task_type` has figures of
   *   `task_completed` alone. Left out: no groups. Any other value is refused with 422.
   */
  turns(
    query: {
      from_month?: string | undefined;
      to_month?: string | undefined;
      property_id?: number | undefined;
      bucket?: models.ReportBucket | undefined;
      group_by?: models.TurnReportGroupBy | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Answered<models.Report>> {
    return this.client.call({ method: "GET", path: "/reports/turns", query, options });
  }

  /**
   * Report on inspections.
   *
   * How many inspections were completed in some months, how many of them passed and failed, and how many items of their
   * checklists failed: in all, by month or day, and by group. Grouped by `item`, the checklist items that failed most
   * come first. See `GET /reports/tickets`.
   *
   * @param query.from_month The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left
   *   out: 12 months that end with the last one, or by day that month alone.
   * @param query.to_month The last month, as 2026-03. Left out: the present one.
   * @param query.property_id Only records of the property with this id. An unknown id answers 404.
   * @param query.bucket The length of `buckets`, `month` if left out. Any other value is refused with 422.
   * @param query.group_by What the inspections of a group have in common, or the item of their checklists. Left out: no
   *   groups. Any other value is refused with 422.
   */
  inspections(
    query: {
      from_month?: string | undefined;
      to_month?: string | undefined;
      property_id?: number | undefined;
      bucket?: models.ReportBucket | undefined;
      group_by?: models.InspectionReportGroupBy | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Answered<models.Report>> {
    return this.client.call({ method: "GET", path: "/reports/inspections", query, options });
  }
}

/** `client.changes`. */
export class Changes extends Resource {
  /**
   * Follow tickets.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all tickets, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  tickets(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.TicketChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/tickets", query, options });
  }

  /**
   * Follow properties.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all properties, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  properties(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.PropertyChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/properties", query, options });
  }

  /**
   * Follow units.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all units, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  units(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.UnitChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/units", query, options });
  }

  /**
   * Follow assets.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all assets, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  assets(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.AssetChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/assets", query, options });
  }

  /**
   * Follow vendors.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all vendors, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  vendors(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.VendorChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/vendors", query, options });
  }

  /**
   * Follow inspections.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all inspections, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  inspections(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.InspectionChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/inspections", query, options });
  }

  /**
   * Follow turns.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all turns, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  turns(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.TurnChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/turns", query, options });
  }

  /**
   * Follow utility meters.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all utility meters, with the
   * `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is written
   * meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A record that
   * can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  meters(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.MeterChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/meters", query, options });
  }

  /**
   * Follow readings of all meters.
   *
   * Each record once, at its latest state, in the order of last change: without `cursor` all readings of all meters,
   * with the `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
   * written meanwhile, and a change of anything that the record shows counts, such as a new name of its property. A
   * record that can no longer be seen comes as `gone`.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  readings(
    query: { limit?: number | undefined; cursor?: string | undefined; wait?: number | undefined } = {},
    options: CallOptions = {},
  ): Feed<models.ReadingChange> {
    return new Feed(this.client, { method: "GET", path: "/changes/readings", query, options });
  }
}

/** `client.snapshots`. */
export class Snapshots extends Resource {
  /**
   * Take a snapshot of tickets.
   *
   * All tickets, ascending by id, one JSON object on each line, in one answer of any length. It counts as one request.
   * The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/tickets` goes on: what changes while
   * the snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again with
   * `after_id`, and go on with the cursor of the first answer. A company has one snapshot of these records at a time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  tickets(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Ticket> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/tickets", query, options });
  }

  /**
   * Take a snapshot of properties.
   *
   * All properties, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
   * request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/properties` goes on: what
   * changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again
   * with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of these records at a
   * time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  properties(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Property> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/properties", query, options });
  }

  /**
   * Take a snapshot of units.
   *
   * All units, ascending by id, one JSON object on each line, in one answer of any length. It counts as one request.
   * The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/units` goes on: what changes while the
   * snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again with `after_id`,
   * and go on with the cursor of the first answer. A company has one snapshot of these records at a time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  units(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Unit> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/units", query, options });
  }

  /**
   * Take a snapshot of assets.
   *
   * All assets, ascending by id, one JSON object on each line, in one answer of any length. It counts as one request.
   * The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/assets` goes on: what changes while the
   * snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again with `after_id`,
   * and go on with the cursor of the first answer. A company has one snapshot of these records at a time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  assets(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Asset> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/assets", query, options });
  }

  /**
   * Take a snapshot of vendors.
   *
   * All vendors, ascending by id, one JSON object on each line, in one answer of any length. It counts as one request.
   * The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/vendors` goes on: what changes while
   * the snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again with
   * `after_id`, and go on with the cursor of the first answer. A company has one snapshot of these records at a time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  vendors(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Vendor> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/vendors", query, options });
  }

  /**
   * Take a snapshot of inspections.
   *
   * All inspections, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
   * request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/inspections` goes on: what
   * changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again
   * with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of these records at a
   * time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  inspections(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Inspection> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/inspections", query, options });
  }

  /**
   * Take a snapshot of turns.
   *
   * All turns, ascending by id, one JSON object on each line, in one answer of any length. It counts as one request.
   * The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/turns` goes on: what changes while the
   * snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again with `after_id`,
   * and go on with the cursor of the first answer. A company has one snapshot of these records at a time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  turns(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Turn> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/turns", query, options });
  }

  /**
   * Take a snapshot of utility meters.
   *
   * All utility meters, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
   * request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/meters` goes on: what changes
   * while the snapshot runs comes there. An answer that ends without its last chunk has broken off: ask again with
   * `after_id`, and go on with the cursor of the first answer. A company has one snapshot of these records at a time.
   *
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  meters(query: { after_id?: number | undefined } = {}, options: CallOptions = {}): Snapshot<models.Meter> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/meters", query, options });
  }

  /**
   * Take a snapshot of readings of all meters.
   *
   * All readings of all meters, ascending by meter and id, one JSON object on each line, in one answer of any length.
   * It counts as one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/readings`
   * goes on: what changes while the snapshot runs comes there. An answer that ends without its last chunk has broken
   * off: ask again with `after_meter_id` and `after_id`, and go on with the cursor of the first answer. A company has
   * one snapshot of these records at a time.
   *
   * @param query.after_meter_id The `meter_id` of the last reading that you have, beside `after_id`. Left out: the
   *   beginning.
   * @param query.after_id The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
   */
  readings(
    query: { after_meter_id?: number | undefined; after_id?: number | undefined } = {},
    options: CallOptions = {},
  ): Snapshot<models.Reading> {
    return new Snapshot(this.client, { method: "GET", path: "/snapshots/readings", query, options });
  }
}

/** `client.webhooks`. */
export class Webhooks extends Resource {
  /**
   * List webhook subscriptions.
   *
   * A page of webhook subscriptions, ascending by id. The signing secret is not included.
   *
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: { limit?: number | undefined; cursor?: string | undefined } = {},
    options: CallOptions = {},
  ): Pages<models.Subscription> {
    return new Pages(this.client, { method: "GET", path: "/webhooks", query, options });
  }

  /**
   * Create a webhook subscription.
   *
   * Subscribes a URL to events. The response contains the signing secret; no later response does. For its
   * `Idempotency-Key`, a request is the same if its destination and its set of events are the same.
   */
  create(body: models.SubscriptionCreate, options: WriteOptions = {}): Promise<Answered<models.NewSubscription>> {
    return this.client.call({ method: "POST", path: "/webhooks", body, options });
  }

  /**
   * Delete a webhook subscription.
   *
   * Deletes the subscription and the history of its deliveries. Events that wait for delivery to it are not delivered
   * any more.
   *
   * @param subId The subscription's `entity_id`.
   */
  delete(subId: number, options: CallOptions = {}): Promise<void> {
    return this.client.send({ method: "DELETE", path: path`/webhooks/${subId}`, options });
  }

  /**
   * Fetch a webhook subscription's filter.
   *
   * Of which properties, categories and priorities the subscription hears; all null: of all.
   *
   * @param subId The subscription's `entity_id`.
   */
  getFilter(subId: number, options: CallOptions = {}): Promise<Answered<models.WebhookFilter>> {
    return this.client.call({ method: "GET", path: path`/webhooks/${subId}/filter`, options });
  }

  /**
   * Set a webhook subscription's filter.
   *
   * Replaces the filter. The subscription then hears of an event that it names if the event's property is among
   * `property_ids`, and a ticket's category and priority among `categories` and `priorities`. Events whose data have no
   * property's id pass `property_ids`: `vendor.hold`, `property.notice.published`, `turn.task.stale` and `pm.stale`. It
   * decides when an event is stored, so deliveries that wait are not touched; a replay leaves out what does not pass.
   * An object without keys takes the filter away.
   *
   * @param subId The subscription's `entity_id`.
   */
  setFilter(
    subId: number,
    body: models.WebhookFilterSet = {},
    options: WriteOptions = {},
  ): Promise<Answered<models.WebhookFilter>> {
    return this.client.call({ method: "PUT", path: path`/webhooks/${subId}/filter`, body, options });
  }

  /**
   * Test a webhook subscription.
   *
   * Sends one signed `webhook.test` event to the subscription's URL, now, and returns its delivery with what the
   * receiver answered. Its `data` is an empty object, and no subscription can name it. It changes no health, is never
   * retried and is not among the events of `GET /events`. A paused subscription gets it too. A subscription gets 10
   * tests a minute. The body is an object without keys.
   *
   * @param subId The subscription's `entity_id`.
   */
  test(
    subId: number,
    body: models.TestCreate = {},
    options: WriteOptions = {},
  ): Promise<Answered<models.WebhookDeliveryAnswers>> {
    return this.client.call({ method: "POST", path: path`/webhooks/${subId}/test`, body, options });
  }

  /**
   * List deliveries of a webhook subscription.
   *
   * A page of deliveries of a webhook subscription, ascending by id. They are in the order of their events' ids, the
   * oldest first, for 30 days. The events themselves are not included: see `GET /events`. With `state`, a page can have
   * fewer deliveries than its limit, or none, although `next_cursor` is not null.
   *
   * @param subId The subscription's `entity_id`.
   * @param query.state Only deliveries in this state. Any other value is refused with 422.
   * @param query.since Only deliveries of events that were made at this instant or later. It must carry a UTC offset.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  listDeliveries(
    subId: number,
    query: {
      state?: models.WebhookDeliveryState | undefined;
      since?: Date | string | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Pages<models.WebhookDelivery> {
    return new Pages(this.client, { method: "GET", path: path`/webhooks/${subId}/deliveries`, query, options });
  }

  /**
   * Fetch a delivery.
   *
   * One delivery with its attempts and the beginning of each response, without the event's body.
   *
   * @param subId The subscription's `entity_id`.
   * @param eventId The event's `event_id`.
   */
  getDelivery(
    subId: number,
    eventId: string,
    options: CallOptions = {},
  ): Promise<Answered<models.WebhookDeliveryAnswers>> {
    return this.client.call({ method: "GET", path: path`/webhooks/${subId}/deliveries/${eventId}`, options });
  }

  /**
   * Replay events to a webhook subscription.
   *
   * Sends the events of a period to the subscription once more, also those from before it existed or that it did not
   * name then. Each attempt has the event's own `event_id`, and the header `Service-Replay` with the replay's id.
   * Attempts start at once and take turns with all others. A delivery that fails is parked; one that was waiting for a
   * retry goes on waiting for it. The answer comes before the attempts: `GET /webhooks/{sub_id}/replays/{replay_id}`
   * says how far they are. A replay is about 100,000 events at most, and a subscription has one under way at a time.
   *
   * @param subId The subscription's `entity_id`.
   */
  createReplay(
    subId: number,
    body: models.ReplayCreate,
    options: WriteOptions = {},
  ): Promise<Answered<models.WebhookReplay>> {
    return this.client.call({ method: "POST", path: path`/webhooks/${subId}/replay`, body, options });
  }

  /**
   * Fetch a replay.
   *
   * How far a replay is. It is kept for 30 days after it has finished.
   *
   * @param subId The subscription's `entity_id`.
   * @param replayId The replay's `entity_id`.
   */
  getReplay(subId: number, replayId: number, options: CallOptions = {}): Promise<Answered<models.WebhookReplay>> {
    return this.client.call({ method: "GET", path: path`/webhooks/${subId}/replays/${replayId}`, options });
  }
}

/** `client.events`. */
export class Events extends Following {
  /**
   * Follow events.
   *
   * The company's events of 30 days in the order in which they were stored: the envelopes that deliveries carry, byte
   * for byte, whether a subscription names them or not. `positions` numbers them: a company's events have the numbers
   * 1, 2, 3 and so on, so without filters each number follows the one before, and a gap would be a lost event. What an
   * installation stored before it had this list is not in it.
   *
   * @param query.event Only events with this key. Any other value is refused with 422.
   * @param query.entity_type Only events about a record of this kind. Any other value is refused with 422. Needs
   *   `entity_id` beside it; alone it is refused with 400.
   * @param query.entity_id Only events about the record with this id. Needs `entity_type` beside it; alone it is
   *   refused with 400.
   * @param query.since Only events that were stored at this instant or later, which is seconds after `occurred_at` as a
   *   rule. It must carry a UTC offset.
   * @param query.until Only events that were stored before this instant. It must carry a UTC offset.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  list(
    query: {
      event?: models.EventKey | undefined;
      entity_type?: models.EventEntityType | undefined;
      entity_id?: number | undefined;
      since?: Date | string | undefined;
      until?: Date | string | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
      wait?: number | undefined;
    } = {},
    options: CallOptions = {},
  ): Feed<models.Event> {
    return new Feed(this.client, { method: "GET", path: "/events", query, options });
  }
}

/** `client.requests`. */
export class Requests extends Resource {
  /**
   * Follow requests.
   *
   * The requests of 30 days with the company's keys, in the order in which they were stored, a second or two after the
   * answer; with `wait`, as they come. A key with the scope `read` gets those with itself alone. Those of `GET
   * /requests` itself come with `route` alone. An operator may log fewer requests than all.
   *
   * @param query.key_id Only requests with the key with this id.
   * @param query.status Only answers with this status, such as 404, or of this class, such as 4xx. Anything else is
   *   refused with 422.
   * @param query.code Only refusals with this code.
   * @param query.route Only requests of this route: its path with the names of ids.
   * @param query.request_id Only the request whose answer had this id in `X-Request-Id`.
   * @param query.since Only requests at this instant or later. It must carry a UTC offset.
   * @param query.limit How many records a page has; as many as the API allows if left out.
   */
  follow(
    query: {
      key_id?: number | undefined;
      status?: string | undefined;
      code?: string | undefined;
      route?: string | undefined;
      request_id?: string | undefined;
      since?: Date | string | undefined;
      limit?: number | undefined;
      cursor?: string | undefined;
      wait?: number | undefined;
    } = {},
    options: CallOptions = {},
  ): Feed<models.LoggedRequest> {
    return new Feed(this.client, { method: "GET", path: "/requests", query, options });
  }

  /**
   * Fetch a request.
   *
   * One request with the bodies that are kept of it, which they are in sandboxes alone: see `request_body`. A key with
   * the scope `read` gets those with itself alone.
   *
   * @param requestId The id that the request's answer had in `X-Request-Id`.
   */
  fetch(requestId: string, options: CallOptions = {}): Promise<Answered<models.LoggedRequestBodies>> {
    return this.client.call({ method: "GET", path: path`/requests/${requestId}`, options });
  }
}

/** `client.sandbox`. */
export class Sandbox extends Resource {
  /**
   * Fetch the sandbox's clock.
   *
   * The clock, what falls due next by time alone, and what the last advance has done so far.
   */
  getClock(options: CallOptions = {}): Promise<Answered<models.SandboxClock>> {
    return this.client.call({ method: "GET", path: "/sandbox/clock", options });
  }

  /**
   * Advance the sandbox's clock.
   *
   * Moves the clock forward, to `advance_to` or by `advance_by`, and does everything that would have happened
   * meanwhile, in the order of time: residencies begin and end, records become stale, events fire, and deliveries are
   * attempted. What falls due at the target itself is done, too; an advance by `PT0S` does what is due already. The
   * answer comes before all that: `GET /sandbox/clock` says `ready` when it is done. Writes that come meanwhile have
   * the instant that the clock then says. Rate limits, the ends of keys, the log of requests and the `t` of signatures
   * keep to the real clock.
   */
  advanceClock(
    body: models.SandboxClockAdvance = {},
    options: WriteOptions = {},
  ): Promise<Answered<models.SandboxClock>> {
    return this.client.call({ method: "POST", path: "/sandbox/clock", body, options });
  }

  /**
   * Trigger an event.
   *
   * Makes an event happen in a sandbox by its real cause: the commands that people give in the administrator interface,
   * and the sweep that the clock would start. Deliveries, feeds and records show it as they show any other. The answer
   * is the event as `GET /events` has it, once it is there. A record may be named that it is to happen to: see the
   * fields. Where none is named, a new one is made, in the property `Sandbox triggers`, which is made once; what that
   * takes, such as a move-in before a turn can change, may fire events of its own first. `inspection.stale` moves the
   * date of an inspection whose day is not over. The commands are those of the administrator who minted the key.
   */
  createTrigger(body: models.TriggerCreate, options: WriteOptions = {}): Promise<Answered<models.Event>> {
    return this.client.call({ method: "POST", path: "/sandbox/triggers", body, options });
  }
}

/** All operations of the API. */
export class Api extends Core {
  readonly tickets: Tickets = new Tickets(this);
  readonly properties: Properties = new Properties(this);
  readonly units: Units = new Units(this);
  readonly assets: Assets = new Assets(this);
  readonly vendors: Vendors = new Vendors(this);
  readonly inspections: Inspections = new Inspections(this);
  readonly turns: Turns = new Turns(this);
  readonly meters: Meters = new Meters(this);
  readonly staff: Staff = new Staff(this);
  readonly reports: Reports = new Reports(this);
  readonly changes: Changes = new Changes(this);
  readonly snapshots: Snapshots = new Snapshots(this);
  readonly webhooks: Webhooks = new Webhooks(this);
  readonly events: Events = new Events(this);
  readonly requests: Requests = new Requests(this);
  readonly sandbox: Sandbox = new Sandbox(this);

  /**
   * Identify the key.
   *
   * The key's company and scope. Every active key may call it: a good first request.
   */
  whoami(options: CallOptions = {}): Promise<Answered<models.Whoami>> {
    return this.call({ method: "GET", path: "/whoami", options });
  }

  /**
   * Fetch this document.
   *
   * The OpenAPI document of this API. It is public: no key is needed, and a key that is sent is ignored.
   */
  openapi(options: CallOptions = {}): Promise<Answered<Record<string, unknown>>> {
    return this.call({ method: "GET", path: "/openapi.json", options });
  }

  /**
   * Find records by your own identifier.
   *
   * The records of the company that have this `external_id`, of the kind if one is given. It finds a property, unit,
   * asset, vendor, inspection, meter, reading, ticket, turn or member of staff that was synced from your system,
   * without reading its list. The identifier is compared whole, upper and lower case differ. A turn is found by the
   * `external_id` of its move-in, not of its notice.
   *
   * @param query.external_id Your own identifier of the record.
   * @param query.kind Only records of this kind. Any other value is refused with 422.
   */
  search(
    query: { external_id: string; kind?: models.RecordKind | undefined },
    options: CallOptions = {},
  ): Promise<Answered<models.SearchResults>> {
    return this.call({ method: "GET", path: "/search", query, options });
  }
}
