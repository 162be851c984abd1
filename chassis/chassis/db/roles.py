"""The roles of a context's database, as SQL: who owns the tables, who migrates, what the service may do.

| role | may |
|---|---|
| `NAME_owner` | everything in the database, which it owns: it migrates |
| `NAME` | read and write rows; read and append to the audit log; nothing else: it serves |
| `NAME_partitions` | owns partitioned tables alone, if a service makes and drops their partitions itself |

NAME is also the database's name. The service is a member of `NAME_partitions` that does not inherit: its statements
have no more rights than NAME, except where it says SET ROLE. Standard library only: the runner and the secrets of an
installation use these texts, too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

OWNER, PARTITIONS = "_owner", "_partitions"
OWNER_CONNECTIONS = 10  # a migration, backups, a person
SCRAM_ITERATIONS, SALT_BYTES = 4096, 16  # as PostgreSQL makes verifiers by default


def make_roles(name: str, password: str, owner_password: str, connections: int, *, partitions: bool) -> list[str]:
    """Statements that make the roles of database `name`, or give existing ones these passwords and limits.

    The service's role may have so many connections. A password that has not changed leaves its role's verifier as it
    is: a pooler keeps copies of them. Passwords are ASCII, of so many random bits that their salt may come from them.
    """
    owner, members = f"{name}{OWNER}", f"{name}{PARTITIONS}"
    statements = [
        # NOINHERIT before any membership: it decides how memberships are granted.
        *_role(name, f"LOGIN NOINHERIT CONNECTION LIMIT {connections} {_password(name, password)}"),
        *_role(owner, f"LOGIN INHERIT CONNECTION LIMIT {OWNER_CONNECTIONS} {_password(owner, owner_password)}"),
    ]
    roles = [name, owner]
    if partitions:
        statements += [
            *_role(members, "NOLOGIN"),
            f"GRANT {identifier(members)} TO {identifier(owner)}, {identifier(name)}",
        ]
        roles.append(members)
    # Only a member of a role may make a database that the role owns, or hand over its tables.
    granted = ", ".join(map(identifier, roles))
    member = "NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
    return [*statements, _block(f"IF {member} THEN GRANT {granted} TO CURRENT_USER; END IF;")]


def scram_verifier(role: str, password: str) -> str:
    """What PostgreSQL stores of a role's password (RFC 5803): always the same text for the same role and password."""
    salt = hmac.digest(password.encode(), b"salt of " + role.encode(), hashlib.sha256)[:SALT_BYTES]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, SCRAM_ITERATIONS)
    stored_key = hashlib.sha256(hmac.digest(salted, b"Client Key", hashlib.sha256)).digest()
    server_key = hmac.digest(salted, b"Server Key", hashlib.sha256)
    texts = [base64.b64encode(value).decode() for value in (salt, stored_key, server_key)]
    return f"SCRAM-SHA-256${SCRAM_ITERATIONS}:{texts[0]}${texts[1]}:{texts[2]}"


def make_database(name: str) -> str:
    """The statement that makes the database; run it if there is none of this name."""
    return f"CREATE DATABASE {identifier(name)} OWNER {identifier(name + OWNER)} TEMPLATE template0 ENCODING 'UTF8'"


def close_database(name: str) -> list[str]:
    """Statements that close the database to all roles but its owner and its service."""
    return [
        f"REVOKE CONNECT, TEMPORARY ON DATABASE {identifier(name)} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {identifier(name)} TO {identifier(name)}",
    ]


def take_over(name: str) -> list[str]:
    """Statements for a transaction in the database: what the service's role owns (until release 0.2.0: everything)
    becomes the owner's. A service that runs meanwhile keeps its access to rows."""
    return [f"REASSIGN OWNED BY {identifier(name)} TO {identifier(name + OWNER)}", grant(name)]


def grant(service: str) -> str:
    """The statement, for the owner in the database, that gives the service's role the privileges of this release.

    It takes away all others, and hands partitioned tables and the schemas of their partitions to `…_partitions` if
    that role exists. It may be repeated.
    """
    return _block(
        """
        FOR one IN SELECT c.oid::regclass AS name, c.relname, c.relkind FROM pg_class c
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
                -- An insert into an identity column needs no privilege on its sequence.
                AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'i'))
            ORDER BY c.oid
        LOOP
            EXECUTE format('REVOKE ALL ON %s FROM %I', one.name, service);
            IF one.relkind = 'S' THEN
                EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %I', one.name, service);
            ELSIF one.relname = 'audit' THEN
                EXECUTE format('GRANT SELECT, INSERT ON %s TO %I', one.name, service);
            ELSIF one.relname IN ('alembic_version', 'schema_revision') THEN
                EXECUTE format('GRANT SELECT ON %s TO %I', one.name, service);
            ELSE
                EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', one.name, service);
                -- Imports analyze the tables that they fill. Older servers leave that to autovacuum.
                IF current_setting('server_version_num')::int >= 170000 AND one.relkind IN ('r', 'p') THEN
                    EXECUTE format('GRANT MAINTAIN ON %s TO %I', one.name, service);
                END IF;
            END IF;
        END LOOP;
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = members) THEN
            -- A new owner must be able to make tables in the schema at that moment.
            EXECUTE format('GRANT CREATE ON SCHEMA public TO %I', members);
            FOR one IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE (c.relkind = 'p' AND n.nspname = 'public' OR c.relkind = 'r' AND n.nspname = 'partitions')
                    AND pg_get_userbyid(c.relowner) <> members
                ORDER BY c.oid
            LOOP
                EXECUTE format('ALTER TABLE %s OWNER TO %I', one.name, members);
            END LOOP;
            EXECUTE format('REVOKE CREATE ON SCHEMA public FROM %I', members);
            IF EXISTS (SELECT FROM pg_namespace
                WHERE nspname = 'partitions' AND pg_get_userbyid(nspowner) <> members) THEN
                EXECUTE format('ALTER SCHEMA partitions OWNER TO %I', members);
            END IF;
        END IF;
        """,
        f"one record; service name := {literal(service)}; members name := {literal(service + PARTITIONS)};",
    )


def identifier(name: str) -> str:
    """The name, quoted."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def literal(text: str) -> str:
    """The text as an SQL literal, whatever standard_conforming_strings says."""
    doubled = text.replace("'", "''")
    if "\\" in doubled:
        escaped = doubled.replace("\\", "\\\\")
        return f"E'{escaped}'"
    return f"'{doubled}'"


def _role(name: str, attributes: str) -> list[str]:
    missing = f"NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {literal(name)})"
    return [
        _block(f"IF {missing} THEN CREATE ROLE {identifier(name)}; END IF;"),
        f"ALTER ROLE {identifier(name)} {attributes}",
    ]


def _password(role: str, password: str) -> str:
    return f"PASSWORD {literal(scram_verifier(role, password))}"


def _block(body: str, declarations: str = "") -> str:
    declared = f"DECLARE {declarations} " if declarations else ""
    return f"DO $makeready$ {declared}BEGIN {body} END $makeready$"
