"""The SQL of the peers by hand."""

from __future__ import annotations

# entity_id, ticket_number, title, description, category, subcategory, priority, status: 8 columns; then 24 more.
_COLUMNS = """
t.id, t.ticket_number, t.title, t.description, t.category, t.subcategory, t.priority, t.status,
p.id, p.name, p.external_id, u.id, u.name, u.external_id, t.unit_number,
t.room, t.room_instance, t.permission_to_enter, t.preferred_access_time,
s.id, s.name, v.id, v.name, v.external_id,
t.photo_url, t.created_at, t.updated_at, t.completed_at, t.cancelled_at, t.cancellation_reason_code,
t.external_id, t.source"""
_JOINED = """
FROM ticket t JOIN property p ON p.id = t.property_id LEFT JOIN unit u ON u.id = t.unit_id
LEFT JOIN staff s ON s.id = t.assignee_id LEFT JOIN vendor v ON v.id = t.vendor_id"""
TICKET = f"SELECT {_COLUMNS} {_JOINED} WHERE t.company_id = $1 AND t.id = $2"
# The number of rows is in the text: for a parameter PostgreSQL plans as for a tenth of all tickets, which costs three
# times as much.
PAGE = f"""
SELECT {_COLUMNS} {_JOINED}
WHERE t.company_id = $1 AND t.id > $2{{conditions}} ORDER BY t.id LIMIT {{rows}}"""
FILTERS = {
    "property_id": "t.property_id =",
    "unit_id": "t.unit_id =",
    "status": "t.status =",
    "updated_since": "t.updated_at >=",
    "ticket_number": "t.ticket_number =",
}


def page(names: tuple[str, ...], rows: int) -> str:
    """The page's statement for a set of filters and a number of rows: company, last id, then the filters' values."""
    conditions = "".join(f" AND {FILTERS[name]} ${number}" for number, name in enumerate(names, 3))
    return PAGE.format(conditions=conditions, rows=rows)


CALLER = """
SELECT k.id, k.company_id, c.active, k.scope, k.administrator_id, k.revoked_at IS NOT NULL
FROM api_key k JOIN company c ON c.id = k.company_id WHERE k.digest = $1"""
# The lock of a key, and the reply that is kept for it.
CLAIM = """
SELECT locked.is_free, i.fingerprint, i.status, i.body
FROM (SELECT pg_try_advisory_xact_lock($1) AS is_free) locked
LEFT JOIN idempotency i ON i.company_id = $2 AND i.api_key_id = $3 AND i.idempotency_key = $4"""
# What a new ticket needs: its place, whether the asset is there, its id, its number, its instant.
PLACE = """
WITH place AS (
  SELECT p.id AS property_id, p.name AS property_name, p.external_id AS property_external_id,
    u.id AS unit_id, u.name AS unit_name, u.external_id AS unit_external_id, u.unit_number,
    $3::bigint IS NULL OR EXISTS (SELECT FROM asset a
      WHERE a.company_id = $1 AND a.id = $3 AND a.property_id = u.property_id) AS has_asset
  FROM unit u JOIN property p ON p.id = u.property_id WHERE u.company_id = $1 AND u.id = $2
), number AS (
  INSERT INTO ticket_number (property_id, last) SELECT property_id, 1 FROM place WHERE has_asset
  ON CONFLICT (property_id) DO UPDATE SET last = ticket_number.last + 1 RETURNING last
)
SELECT place.*, nextval('ticket_id') AS id, (SELECT last FROM number), clock_timestamp() AS moment FROM place"""
CREATE = """
WITH created AS (
  INSERT INTO ticket (id, company_id, ticket_number, title, description, category, priority, status, property_id,
    unit_id, asset_id, unit_number, permission_to_enter, created_at, updated_at, source, created_by_administrator_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7, 'Open', $8, $9, $10, $11, false, $12, $12, 'api', $13)
), event AS (
  INSERT INTO event (id, company_id, event, data, occurred_at)
  VALUES (gen_random_uuid(), $2, 'ticket.created', $14, $12)
)
INSERT INTO idempotency (company_id, api_key_id, idempotency_key, fingerprint, status, body)
VALUES ($2, $15, $16, $17, 201, $14)"""
HELD = f"""
SELECT {_COLUMNS}, greatest(clock_timestamp(), t.updated_at + interval '1 microsecond'),
  (SELECT photo_required_to_complete FROM ticket_policy o WHERE o.company_id = $1)
{_JOINED} WHERE t.company_id = $1 AND t.id = $2 FOR NO KEY UPDATE OF t"""  # noqa: S608 - constants alone
CHANGE = """
WITH changed AS (
  UPDATE ticket SET status = $2, updated_at = $3, completed_at = $4, cancelled_at = $5, cancellation_reason_code = $6
  WHERE id = $1
), comment AS (
  INSERT INTO ticket_comment (ticket_id, kind, body, created_at, administrator_id, api_key_id)
  SELECT $1, $7, $8, $3, $9, $10 WHERE $8::text IS NOT NULL RETURNING id
), history AS (
  INSERT INTO ticket_status_change (ticket_id, occurred_at, from_status, to_status, cancellation_reason_code,
    comment_id, administrator_id, api_key_id, request_id)
  SELECT $1, $3, $11, $2, $6, (SELECT id FROM comment), $9, $10, $12
), event AS (
  INSERT INTO event (id, company_id, event, data, change, occurred_at)
  SELECT gen_random_uuid(), $13, 'ticket.status_changed', $14, $15, $3 WHERE $15::text IS NOT NULL
)
INSERT INTO idempotency (company_id, api_key_id, idempotency_key, fingerprint, status, body)
VALUES ($13, $10, $16, $17, 200, $14)"""
KEEP = """
INSERT INTO idempotency (company_id, api_key_id, idempotency_key, fingerprint, status, body)
VALUES ($1, $2, $3, $4, 200, $5)"""
