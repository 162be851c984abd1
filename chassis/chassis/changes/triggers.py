"""The triggers that record changes, as SQL: for tables that tests declare, and to be copied into migrations."""

from __future__ import annotations

from collections.abc import Sequence

AT_ONCE_ROWS = 200  # one less than the LIMIT below
"""So many records are served with the new names of what they show from the transaction of the change on. The others
follow: see `chassis.changes.tracking`."""

# Parameters: company_id, and the value of refers_by. Only the index with all three columns has the order.
DEPENDANTS = (
    "SELECT company_id, id FROM {record} WHERE company_id = ANY (ARRAY[$1]) AND {refers_by} = ANY (ARRAY[$2])"
    " AND ({served}) ORDER BY company_id, {refers_by}, id LIMIT 201"
)
_ARGUMENTS = {name: f"'\n        || TG_ARGV[{n}] || '" for name, n in (("record", 0), ("refers_by", 1), ("served", 3))}

FUNCTIONS = (
    # A new row gets its transaction by a default. This gives a changed row its own, whichever statement changes it.
    """CREATE OR REPLACE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$""",
    # Arguments: the table of the records that show this row, their column, this row's column that it equals, and the
    # condition of the records that readers see. The first records of a transaction lose their documents and move in it,
    # so that the next read has the new name; the mark is for all others. Whoever has a record locked is not waited for.
    f"""CREATE OR REPLACE FUNCTION mark_dependants() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    at_once integer := coalesce(nullif(current_setting('makeready.at_once', true), ''), '{AT_ONCE_ROWS}');
    dependants text := '{DEPENDANTS.format(**_ARGUMENTS)}';
    mark record;
    few integer;
BEGIN
    FOR mark IN
        SELECT DISTINCT (shown ->> 'company_id')::bigint AS company_id, (shown ->> TG_ARGV[2])::bigint AS refers_to
        FROM (VALUES (to_jsonb(OLD)), (to_jsonb(NEW))) AS both_rows (shown) WHERE shown ->> TG_ARGV[2] IS NOT NULL
    LOOP
        INSERT INTO changes_to_touch (company_id, record, refers_by, refers_to)
        VALUES (mark.company_id, TG_ARGV[0], TG_ARGV[1], mark.refers_to);
        CONTINUE WHEN at_once = 0;
        EXECUTE 'SELECT count(*) FROM (' || dependants || ') AS dependant' INTO few
        USING mark.company_id, mark.refers_to;
        CONTINUE WHEN few = 0 OR few > at_once;
        EXECUTE 'WITH free AS MATERIALIZED (' || dependants || ' FOR NO KEY UPDATE SKIP LOCKED) UPDATE ' || TG_ARGV[0]
            || ' AS record SET document = NULL, document_shape = NULL, changed_xid = pg_current_xact_id() FROM free'
            ' WHERE record.company_id = free.company_id AND record.id = free.id'
        USING mark.company_id, mark.refers_to;
        at_once := at_once - few;
        PERFORM set_config('makeready.at_once', at_once::text, true);
    END LOOP;
    RETURN NULL;
END $$""",  # noqa: S608 - of constants alone
)
"""Once for each database, before the triggers."""


_STORED = "(NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape)"


def recorded(table: str, beside: Sequence[str] = (), *, documents: bool = False) -> list[str]:
    """The trigger that records each change of a table's rows; the table has the column changed_xid.

    A change of only the columns `beside`, which no record shows, does not count. If the rows have documents, a change
    without a new document leaves none.
    """
    if not beside and not documents:
        return [
            f"CREATE OR REPLACE TRIGGER {table}_changed BEFORE UPDATE ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION record_change()"
        ]
    document_columns = ("document", "document_shape") if documents else ()
    ignored = "\n    ".join(f"OLD.{name} := NEW.{name};" for name in (*beside, *document_columns))
    says = f"DECLARE\n    is_stored boolean := {_STORED};\n" if documents else ""
    unless = """
        IF NOT is_stored THEN
            NEW.document := NULL; NEW.document_shape := NULL;
        END IF;"""
    return [
        f"""CREATE OR REPLACE FUNCTION record_change_of_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
{says}BEGIN
    {ignored}
    IF OLD *<> NEW THEN
        NEW.changed_xid := pg_current_xact_id();{unless if documents else ""}
    END IF;
    RETURN NEW;
END $$""",
        f"CREATE OR REPLACE TRIGGER {table}_changed BEFORE UPDATE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION record_change_of_{table}()",
    ]


def followed(
    record: str,
    refers_by: str,
    table: str,
    columns: Sequence[str],
    *,
    key: str = "id",
    comes_and_goes: bool = False,
    served: str = "true",
) -> list[str]:
    """The triggers that mark the records of a table when a row changes that they show.

    The records' table is `record`, and its column `refers_by` equals the column `key` of the row's `table`, whose
    `columns` the records show. Where it `comes_and_goes`, rows may be inserted after, or deleted before the records
    that show them; a foreign key excludes that. Readers see the records that meet the condition `served`.
    """
    watched = [*columns, *([key] if comes_and_goes else [])]
    differs = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in watched)
    condition = served.replace("'", "''")
    name = f"{record}_follows_{table}_by_{refers_by}"
    run = f"FOR EACH ROW {{}}EXECUTE FUNCTION mark_dependants('{record}', '{refers_by}', '{key}', '{condition}')"
    statements = [f"CREATE OR REPLACE TRIGGER {name} AFTER UPDATE ON {table} {run.format(f'WHEN ({differs}) ')}"]
    if comes_and_goes:
        statements.append(f"CREATE OR REPLACE TRIGGER {name}_rows AFTER INSERT OR DELETE ON {table} {run.format('')}")
    return statements
