// Records, bodies of requests, events and enums.
// Made by `make openapi` from the tables of the API: change openapi/reference instead.

/** The date of the last change of the contract that this was made from. */
export const CONTRACT = "2026-11-28";
export const PAGE_RECORDS_MAX = 200;
/** The kinds of records that have a snapshot and a feed of changes. */
export const KINDS = ["tickets", "properties", "units", "assets", "vendors", "inspections", "turns", "meters", "readings"] as const;
/** A value of an enum in an answer: those that are known, or a later version's. */
export type Open<T extends string> = T | (string & {});

export type AssetStatus =
  "Active" | "Needs Service" | "Out of Service" | "Retired";
export type CommentAuthor =
  "staff" | "vendor" | "resident";
export type CompanyMode =
  "live" | "sandbox";
export type EventEntityType =
  "inspection" | "notice" | "pm_task" | "ticket" | "turn" | "vendor";
export type EventKey =
  "inspection.stale" | "pm.stale" | "property.notice.published" | "ticket.created" | "ticket.stale"
  | "ticket.status_changed" | "turn.schedule_changed" | "turn.status_changed" | "turn.task.stale" | "vendor.hold";
export type InspectionReportGroupBy =
  "property" | "type" | "item";
export type InspectionResult =
  "passed" | "failed";
export type InspectionSource =
  "staff" | "import";
export type InspectionStatus =
  "Scheduled" | "In Progress" | "Completed";
export type KeyScope =
  "read" | "write" | "webhook_only";
export type LeaseType =
  "fixed_term" | "month_to_month";
export type LocationType =
  "unit" | "mechanical_room" | "common_area" | "amenity" | "parking" | "storage" | "exterior" | "other";
export type MeterScope =
  "master" | "common_area" | "unit";
export type MeterUtilityType =
  "electric" | "gas" | "water" | "sewer" | "trash" | "other";
export type OccupancyStatus =
  "active" | "completed" | "cancelled";
export type PartyRole =
  "leaseholder" | "guarantor";
export type ReadingResultOutcome =
  "created" | "changed" | "unchanged";
export type RecordKind =
  "property" | "unit" | "asset" | "vendor" | "inspection" | "utility_meter" | "utility_reading" | "ticket" | "turn"
  | "staff";
export type ReplayState =
  "all" | "parked" | "failed";
export type ReportBucket =
  "day" | "month";
export type ReportMeasureKind =
  "count" | "duration" | "level";
export type SandboxClockStatus =
  "ready" | "advancing";
export type SubscriptionSource =
  "api" | "administrator";
export type TicketCancellationReasonCode =
  "duplicate_ticket" | "no_access_repeated" | "resident_cancelled" | "resolved_independently" | "scheduled_for_later"
  | "see_notes" | "wrong_property";
export type TicketCategory =
  "HVAC" | "Plumbing" | "Electrical" | "Mechanical" | "Life Safety" | "Elevator" | "Appliance" | "Doors/Windows"
  | "Flooring" | "Painting" | "Roofing" | "Leak" | "Pest Control" | "Structural" | "Grounds" | "Parking Garage"
  | "Pool" | "Security" | "Common Area" | "General" | "Other";
export type TicketPriority =
  "Low" | "Medium" | "High" | "Emergency";
export type TicketReportGroupBy =
  "property" | "category" | "priority" | "assignee" | "vendor" | "source";
export type TicketSource =
  "api" | "staff" | "resident_portal" | "inspection" | "import";
export type TicketStatus =
  "Open" | "In Progress" | "On Hold" | "Completed" | "Cancelled";
export type TurnReportGroupBy =
  "property" | "task_type";
export type TurnSource =
  "api" | "staff" | "import";
export type TurnStatus =
  "Active" | "Completed" | "Cancelled";
export type UnitStatus =
  "Occupied" | "Notice" | "Vacant Not Ready" | "Vacant Ready" | "Down";
export type VendorLastComplianceState =
  "compliant" | "expiring" | "noncompliant" | "missing" | "unknown";
export type VendorPropertyVisibility =
  "all_properties" | "selected_properties";
export type VendorReportGroupBy =
  "vendor" | "property" | "category" | "priority";
export type WebhookAttemptCause =
  "sweep" | "retry" | "manual" | "resend" | "test" | "replay";
export type WebhookDeliveryState =
  "waiting" | "succeeded" | "parked" | "failed";
export type WebhookHealth =
  "healthy" | "retrying" | "dead_lettered" | "paused";
export type WebhookReplayStatus =
  "under_way" | "finished";

/** Another record, named inside one that belongs to it. */
export interface Reference {
  /** The other record's id. */
  id: number;
  /** The other record's name. */
  name: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
}

/** Where an asset stands: a unit, or another place of the property such as a mechanical room. */
export interface Location {
  /** The location's id; where location_type is `unit`, the unit's id. */
  id: number;
  /** The location's name. */
  name: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** What kind of place it is. */
  location_type: Open<LocationType>;
}

/** An asset: a piece of equipment that the company maintains. Retired assets are included. */
export interface Asset {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "asset";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** What people call it. */
  name: string;
  /** What kind of equipment it is, in the company's own words. */
  category: string;
  /** A narrower kind, in the company's own words. */
  sub_category: string | null;
  /** The tag on the equipment. */
  asset_tag: string | null;
  /** Who made it. */
  make: string;
  /** The maker's name for the model. */
  model: string;
  /** The maker's serial number. */
  serial_number: string | null;
  /** Whether it is in use. */
  status: Open<AssetStatus>;
  /** The property that it belongs to. */
  property: Reference;
  /** Its location: a unit or another place; null if not on record. */
  location: Location | null;
  /** The year in which it was made. */
  year: number | null;
  /** The day on which it was installed. */
  installed_on: string | null;
  /** The last day of its warranty. */
  warranty_expires_on: string | null;
  /** How many years it is expected to last from its installation. */
  expected_life_years: number | null;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the record was created, for example `import`. */
  source: string;
  /** Link that opens the record for a person. */
  url: string;
}

/** The latest state of a record that has changed. */
export interface AssetChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "asset";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Asset | null;
}

/** The member of staff who has the work. */
export interface Assignee {
  /** The person's id. */
  id: number;
  /** The person's name. */
  name: string;
}

/** Who has the work: a member of staff, a vendor, both or nobody. */
export interface Assignment {
  /** The member of staff; nobody if left out. */
  assignee_id?: number | null | undefined;
  /** The vendor; none if left out. A vendor on hold gets no new work. */
  vendor_id?: number | null | undefined;
}

/** The legal entity behind a vendor. Vendors with the same business are relationships with the same entity. */
export interface Business {
  /** The business's id. */
  id: number;
  /** The name that it is registered under. */
  legal_name: string;
  /** The address of its website; null where none is known. */
  website: string | null;
}

/** A comment to add to a ticket. */
export interface CommentCreate {
  /** What is said. */
  text: string;
  /** Whose words they are; those of staff if left out. */
  author?: CommentAuthor | null | undefined;
}

/** The company that a key belongs to. */
export interface Company {
  /** The company's id; the `company_id` of its events. */
  id: number;
  /** The company's name. */
  name: string;
  /** The company's timezone, an IANA name such as America/Chicago. */
  timezone: string;
  /** `sandbox` for a company to try things in; its keys begin with `mk_test_`. */
  mode: Open<CompanyMode>;
}

/** The plan that a unit is built to. */
export interface Floorplan {
  /** The floorplan's id. */
  id: number;
  /** What the property calls the plan, for example B2. */
  name: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How many bedrooms it has; 0 is a studio. */
  bedrooms: number | null;
  /** How many bathrooms it has; a half has a toilet and no bath. */
  bathrooms: number | null;
  /** Its floor area in square feet. */
  square_feet: number | null;
}

/** A record that a search has found. Its fetch returns the rest. */
export interface FoundRecord {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record it is. */
  entity_type: Open<RecordKind>;
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** Your own identifier of the record, for which you searched. */
  external_id: string;
}

/** An inspection of operations: of a property, or of one unit. Walks of consulting engagements are not shown. */
export interface Inspection {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "inspection";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The number that staff see, from a sequence of the property; null if the inspection never got one. */
  inspection_number: number | null;
  /** The subject of the inspection in one line; null on legacy inspections. */
  title: string | null;
  /** The type of the template that it follows, for example General or Fire Alarm. */
  inspection_type: string | null;
  /** Its status. An inspection that was finalized on the legacy plain-checklist path is Completed. */
  status: Open<InspectionStatus>;
  /** Its result; null where neither applies. */
  result: Open<InspectionResult> | null;
  /** The property that is inspected. */
  property: Reference;
  /** The unit that is inspected; null if the property or another part of it is. */
  unit: Reference | null;
  /** The day for which it is planned. */
  scheduled_date: string | null;
  /** The day on which it was done. */
  completed_date: string | null;
  /** The member of staff who does it; null if none is assigned. */
  assignee: Assignee | null;
  /** Whether a law or a contract requires it. */
  is_compliance_inspection: boolean;
  /** The law or contract that requires it, in the company's own words. */
  compliance_type: string | null;
  /** When the record was created. */
  created_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the inspection was created. */
  source: Open<InspectionSource>;
  /** Link that opens the record for a person. */
  url: string;
}

/** The latest state of a record that has changed. */
export interface InspectionChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "inspection";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Inspection | null;
}

/**
 * An inspection was not completed by the morning after its scheduled date, at 06:00 in the company's timezone. Once for
 * each inspection, even if it is postponed later.
 */
export interface InspectionStaleEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "inspection.stale";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: Inspection;
  /** Always null here. */
  change: null;
}

/** An API key, without its secret part. */
export interface Key {
  /** The key's id. */
  id: number;
  /** What the administrator called the key. */
  name: string;
  /** The first characters of the key, to tell keys apart. */
  prefix: string;
  /** What the key opens. `write` opens all that the other two do. */
  scope: Open<KeyScope>;
  /** When the key was minted. */
  created_at: string;
}

/** The lease that a move-in created. */
export interface Lease {
  /** The lease's id. */
  id: number;
  /** For a fixed term, which has an end_date, or from month to month, which has none. */
  lease_type: Open<LeaseType>;
  /** The lease's first day. */
  start_date: string;
  /** The lease's last day; null from month to month. */
  end_date: string | null;
}

/** A request with a key of the company, and what it was answered. */
export interface LoggedRequest {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "request";
  /** Ascends in the order in which requests were stored. */
  entity_id: number;
  /** The answer's header `X-Request-Id`, for example 019c36e8f1a05c1f0b8a77d1. */
  request_id: string;
  /** When it came. */
  requested_at: string;
  /** The key's id, as `GET /whoami` has it. */
  key_id: number;
  /** The verb, for example PATCH. */
  method: string;
  /** The path with the names of its ids, for example /tickets/{ticket_id}. */
  route: string;
  /** The path, for example /tickets/318. */
  path: string;
  /**
   * The query, in which ids, states and instants stand as they came. Other values begin with `~`: a hash, the same for
   * the same value.
   */
  query: string;
  /** The answer's HTTP status, for example 422. */
  status: number;
  /** The error's code, for example invalid_request. */
  code: string | null;
  /** The error's sentence, for example Completing a ticket needs a note of 5 or more words. */
  message: string | null;
  /** The field or parameter at fault, if the refusal names one. */
  field: string | null;
  /** From the request to the answer, without what a feed waited, for example 8.4. */
  milliseconds: number;
  /** The length of the body, for example 31. */
  bytes_in: number;
  /** The length of the answer's body, for example 120. */
  bytes_out: number;
  /** Where it came from, for example 203.0.113.9. */
  address: string;
  /** The header `User-Agent`, for example makeready-client/0.3. */
  user_agent: string;
  /** A hash of the `Idempotency-Key`, the same for the same key. */
  idempotency_key_hash: string | null;
  /** Whether the answer to an earlier request with the `Idempotency-Key` was repeated. */
  is_replay: boolean;
  /** The `entity_type` of the record that a write made or changed, for example ticket. */
  record_type: string | null;
  /** Its `entity_id`. */
  record_id: number | null;
  /** The id of its trace, for example 4bf92f3577b34da6a3ce929d0e0e4736. */
  trace_id: string;
}

/** A request with a key of the company, with the bodies that are kept of it in a sandbox. */
export interface LoggedRequestBodies {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "request";
  /** Ascends in the order in which requests were stored. */
  entity_id: number;
  /** The answer's header `X-Request-Id`, for example 019c36e8f1a05c1f0b8a77d1. */
  request_id: string;
  /** When it came. */
  requested_at: string;
  /** The key's id, as `GET /whoami` has it. */
  key_id: number;
  /** The verb, for example PATCH. */
  method: string;
  /** The path with the names of its ids, for example /tickets/{ticket_id}. */
  route: string;
  /** The path, for example /tickets/318. */
  path: string;
  /**
   * The query, in which ids, states and instants stand as they came. Other values begin with `~`: a hash, the same for
   * the same value.
   */
  query: string;
  /** The answer's HTTP status, for example 422. */
  status: number;
  /** The error's code, for example invalid_request. */
  code: string | null;
  /** The error's sentence, for example Completing a ticket needs a note of 5 or more words. */
  message: string | null;
  /** The field or parameter at fault, if the refusal names one. */
  field: string | null;
  /** From the request to the answer, without what a feed waited, for example 8.4. */
  milliseconds: number;
  /** The length of the body, for example 31. */
  bytes_in: number;
  /** The length of the answer's body, for example 120. */
  bytes_out: number;
  /** Where it came from, for example 203.0.113.9. */
  address: string;
  /** The header `User-Agent`, for example makeready-client/0.3. */
  user_agent: string;
  /** A hash of the `Idempotency-Key`, the same for the same key. */
  idempotency_key_hash: string | null;
  /** Whether the answer to an earlier request with the `Idempotency-Key` was repeated. */
  is_replay: boolean;
  /** The `entity_type` of the record that a write made or changed, for example ticket. */
  record_type: string | null;
  /** Its `entity_id`. */
  record_id: number | null;
  /** The id of its trace, for example 4bf92f3577b34da6a3ce929d0e0e4736. */
  trace_id: string;
  /**
   * What is kept of the body that was sent, as JSON: its first 16 KiB. A value that may say who somebody is stands
   * there as `[redacted string]`, and so does a value of a type that the operation does not take; a key that it does
   * not know begins with `~`: a hash. null if there was no body, and always for a live company, of which no body is
   * kept.
   */
  request_body: string | null;
  /** What is kept of the answer's body, in the same way. */
  response_body: string | null;
}

/** A utility meter of a property: of all of it, of its common areas, or of one unit. */
export interface Meter {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "utility_meter";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** What people call the meter, for example Maple Court 204 electric. */
  name: string;
  /** What it measures. */
  utility_type: Open<MeterUtilityType>;
  /** The part of the property that it measures: `master` is the whole property, `unit` one unit. */
  scope: Open<MeterScope>;
  /** The number on the meter. */
  meter_number: string | null;
  /** The unit of its readings, for example kWh; null if not on record. */
  unit_of_measure: string | null;
  /** Whether it is still in use. Inactive meters stay in the list, with their readings. */
  is_active: boolean;
  /** The property that it belongs to. */
  property: Reference;
  /** The unit that it measures; null unless `scope` is `unit`. */
  unit: Reference | null;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the record was created, for example `import`. */
  source: string;
  /** Link that opens the record for a person. */
  url: string;
}

/** The latest state of a record that has changed. */
export interface MeterChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "utility_meter";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Meter | null;
}

/** A party of the lease. */
export interface PartyCreate {
  /** The first name. */
  first_name?: string | null | undefined;
  /** The last name. */
  last_name?: string | null | undefined;
  /** The e-mail address. It is stored, and no response contains it. */
  email?: string | null | undefined;
  /** The phone number. It is stored, and no response contains it. */
  phone?: string | null | undefined;
  /** The party's role in the lease. */
  role?: PartyRole | null | undefined;
  /** Your own identifier of the party. */
  external_id?: string | null | undefined;
}

/** A new resident's tenancy of the unit. */
export interface MoveInCreate {
  /**
   * The day on which the resident moves in. A later day than today plans the move-in: it changes nothing about the unit
   * until then.
   */
  move_in_date: string;
  /** The lease's first day. */
  lease_start_date: string;
  /** The lease's last day, not before its first. Without it, the lease runs from month to month. */
  lease_end_date?: string | null | undefined;
  /**
   * The `entity_id` of the turn that this move-in ends: the last of the unit's active turns, for which a notice was
   * recorded. It is not needed if that turn's resident has left.
   */
  predecessor_transition_id?: number | null | undefined;
  /** Short name of the system that sends this. Surrounding blanks are removed, and it is stored in lower case. */
  provider: string;
  /** Your own identifier of the residency: the turn's `external_id`. */
  external_id?: string | null | undefined;
  /** The parties of the lease; at least one is a leaseholder with first and last name. */
  parties: PartyCreate[];
}

/** A webhook subscription that was just created, with its signing secret. */
export interface NewSubscription {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "webhook_subscription";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The URL that receives deliveries. */
  destination_url: string;
  /** The events that are delivered, sorted, each once. */
  events: Open<EventKey>[];
  /**
   * The health of the subscription as a whole: `retrying` after a failed attempt, `dead_lettered` after repeated
   * failures (deliveries are still attempted), `paused` by an administrator; `healthy` after the next success.
   */
  health: Open<WebhookHealth>;
  /** The first characters of the signing secret, to tell secrets apart. */
  secret_prefix: string;
  /** When the record was created. */
  created_at: string;
  /** How it was created: `api` over this API, `administrator` in the administrator interface. */
  source: Open<SubscriptionSource>;
  /** The signing secret. Store it: replays and lists do not contain it. */
  secret?: string | undefined;
}

/** What falls due next in a sandbox, by time alone. */
export interface NextDue {
  /** When, by the sandbox's clock. */
  at: string;
  /** The event's key, or the name of a change that fires none by itself, for example ticket.stale. */
  event: string;
}

/** A departure of the unit's current resident. */
export interface NoticeCreate {
  /** The day on which the resident leaves or has left. */
  move_out_date: string;
  /** Short name of the system that sends this. Surrounding blanks are removed, and it is stored in lower case. */
  provider: string;
  /** Why the resident leaves, as a code of the provider. */
  ntv_reason_code?: string | null | undefined;
  /** Where the resident goes, as a code of the provider. */
  departure_destination_code?: string | null | undefined;
  /** Any other notes about the departure. */
  notes?: string | null | undefined;
  /** Your own identifier of the notice. It does not change the turn's `external_id`. */
  external_id?: string | null | undefined;
}

/** A party of a lease. Its e-mail address and phone number are stored, but not part of this record. */
export interface Party {
  /** The party's id. */
  id: number;
  /** The first name, as it was sent. */
  first_name: string | null;
  /** The last name, as it was sent. */
  last_name: string | null;
  /** The party's role in the lease; null if none was sent. */
  role: Open<PartyRole> | null;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
}

/** What a notice or a move-in recorded on a unit. */
export interface OccupancyRecord {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "occupancy";
  /** The id of the transition, which is the `entity_id` of the turn. */
  entity_id: number;
  /** The unit's id. */
  unit_id: number;
  /** The transition's stored status; a turn has it in title case. */
  status: Open<OccupancyStatus>;
  /** The day on which the resident moved in or will move in; null if not on record. */
  move_in_date: string | null;
  /** The day on which the resident leaves or has left; null on a move-in. */
  move_out_date: string | null;
  /** The provider that was sent, stripped and in lower case. */
  occupancy_source: string | null;
  /** When this was recorded. */
  occupancy_fed_at: string | null;
  /** The external_id that was sent with this notice or move-in. */
  external_id: string | null;
  /** The lease that the move-in created; null on a notice. */
  lease: Lease | null;
  /**
   * The parties of the lease: leaseholders with first and last name first, then all others; otherwise in the order in
   * which they were sent. `[]` on a notice.
   */
  parties: Party[];
  /** Link that opens the unit's transitions for a person. */
  url: string;
}

/** A photo to add to a ticket. */
export interface PhotoCreate {
  /**
   * The photo's address: an absolute http or https URL of at most 2,000 characters. The photo is not fetched, so it
   * must stay there for as long as the ticket is to show it.
   */
  photo_url: string;
}

/** A preventive-maintenance task that is overdue. It has no id, and there is nothing to fetch afterwards. */
export interface StalePmTask {
  /** The work to be done. */
  task_name: string;
  /** The property's name. */
  property: string;
  /** Where: a unit, an area, or the whole property, in words. */
  unit: string;
  /** The day by which it was due. */
  due_date: string;
  /** Link that opens the record for a person. */
  url: string;
}

/**
 * A preventive-maintenance task was still open on the morning after its due date, at 06:00 in the company's timezone.
 * Once for each task, even if it is postponed later. A recurring task's next occurrence is a task of its own.
 */
export interface PmStaleEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "pm.stale";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: StalePmTask;
  /** Always null here. */
  change: null;
}

/** A property: one site with its buildings and units. */
export interface Property {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "property";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** What people call the property. */
  name: string;
  /** Its street address. */
  address: string;
  /** The city of the address. */
  city: string | null;
  /** The state or province of the address. */
  state: string | null;
  /** The postal code of the address. */
  postal_code: string | null;
  /** What kind of building it is, in the company's own words, for example Garden. */
  building_type: string | null;
  /** How it is built, in the company's own words, for example Wood frame. */
  construction_type: string | null;
  /** The number of units on the property's own record; the API may list more or fewer units. */
  unit_count: number | null;
  /** The year in which it was built. */
  year_built: number | null;
  /** Degrees north of the equator (WGS 84). */
  latitude: number | null;
  /** Degrees east of Greenwich (WGS 84). */
  longitude: number | null;
  /** When the record was created. */
  created_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the record was created, for example `import`. */
  source: string;
  /** Link that opens the record for a person. */
  url: string;
}

/** The latest state of a record that has changed. */
export interface PropertyChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "property";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Property | null;
}

/** A notice to the residents of a property. It has no id, and there is nothing to fetch afterwards. */
export interface PropertyNotice {
  /** The subject of the notice. */
  subject: string;
  /** The property's name. */
  property: string;
  /** Whom it is for: a unit or an area, a number of units, or the whole property, in words. */
  unit: string;
  /** Link that opens the record for a person. */
  url: string;
  /** When it was published. */
  created_at: string;
  /** When the announced work or event takes place, in words. */
  when: string;
}

/** A notice to the residents of a property was published. Once for each notice. */
export interface PropertyNoticePublishedEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "property.notice.published";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: PropertyNotice;
  /** Always null here. */
  change: null;
}

/** A reading: the consumption that one meter measured in one period. */
export interface Reading {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "utility_reading";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The meter's id. */
  meter_id: number;
  /** The instant from which it counts. */
  period_start: string;
  /** The instant up to which it counts. */
  period_end: string;
  /**
   * The consumption in the period, in `unit_of_measure`; negative if more was fed back than drawn. Numbers of up to
   * fifteen digits are exact.
   */
  consumption: number;
  /** The unit of `consumption`, for example kWh, as it was when the meter was read; null if not on record. */
  unit_of_measure: string | null;
  /** The cost of the period, in the company's currency; null if not on record. */
  cost: number | null;
  /** Whether the consumption was estimated rather than read. */
  is_estimated: boolean;
  /** When the record was created. */
  created_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the record was created, for example `import`. */
  source: string;
}

/** The latest state of a record that has changed. */
export interface ReadingChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "utility_reading";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Reading | null;
}

/** A reading to store. If the meter has one of the same period, it is changed; what is left out there stays. */
export interface ReadingCreate {
  /** The instant from which it counts, with a UTC offset. */
  period_start: string;
  /** The instant up to which it counts, with a UTC offset. */
  period_end: string;
  /** The consumption in the period; negative if more was fed back than drawn. */
  consumption: number;
  /** The unit of `consumption`; that of the meter if left out. */
  unit_of_measure?: string | null | undefined;
  /** The cost of the period, in the company's currency. */
  cost?: number | null | undefined;
  /** Whether the consumption was estimated rather than read; false if left out. */
  is_estimated?: boolean | null | undefined;
}

/** What became of one reading. */
export interface ReadingResult {
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** `unchanged`: the reading was stored before with these values. */
  outcome: Open<ReadingResultOutcome>;
}

/** What became of the readings of a request. */
export interface ReadingResults {
  /** One for each reading, in the order of the request. */
  data: ReadingResult[];
}

/** Readings of one meter to store. */
export interface ReadingsCreate {
  /** The readings, each of another period. All are stored, or none. */
  readings: ReadingCreate[];
}

/** Which events to send to a subscription again. */
export interface ReplayCreate {
  /** Only events that were stored at this instant or later. It must carry a UTC offset. */
  since: string;
  /** Only events that were stored before this instant; left out: until now. */
  until?: string | null | undefined;
  /** Only events with these keys, which the subscription must name; left out: all that it names. */
  events?: EventKey[] | null | undefined;
  /**
   * `all`: every event, whether it arrived, failed or was never sent to this subscription. `parked`: those whose
   * delivery is parked. `failed`: those whose delivery is parked or waits after a failed attempt. Left out: `all`.
   */
  state?: ReplayState | null | undefined;
}

/** A measure of a report. */
export interface ReportMeasure {
  /** The measure's name, for example first_response. */
  name: string;
  /**
   * A count is of the records of the period, and a duration measures each of them, too. A level is how many there are
   * at the end of the period, such as a backlog.
   */
  kind: Open<ReportMeasureKind>;
  /** What is counted, or the unit of a duration: `minutes` or `days`. For example minutes. */
  unit: string;
  /** What it says, in a sentence. */
  definition: string;
}

/** What a measure was in a period. */
export interface ReportFigure {
  /** The name of one of `measures`, for example first_response. */
  measure: string;
  /** How many records the figure is of; of a level, how many there are at the end of the period. For example 42. */
  count: number;
  /**
   * The duration that half of the records do not exceed, in the measure's unit; null if the measure is no duration or
   * there are no records. Up to 64 it is exact, above to within 2 %. For example 95.
   */
  median: number | null;
  /** The duration that nine of ten records do not exceed, as `median`. For example 1440. */
  p90: number | null;
}

/** The figures of a month or a day. */
export interface ReportPeriod {
  /** Its first day, for example 2026-03-01. */
  starts_on: string;
  /** A figure of each measure, in their order. */
  figures: ReportFigure[];
}

/** The figures of a group of records in the whole period. */
export interface ReportGroup {
  /**
   * The record that the group is named after, such as the property; null if the group has a value alone. For example 7.
   */
  entity_id: number | null;
  /**
   * The name of that record, or the value that the group's records share; null for records without one. For example
   * Alder Court.
   */
  name: string | null;
  /** A figure of each measure, in their order. */
  figures: ReportFigure[];
}

/** Figures of a period, in all, by month or day, and by group. */
export interface Report {
  /** The report, as in its path, for example tickets. */
  name: string;
  /** The first month of the period, for example 2026-01. */
  from_month: string;
  /** The last month of the period, for example 2026-03. */
  to_month: string;
  /** The company's timezone, in which days and months begin. For example America/Chicago. */
  timezone: string;
  /** The property whose records alone count; null for all. For example 7. */
  property_id: number | null;
  /** The length of `buckets`. */
  bucket: Open<ReportBucket>;
  /** What `groups` have in common, for example category; null without groups. */
  group_by: string | null;
  /** False while figures of older records are still being made, such as after an upgrade. */
  is_complete: boolean;
  /** What each figure says. */
  measures: ReportMeasure[];
  /** The figures of the whole period. */
  total: ReportFigure[];
  /** The figures of each month or day that has begun, ascending. */
  buckets: ReportPeriod[];
  /** The groups, at most 100, those with the most records first. */
  groups: ReportGroup[];
  /** How many more groups have figures. For example 0. */
  groups_left_out: number;
}

/** A sandbox's clock, and what its last advance has done. */
export interface SandboxClock {
  /** The instant that the sandbox's clock says, which records and events have. */
  now: string;
  /** `advancing` until everything that falls due up to `target` is done. */
  status: Open<SandboxClockStatus>;
  /** Where the last advance began, by the sandbox's clock; null before the first. */
  start: string | null;
  /** Where it leads; null before the first advance. */
  target: string | null;
  /**
   * How often the last advance has fired each event, and made each other change, by their names; without those that it
   * has not.
   */
  done: Record<string, number>;
  /** Why an advance stands still, or why `next_due` is not known: a sentence for people. */
  waiting: string | null;
  /** What falls due next; null while the clock advances, and if time alone makes nothing due. */
  next_due: NextDue | null;
}

/** How far to advance a sandbox's clock: one of both. */
export interface SandboxClockAdvance {
  /** The instant to advance to, by the sandbox's clock. It must carry a UTC offset. */
  advance_to?: string | null | undefined;
  /** How far, as an ISO 8601 duration of weeks, days, hours, minutes and seconds, for example P1DT2H. */
  advance_by?: string | null | undefined;
}

/** All that a search has found. */
export interface SearchResults {
  /**
   * The records, one of a kind at most; `[]` where there are none. A feed may give several turns the same
   * `external_id`: of these up to 100.
   */
  data: FoundRecord[];
}

/** A member of the company's staff, to whom tickets can be assigned. */
export interface StaffMember {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "staff";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The person's name. */
  name: string;
  /** Whether the person still works for the company. Those who have left stay in the list, with their work. */
  is_active: boolean;
  /** When the record was created. */
  created_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the record was created, for example `import`. */
  source: string;
}

/** A make-ready task that is overdue. It has no id, and there is nothing to fetch afterwards. */
export interface StaleTurnTask {
  /** The kind of work. */
  task_type: string;
  /** The property's name. */
  property: string;
  /** The unit's name. */
  unit: string;
  /** Link that opens the record for a person. */
  url: string;
}

/** The new status of a ticket, and the fields that belong to it. */
export interface StatusChange {
  /** The ticket's new status; every status can follow every other one. */
  status: TicketStatus;
  /** The work done, in 5 or more words. Required with status Completed, refused with any other. */
  note?: string | null | undefined;
  /** Why the ticket is cancelled. Required with status Cancelled, refused with any other. */
  cancellation_reason_code?: TicketCancellationReasonCode | null | undefined;
  /** The reason in 5 or more words. Required with cancellation_reason_code see_notes, refused with any other. */
  cancellation_notes?: string | null | undefined;
}

/** A webhook subscription. */
export interface Subscription {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "webhook_subscription";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The URL that receives deliveries. */
  destination_url: string;
  /** The events that are delivered, sorted, each once. */
  events: Open<EventKey>[];
  /**
   * The health of the subscription as a whole: `retrying` after a failed attempt, `dead_lettered` after repeated
   * failures (deliveries are still attempted), `paused` by an administrator; `healthy` after the next success.
   */
  health: Open<WebhookHealth>;
  /** The first characters of the signing secret, to tell secrets apart. */
  secret_prefix: string;
  /** When the record was created. */
  created_at: string;
  /** How it was created: `api` over this API, `administrator` in the administrator interface. */
  source: Open<SubscriptionSource>;
}

/** A webhook subscription to create. */
export interface SubscriptionCreate {
  /**
   * The URL that receives deliveries: https on port 443, with a public host. Other schemes and ports, private or
   * loopback addresses, and more than 2,048 characters are refused. It is stored as it was sent.
   */
  destination_url: string;
  /** The events to deliver. They are stored sorted, each once. */
  events: EventKey[];
}

/** A test of a subscription: an object without keys. */
export interface TestCreate {
}

/** A maintenance ticket. */
export interface Ticket {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "ticket";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The number that staff and residents see. It is unique within one property only, so filter by property, too. */
  ticket_number: number | null;
  /** The problem, in one line. */
  title: string;
  /** The full report. */
  description: string | null;
  /** The trade that the ticket is for. */
  category: Open<TicketCategory>;
  /** A narrower kind of work, in the company's own words. */
  subcategory: string | null;
  /** How urgent it is. */
  priority: Open<TicketPriority>;
  /** The ticket's status. Every status can follow every other one, Completed and Cancelled included. */
  status: Open<TicketStatus>;
  /** The property that the ticket belongs to. */
  property: Reference;
  /** The unit that the ticket is tied to; null for work elsewhere on the property. */
  unit: Reference | null;
  /** The unit number as it was typed when the ticket was opened; it may match no unit on record. */
  unit_number: string | null;
  /** The room where the work is, for example Kitchen. */
  room: string | null;
  /** Distinguishes rooms of the same kind, for example 2 for the second bathroom. */
  room_instance: string | null;
  /** Whether the resident allows staff to enter when the home is empty. */
  permission_to_enter: boolean;
  /** When the resident would like the visit, in their own words. */
  preferred_access_time: string | null;
  /** The member of staff to whom the ticket is assigned; null if none is. */
  assignee: Assignee | null;
  /** The vendor to whom the ticket is assigned; null if none is. */
  assigned_vendor: Reference | null;
  /** The address of a photo of the problem. */
  photo_url: string | null;
  /** When the ticket was opened. */
  created_at: string;
  /** When the ticket last changed; `updated_since` compares this. */
  updated_at: string;
  /**
   * When it was completed; null unless status is Completed, and for a completed ticket that came in a file without the
   * instant.
   */
  completed_at: string | null;
  /**
   * When it was cancelled; null unless status is Cancelled, and for a cancelled ticket that came in a file without the
   * instant.
   */
  cancelled_at: string | null;
  /** Why it was cancelled; null unless status is Cancelled. */
  cancellation_reason_code: Open<TicketCancellationReasonCode> | null;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /**
   * How the ticket was opened: over this API, by staff, by a resident in the portal, from an inspection, or by an
   * import.
   */
  source: Open<TicketSource>;
  /** Link that opens the record for a person. */
  url: string;
}

/** The latest state of a record that has changed. */
export interface TicketChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "ticket";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Ticket | null;
}

/** A comment on a ticket. It is part of no ticket's record; people see it with the ticket. */
export interface TicketComment {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "ticket_comment";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The ticket's id. */
  ticket_id: number;
  /** What is said. */
  text: string;
  /** Whose words they are. */
  author: Open<CommentAuthor>;
  /** When the record was created. */
  created_at: string;
}

/** A ticket to open. Its status is always Open. */
export interface TicketCreate {
  /** The unit that the ticket is for; it must be visible to the key. */
  unit_id: number;
  /** The problem, in one line. */
  title: string;
  /** The trade that the ticket is for. */
  category: TicketCategory;
  /** The asset that the ticket is about; it must be on the unit's property. */
  asset_id?: number | null | undefined;
  /** The full report; empty if left out. */
  description?: string | null | undefined;
  /** How urgent it is; Medium if left out. */
  priority?: TicketPriority | null | undefined;
}

/**
 * A ticket was opened by staff, by a resident, by a failed row of an inspection, or with `POST /tickets`; the ticket's
 * `source` says which. Once for each ticket; a row that fails again opens no second ticket.
 */
export interface TicketCreatedEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "ticket.created";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: Ticket;
  /** Always null here. */
  change: null;
}

/**
 * Neither staff nor a vendor did anything about a ticket that a resident opened for longer than the company's threshold
 * (72 hours unless the company has set another). Residents' own comments and changes do not count. A ticket that is
 * Completed or Cancelled is never stale. Again after each further threshold; after an outage once for all that were
 * missed.
 */
export interface TicketStaleEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "ticket.stale";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: Ticket;
  /** Always null here. */
  change: null;
}

/** What moved. */
export interface TicketStatusChangedEventChange {
  /** The field that moved. */
  field: "status";
  /** Its value before. */
  from: Open<TicketStatus>;
  /** Its value now. */
  to: Open<TicketStatus>;
}

/**
 * A ticket's status changed, or a closed ticket was closed again: by staff or with `PATCH /tickets/{ticket_id}`. If it
 * was closed again, `from` and `to` are equal: Completed again has another `completed_at`; Cancelled again has another
 * `cancelled_at`, and another `cancellation_reason_code` or other notes. Once for each change. Cancelled again with the
 * stored reason and notes fires nothing; neither does Open, In Progress or On Hold again.
 */
export interface TicketStatusChangedEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "ticket.status_changed";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: Ticket;
  /** What moved. */
  change: TicketStatusChangedEventChange;
}

/** An event that is to happen in a sandbox, and at most one record. */
export interface TriggerCreate {
  /** The event's key. */
  event: EventKey;
  /** The ticket of `ticket.status_changed` or `ticket.stale`. */
  ticket_id?: number | null | undefined;
  /** The turn of `turn.status_changed` or `turn.schedule_changed`; that of the new task of `turn.task.stale`. */
  turn_id?: number | null | undefined;
  /** The vendor of `vendor.hold`. */
  vendor_id?: number | null | undefined;
  /** The inspection of `inspection.stale`. */
  inspection_id?: number | null | undefined;
  /**
   * The property of the new ticket of `ticket.created`, of the notice of `property.notice.published`, or of the new
   * task of `pm.stale`.
   */
  property_id?: number | null | undefined;
}

/**
 * A turn: one transition of a unit, from a resident's move-in to the departure and the work after it. A first move-in,
 * before any departure, is a turn too.
 */
export interface Turn {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "turn";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /**
   * A turn is Active from the record of its move-in until the next resident moves in; then it is Completed. A unit may
   * have several that are Active: at most one that has begun, and planned ones, whose move_in_date is later, or whose
   * unit is not free yet.
   */
  status: Open<TurnStatus>;
  /** The property that the unit belongs to. */
  property: Reference;
  /** The unit. */
  unit: Reference;
  /** The day on which the resident leaves or has left; null without a departure. */
  move_out_date: string | null;
  /** The day on which the resident moved in or will. */
  move_in_date: string | null;
  /**
   * The day on which the unit is expected to be ready again; null if the turn has no move_out_date, or its work is not
   * planned yet.
   */
  projected_ready_on: string | null;
  /** The slug of the system that feeds this turn, in lower case; null when staff manage it. */
  occupancy_source: string | null;
  /** When that system last wrote to it. */
  occupancy_fed_at: string | null;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the record was created, for example `import`. */
  source: Open<TurnSource>;
  /** Link that opens the turn's own page for a person. */
  url: string;
}

/** The latest state of a record that has changed. */
export interface TurnChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "turn";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Turn | null;
}

/** What moved. */
export interface TurnScheduleChangedEventChange {
  /** The field that moved. */
  field: "projected_ready_on";
  /** Its value before. */
  from: string | null;
  /** Its value now. */
  to: string | null;
}

/**
 * A turn's projected ready date changed. Either date may be null: there was none before, or there is none now. Once for
 * each change. Changes of make-ready tasks do not change the date.
 */
export interface TurnScheduleChangedEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "turn.schedule_changed";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: Turn;
  /** What moved. */
  change: TurnScheduleChangedEventChange;
}

/** What moved. */
export interface TurnStatusChangedEventChange {
  /** The field that moved. */
  field: "unit_status";
  /** Its value before. */
  from: Open<UnitStatus> | null;
  /** Its value now. */
  to: Open<UnitStatus>;
}

/**
 * A unit with a turn changed status: by a notice, a move-in that begins, staff on the turn board, or at 06:00 in the
 * company's timezone because its resident's move-out date was the day before and no resident follows. A move-in of a
 * later date fires when it begins, just after midnight in the company's timezone. `from` and `to` are the unit's old
 * and new status; `from` is null if the unit had none. `data` is the unit's current turn, or else its newest. Once for
 * each change. A unit that never had a turn fires nothing.
 */
export interface TurnStatusChangedEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "turn.status_changed";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: Turn;
  /** What moved. */
  change: TurnStatusChangedEventChange;
}

/**
 * A make-ready task of a turn was still open on the morning after its scheduled date, at 06:00 in the company's
 * timezone. Once for each task, even if it is postponed later.
 */
export interface TurnTaskStaleEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "turn.task.stale";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: StaleTurnTask;
  /** Always null here. */
  change: null;
}

/** A unit: one home or suite of a property. */
export interface Unit {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "unit";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The name that people see, for example Maple Court 204. */
  name: string;
  /** The number on the door. */
  unit_number: string | null;
  /** Whether it is occupied, and if not, whether it is ready; null if unknown. */
  unit_status: Open<UnitStatus> | null;
  /** The property that it belongs to. */
  property: Reference;
  /** The plan that it is built to; null if none is assigned. */
  floorplan: Floorplan | null;
  /** The building that it is in; null if the property's buildings are not recorded. */
  building: Reference | null;
  /** The floor that was declared for it. */
  floor: Reference | null;
  /** When the record was created. */
  created_at: string;
  /** Your own identifier of the record, where it was synced from your system; else null. */
  external_id: string | null;
  /** How the record was created, for example `import`. */
  source: string;
  /**
   * The day on which the unit's active turn is expected to be ready; null without one. It is a projection, and not the
   * day on which the unit became ready.
   */
  projected_ready_on: string | null;
  /** Link that opens the property's unit status view for a person. */
  url: string;
}

/** The latest state of a record that has changed. */
export interface UnitChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "unit";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Unit | null;
}

/** A vendor: the company's relationship with a business that works for it. Inactive vendors are included. */
export interface Vendor {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "vendor";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The company's name for the vendor: its nickname, or else the legal name of the business. */
  name: string;
  /** The legal entity behind the vendor. */
  business: Business;
  /** The average of its ratings; null where there is none. */
  avg_rating: number | null;
  /** How many ratings it has. */
  rating_count: number;
  /** Whether the company works with the vendor at present. */
  is_active: boolean;
  /** At which of the company's properties the vendor may work: all of them, or those selected for it. */
  property_visibility: Open<VendorPropertyVisibility>;
  /** When the relationship began. */
  onboarded_at: string;
  /** When the relationship ended; null where it has not. */
  retired_at: string | null;
  /** Link that opens the record for a person. */
  url: string;
  /** The result of the last hourly check of its insurance and documents; `unknown` before the first check. */
  last_compliance_state: Open<VendorLastComplianceState>;
}

/** The latest state of a record that has changed. */
export interface VendorChange {
  /** Always 1. */
  schema_version: 1;
  /** The kind of the record. */
  entity_type: "vendor";
  /** The record's `entity_id`. */
  entity_id: number;
  /** Whether the record can no longer be seen: its fetch answers 404. It comes again if it can be seen again. */
  gone: boolean;
  /** The record at its latest state, as its fetch returns it, to the byte; null if it is gone. */
  record: Vendor | null;
}

/** What moved. */
export interface VendorHoldEventChange {
  /** The field that moved. */
  field: "on_hold";
  /** Its value before. */
  from: boolean;
  /** Its value now. */
  to: boolean;
}

/**
 * A vendor was placed on hold, by an administrator or because its insurance has lapsed. Once for each hold. The end of
 * a hold fires nothing.
 */
export interface VendorHoldEvent {
  /** Version of the shape: 1. */
  schema_version: 1;
  /** Unique to the event; retries carry the same one. Use it to drop duplicates. */
  event_id: string;
  /** The event key. Ignore events whose key you do not know: new ones may come. */
  event: "vendor.hold";
  /** When it happened; the delivery may come an hour later or more. Orders the events of one record. */
  occurred_at: string;
  /** The company that it happened in. */
  company_id: number;
  data: Vendor;
  /** What moved. */
  change: VendorHoldEventChange;
}

/** One attempt of a delivery. */
export interface WebhookAttempt {
  /** 1 is the first; the header `Service-Attempt`. */
  number: number;
  /**
   * Why it was made: `sweep` on its date, `replay` and `test` over this API, the others in the administrator interface.
   */
  cause: Open<WebhookAttemptCause>;
  /** The replay that it was made for; the header `Service-Replay`. */
  replay_id: number | null;
  /** When it began. */
  started_at: string;
  /** Of the whole attempt. */
  duration_milliseconds: number;
  /** From the start to the first byte of the response; null if none arrived. */
  first_byte_milliseconds: number | null;
  /** The HTTP status of the response; null if none arrived. */
  status: number | null;
  /** Why it failed, for example `status`, `timeout` or `certificate`; null after a success. */
  error: string | null;
}

/** One attempt of a delivery, with the response to it. */
export interface WebhookAttemptAnswer {
  /** 1 is the first; the header `Service-Attempt`. */
  number: number;
  /**
   * Why it was made: `sweep` on its date, `replay` and `test` over this API, the others in the administrator interface.
   */
  cause: Open<WebhookAttemptCause>;
  /** The replay that it was made for; the header `Service-Replay`. */
  replay_id: number | null;
  /** When it began. */
  started_at: string;
  /** Of the whole attempt. */
  duration_milliseconds: number;
  /** From the start to the first byte of the response; null if none arrived. */
  first_byte_milliseconds: number | null;
  /** The HTTP status of the response; null if none arrived. */
  status: number | null;
  /** Why it failed, for example `status`, `timeout` or `certificate`; null after a success. */
  error: string | null;
  /** The first 4 KiB of the response's body. */
  response_excerpt: string;
}

/** An event's delivery to a subscription, without the event itself. */
export interface WebhookDelivery {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "webhook_delivery";
  /** The id of the subscription, the same in all deliveries of one list. */
  entity_id: number;
  /**
   * The delivery's own id, which stays for as long as the delivery exists. It has at most 64 characters; treat it as
   * opaque.
   */
  delivery_id: string;
  /** The event's id, as its envelope has it. */
  event_id: string;
  /** The event's key; `webhook.test` for a test. */
  event: string;
  /** When the event happened. */
  occurred_at: string;
  /** `waiting` for its next attempt; `parked` when the retries are used up; `failed`: a test that did not arrive. */
  state: Open<WebhookDeliveryState>;
  /** When the next attempt is due; null unless the delivery waits. */
  next_attempt_at: string | null;
  /** When the delivery is deleted. */
  expires_at: string;
  /** Ascending by number. */
  attempts: WebhookAttempt[];
}

/** An event's delivery to a subscription, with the responses to its attempts. */
export interface WebhookDeliveryAnswers {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "webhook_delivery";
  /** The id of the subscription, the same in all deliveries of one list. */
  entity_id: number;
  /**
   * The delivery's own id, which stays for as long as the delivery exists. It has at most 64 characters; treat it as
   * opaque.
   */
  delivery_id: string;
  /** The event's id, as its envelope has it. */
  event_id: string;
  /** The event's key; `webhook.test` for a test. */
  event: string;
  /** When the event happened. */
  occurred_at: string;
  /** `waiting` for its next attempt; `parked` when the retries are used up; `failed`: a test that did not arrive. */
  state: Open<WebhookDeliveryState>;
  /** When the next attempt is due; null unless the delivery waits. */
  next_attempt_at: string | null;
  /** When the delivery is deleted. */
  expires_at: string;
  /** Ascending by number. */
  attempts: WebhookAttemptAnswer[];
}

/** The filter of a webhook subscription. */
export interface WebhookFilter {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "webhook_filter";
  /** The id of the subscription. */
  entity_id: number;
  /** Only events of these properties, ascending; null: of all. */
  property_ids: number[] | null;
  /** Only tickets with these categories; null: with any. */
  categories: Open<TicketCategory>[] | null;
  /** Only tickets with these priorities; null: with any. */
  priorities: Open<TicketPriority>[] | null;
}

/** Of which properties, categories and priorities a subscription hears. It replaces the filter that it has. */
export interface WebhookFilterSet {
  /**
   * Only events of these properties, 1,000 at most; null or left out: of all. Whether there is a property with an id is
   * not checked. An event whose record names no property's id passes.
   */
  property_ids?: number[] | null | undefined;
  /** Only tickets with these categories; null or left out: with any. Events of other records pass. */
  categories?: TicketCategory[] | null | undefined;
  /** Only tickets with these priorities; null or left out: with any. Events of other records pass. */
  priorities?: TicketPriority[] | null | undefined;
}

/** A replay: the events of a period, sent to a subscription once more. */
export interface WebhookReplay {
  /** Version of the shape: 1. New fields do not change it. */
  schema_version: 1;
  /** What kind of record this is. */
  entity_type: "webhook_replay";
  /** The record's id, stable for its life; where the record can be fetched, the id in the path. */
  entity_id: number;
  /** The subscription that the events are sent to. */
  subscription_id: number;
  /** Only events that were stored at this instant or later. */
  since: string;
  /** Only events that were stored before this instant. */
  until: string;
  /** Only events with these keys; sorted, each once. */
  events: Open<EventKey>[];
  /** Which deliveries it is about; see ReplayCreate. */
  state: Open<ReplayState>;
  /** `finished` when each delivery was attempted. */
  status: Open<WebhookReplayStatus>;
  /**
   * The deliveries that it was about when it was requested. Those whose events do not pass the subscription's filter
   * are taken off while it runs.
   */
  matched: number;
  /** Those that were not attempted yet. */
  waiting: number;
  /** Attempts of this replay that arrived. */
  succeeded: number;
  /** Attempts of this replay that failed. Such a delivery is parked, or goes on with the retries that it had left. */
  failed: number;
  /** When it was requested. */
  created_at: string;
  /** When each delivery had been attempted; null until then. */
  finished_at: string | null;
}

/** The key that asked, and its company. */
export interface Whoami {
  /** The version of this API. */
  api_version: "v1";
  /** The company whose records the key sees. */
  company: Company;
  /** The key itself. */
  key: Key;
}

/** An event whose key this version does not know. */
export interface UnknownEvent {
  schema_version: number;
  event_id: string;
  event: string;
  occurred_at: string;
  company_id: number;
  data: Record<string, unknown>;
  change: Record<string, unknown> | null;
}

/** The envelope of each event by its key. */
export interface Events {
  "ticket.created": TicketCreatedEvent;
  "ticket.status_changed": TicketStatusChangedEvent;
  "turn.status_changed": TurnStatusChangedEvent;
  "turn.schedule_changed": TurnScheduleChangedEvent;
  "vendor.hold": VendorHoldEvent;
  "ticket.stale": TicketStaleEvent;
  "inspection.stale": InspectionStaleEvent;
  "property.notice.published": PropertyNoticePublishedEvent;
  "turn.task.stale": TurnTaskStaleEvent;
  "pm.stale": PmStaleEvent;
}
export type Event = Events[keyof Events] | UnknownEvent;
