"""The triggers that record changes, as SQL: for tables that tests declare, and to be copied into migrations."""

from __future__ import annotations

from collections.abc import Sequence

FUNCTIONS = (
    # A new row gets its transaction by a default. This gives a changed row its own, whichever statement changes it.
    """CREATE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$""",
    # Arguments: the table of the records that show this row, their column, and this row's column that it equals.
    """CREATE FUNCTION mark_dependants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes_to_touch (company_id, record, refers_by, refers_to)
    SELECT DISTINCT (one ->> 'company_id')::bigint, TG_ARGV[0], TG_ARGV[1], (one ->> TG_ARGV[2])::bigint
    FROM (VALUES (to_jsonb(OLD)), (to_jsonb(NEW))) AS both_rows (one) WHERE one ->> TG_ARGV[2] IS NOT NULL;
    RETURN NULL;
END $$""",
)
"""Once for each database, before the triggers."""


def recorded(table: str, beside: Sequence[str] = ()) -> list[str]:
    """The trigger that records each change of a table's rows; the table has the column changed_xid.

    beside: columns that no record shows. A change of only these does not count as a change of the record.
    """
    if not beside:
        return [
            f"CREATE TRIGGER {table}_changed BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION record_change()"
        ]
    ignored = " ".join(f"OLD.{name} := NEW.{name};" for name in beside)
    return [
        f"""CREATE FUNCTION record_change_of_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {ignored}
    IF OLD *<> NEW THEN
        NEW.changed_xid := pg_current_xact_id();
    END IF;
    RETURN NEW;
END $$""",
        f"CREATE TRIGGER {table}_changed BEFORE UPDATE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION record_change_of_{table}()",
    ]


def followed(
    record: str, refers_by: str, shown: str, columns: Sequence[str], *, key: str = "id", comes_and_goes: bool = False
) -> list[str]:
    """The triggers that mark the records of a table when a row changes that they show.

    record: the records' table. refers_by: its column. shown: the table of the row. columns: its columns that the
    records show. key: its column that `refers_by` equals. comes_and_goes: whether rows may be inserted after, or
    deleted before the records that show them; False where a foreign key excludes that.
    """
    watched = [*columns, *([key] if comes_and_goes else [])]
    differs = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in watched)
    name, run = f"{record}_follows_{shown}_by_{refers_by}", f"mark_dependants('{record}', '{refers_by}', '{key}')"
    made = [f"CREATE TRIGGER {name} AFTER UPDATE ON {shown} FOR EACH ROW WHEN ({differs}) EXECUTE FUNCTION {run}"]
    if comes_and_goes:
        made.append(f"CREATE TRIGGER {name}_rows AFTER INSERT OR DELETE ON {shown} FOR EACH ROW EXECUTE FUNCTION {run}")
    return made
