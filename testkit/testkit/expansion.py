"""Finds what a newer schema removes that the code of the last release uses.

A release is rolled out while the one before still runs, and rolled back without its migrations. So a migration only
adds. Removals follow a release later, when no running code uses the removed parts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

CHECK, EXCLUDE, FOREIGN_KEY, PRIMARY_KEY, UNIQUE = "c", "x", "f", "p", "u"


@dataclass(frozen=True)
class Column:
    """type: as `format_type` prints it, with the collation if it is not the type's own; default: its expression."""

    type: str
    not_null: bool = False
    default: str | None = None
    identity: str = ""
    """`ALWAYS` or `BY DEFAULT`; empty: none."""
    computed: bool = False

    @property
    def fills_itself(self) -> bool:
        """Whether an INSERT may omit the column although it takes no null."""
        return self.default is not None or self.computed or bool(self.identity)

    @property
    def takes_no_values(self) -> bool:
        """Whether an INSERT must omit the column."""
        return self.computed or self.identity == "ALWAYS"


@dataclass(frozen=True)
class Constraint:
    """kind: as in pg_constraint.contype; definition: as `pg_get_constraintdef` prints it."""

    kind: str
    definition: str
    holds: str = ""
    """The table whose rows the foreign key protects from deletion; else empty."""
    columns: frozenset[str] = frozenset()
    """Of a CHECK: the columns that it compares."""
    passes_defaults: bool = False
    """Of a CHECK: whether a row passes that has the defaults of these columns."""


Named = tuple[str, str]  # the table and the name in it


@dataclass(frozen=True)
class Schema:
    """The parts of a database that statements depend on. tables: how each is partitioned, else an empty text."""

    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[Named, Column] = field(default_factory=dict)
    constraints: Mapping[Named, Constraint] = field(default_factory=dict)
    unique_indexes: Mapping[Named, str] = field(default_factory=dict)
    """Their definitions, without those of constraints."""
    triggers: Mapping[Named, str] = field(default_factory=dict)
    sequences: Mapping[str, str] = field(default_factory=dict)
    """Type, increment, bounds and cache of each."""
    namespaces: frozenset[str] = frozenset()


def breakages(released: Schema, head: Schema) -> list[str]:
    """What the release's code can no longer do on `head`: one sentence each, sorted.

    It reports no removal of a plain index, a CHECK or a foreign key, no changed default, and no addition that demands
    nothing of the release, such as a CHECK that compares new columns only and that their defaults pass.
    """
    return sorted(
        [
            *(f"schema {name} is gone" for name in released.namespaces - head.namespaces),
            *_tables(released, head),
            *_columns(released, head),
            *_constraints(released, head),
            *_unique_indexes(released, head),
            *(
                f"trigger {table}.{name} is new or different"
                for (table, name), definition in head.triggers.items()
                if table in released.tables and released.triggers.get((table, name)) != definition
            ),
            *(
                f"sequence {name} {'is gone' if name not in head.sequences else 'counts otherwise'}"
                for name, counts in released.sequences.items()
                if head.sequences.get(name) != counts
            ),
        ]
    )


def _tables(released: Schema, head: Schema) -> Iterator[str]:
    for name, partitioned in released.tables.items():
        if name not in head.tables:
            yield f"table {name} is gone"
        elif head.tables[name] != partitioned:
            yield f"table {name} is partitioned otherwise"


def _columns(released: Schema, head: Schema) -> Iterator[str]:
    for (table, name), was in released.columns.items():
        if table not in head.tables:
            continue  # reported with the table
        column = head.columns.get((table, name))
        if column is None:
            yield f"column {table}.{name} is gone"
            continue
        if column.type != was.type:
            yield f"column {table}.{name} was {was.type} and is {column.type}"
        if column.not_null and not was.not_null:
            yield f"column {table}.{name} takes no null any more"  # a default does not replace a written null
        if was.fills_itself and not column.fills_itself:
            yield f"column {table}.{name} has no default any more"
        if column.takes_no_values and not was.takes_no_values:
            yield f"column {table}.{name} takes no values any more"
    for (table, name), column in head.columns.items():
        new = table in released.tables and (table, name) not in released.columns
        if new and column.not_null and not column.fills_itself:
            yield f"column {table}.{name} is new, takes no null and has no default"


def _constraints(released: Schema, head: Schema) -> Iterator[str]:
    for (table, name), constraint in head.constraints.items():
        was = released.constraints.get((table, name))
        if table in released.tables and was is None:
            if _checks_new_columns(released, table, constraint):
                continue
            yield f"constraint {table}.{name} is new"
        elif was is not None and was.definition != constraint.definition:
            yield f"constraint {table}.{name} says something else"
        elif was is None and constraint.holds in released.tables:
            yield f"constraint {table}.{name} is new and holds rows of {constraint.holds}"
    for (table, name), was in released.constraints.items():
        # Upserts name unique constraints.
        if was.kind in (PRIMARY_KEY, UNIQUE) and table in head.tables and (table, name) not in head.constraints:
            yield f"constraint {table}.{name} is gone"


def _checks_new_columns(released: Schema, table: str, constraint: Constraint) -> bool:
    """Whether the release's rows always pass: it writes none of the columns, and their defaults pass."""
    is_new = all((table, name) not in released.columns for name in constraint.columns)
    return constraint.kind == CHECK and bool(constraint.columns) and is_new and constraint.passes_defaults


def _unique_indexes(released: Schema, head: Schema) -> Iterator[str]:
    for (table, name), definition in head.unique_indexes.items():
        if table in released.tables and released.unique_indexes.get((table, name)) != definition:
            yield f"unique index {table}.{name} is new or different"
    for table, name in released.unique_indexes:
        if table in head.tables and (table, name) not in head.unique_indexes:
            yield f"unique index {table}.{name} is gone"
