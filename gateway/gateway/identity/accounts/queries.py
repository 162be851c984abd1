"""The SQL statements about accounts and what they sign in with, named for what they return or do."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert

from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, TIME, Statement, param
from gateway.identity.accounts.tables import account, ceremony, link, passkey, recovery_code
from gateway.identity.tables.administrators import administrator
from gateway.identity.tables.companies import company
from gateway.identity.tables.staff import staff

_id = param("account_id", sa.BigInteger)
_company_id = param("company_id", sa.BigInteger)
_now = param("now", TIME)
_digest = param("digest", sa.LargeBinary)

# An account with its person and company.
kind = sa.case((account.c.administrator_id.is_not(None), "administrator"), else_="staff")
PEOPLE = (
    sa.join(account, company, company.c.id == account.c.company_id)
    .outerjoin(administrator, administrator.c.id == account.c.administrator_id)
    .outerjoin(staff, sa.and_(staff.c.company_id == account.c.company_id, staff.c.id == account.c.staff_id))
)
has_passkey = sa.exists().where(passkey.c.account_id == account.c.id).correlate(account)
PERSON = (
    account.c.id.label("account_id"),
    account.c.company_id,
    kind.label("kind"),
    sa.func.coalesce(account.c.administrator_id, account.c.staff_id).label("person_id"),
    sa.func.coalesce(administrator.c.name, staff.c.name).label("name"),
    account.c.email,
    sa.func.coalesce(administrator.c.active, staff.c.active).label("person_active"),
    company.c.name.label("company_name"),
    company.c.timezone,
    company.c.active.label("company_active"),
    company.c.second_factor_required,
    company.c.is_sandbox,
    company.c.clock_offset,
    account.c.password.is_not(None).label("has_password"),
    account.c.totp_since,
    has_passkey.label("has_passkey"),
)
_SIGN_IN = (
    *PERSON,
    account.c.handle,
    account.c.password,
    account.c.password_stands_alone,
    account.c.password_changed_at,
    account.c.totp_sealed,
    account.c.totp_step,
)
_PERSON = sa.select(*_SIGN_IN).select_from(PEOPLE)

_BY_EMAIL = Statement(_PERSON.where(account.c.email == param("email", sa.Text)))
_BY_ID = Statement(_PERSON.where(account.c.id == _id))
_BY_ID_FOR_UPDATE = Statement(_PERSON.where(account.c.id == _id).with_for_update(of=account))
_OF_ADMINISTRATOR = Statement(
    _PERSON.where(account.c.company_id == _company_id, account.c.administrator_id == param("person_id", sa.BigInteger))
)
# The live company whose sandbox it is.
_live_company = sa.select(company.c.sandbox_of).where(company.c.id == _company_id).scalar_subquery()
_OF_ADMINISTRATOR_WORKING_IN = Statement(
    _PERSON.where(
        account.c.administrator_id == param("person_id", sa.BigInteger),
        sa.or_(account.c.company_id == _company_id, account.c.company_id == _live_company),
    )
)
_SANDBOX = Statement(
    sa.select(company.c.id, company.c.name, company.c.timezone, company.c.clock_offset)
    .join(account, account.c.company_id == company.c.sandbox_of)
    .where(
        account.c.id == _id,
        account.c.administrator_id.is_not(None),
        company.c.id == param("sandbox_id", sa.BigInteger),
        company.c.active,
        company.c.ended_at.is_(None),
    )
)
_OF_STAFF = Statement(
    _PERSON.where(account.c.company_id == _company_id, account.c.staff_id == param("person_id", sa.BigInteger))
)


async def account_by_email(on: Connection | Database, email: str) -> Record | None:
    return await on.row(_BY_EMAIL, email=email)


async def account_by_id(on: Connection | Database, account_id: int) -> Record | None:
    return await on.row(_BY_ID, account_id=account_id)


async def account_for_update(connection: Connection, account_id: int) -> Record | None:
    """The account, locked until the transaction ends: its factors do not change meanwhile."""
    return await connection.row(_BY_ID_FOR_UPDATE, account_id=account_id)


async def account_of(on: Connection | Database, kind: str, company_id: int, person_id: int) -> Record | None:
    """The account of an administrator or a member of staff, of that company alone."""
    statement = _OF_ADMINISTRATOR if kind == "administrator" else _OF_STAFF
    return await on.row(statement, company_id=company_id, person_id=person_id)


async def account_of_administrator(
    on: Connection | Database, administrator_id: int, *, working_in: int
) -> Record | None:
    """The account of an administrator of the company `working_in`, or of the live company whose sandbox that is."""
    return await on.row(_OF_ADMINISTRATOR_WORKING_IN, company_id=working_in, person_id=administrator_id)


async def sandbox(on: Connection | Database, account_id: int, sandbox_id: int) -> Record | None:
    """id, name, timezone and clock_offset of a sandbox that the account's administrator may work in now."""
    return await on.row(_SANDBOX, account_id=account_id, sandbox_id=sandbox_id)


_NEW_ACCOUNT = Statement(
    sa.insert(account)
    .values(
        {
            name: param(name, account.c[name].type)
            for name in (
                "company_id",
                "administrator_id",
                "staff_id",
                "email",
                "password",
                "password_stands_alone",
                "password_changed_at",
            )
        }
    )
    .returning(account.c.id)
)
# Moves what release 0.2.0 wrote: it had no accounts.
_adopted = sa.select(
    administrator.c.company_id,
    administrator.c.id,
    administrator.c.email,
    administrator.c.password,
    sa.case((administrator.c.password.is_not(None), administrator.c.created_at), else_=None),
).where(~sa.exists().where(account.c.administrator_id == administrator.c.id))
_ADOPT = Statement(
    upsert(account)
    .from_select(
        ["company_id", "administrator_id", "email", "password", "password_changed_at"],
        _adopted,
        include_defaults=False,
    )
    .on_conflict_do_nothing()
)
_FORGET_ADOPTED = Statement(
    sa.update(administrator)
    .where(
        administrator.c.password.is_not(None),
        sa.exists().where(account.c.administrator_id == administrator.c.id),
    )
    .values(password=None)
)


async def new_account(
    connection: Connection,
    company_id: int,
    email: str,
    *,
    administrator_id: int | None = None,
    staff_id: int | None = None,
    password: str | None = None,
    stands_alone: bool = False,
    now: datetime.datetime | None = None,
) -> int:
    """Raises UniqueViolationError `account_email`. now: when the password was set."""
    account_id: int = await connection.value(
        _NEW_ACCOUNT,
        company_id=company_id,
        administrator_id=administrator_id,
        staff_id=staff_id,
        email=email,
        password=password,
        password_stands_alone=stands_alone,
        password_changed_at=now if password else None,
    )
    return account_id


async def adopt_administrators(connection: Connection) -> int:
    """Makes the accounts of administrators without one, and moves their passwords there; returns how many."""
    status = await connection.execute(_ADOPT)
    await connection.execute(_FORGET_ADOPTED)
    return int(status.split()[-1])


_SET_PASSWORD = Statement(
    sa.update(account)
    .where(account.c.id == _id)
    .values(
        password=param("new_password", sa.Text),
        password_stands_alone=param("stands_alone", sa.Boolean),
        password_changed_at=_now,
    )
)
_REHASH = Statement(
    sa.update(account)
    .where(account.c.id == _id, account.c.password == param("old_password", sa.Text))
    .values(password=param("new_password", sa.Text), password_stands_alone=param("stands_alone", sa.Boolean))
)
_SET_EMAIL = Statement(sa.update(account).where(account.c.id == _id).values(email=param("new_email", sa.Text)))
_DELETE = Statement(sa.delete(account).where(account.c.id == _id))
_SIGNED_IN = Statement(sa.update(account).where(account.c.id == _id).values(last_sign_in_at=_now))


async def set_password(
    connection: Connection, account_id: int, password: str, stands_alone: bool, now: datetime.datetime
) -> None:
    await connection.execute(
        _SET_PASSWORD, account_id=account_id, new_password=password, stands_alone=stands_alone, now=now
    )


async def rehash(database: Database, account_id: int, old: str, new: str, stands_alone: bool) -> None:
    """Replaces the stored text of the same password, unless another password was set meanwhile."""
    await database.execute(
        _REHASH, account_id=account_id, old_password=old, new_password=new, stands_alone=stands_alone
    )


async def set_email(connection: Connection, account_id: int, email: str) -> None:
    """Raises UniqueViolationError `account_email`."""
    await connection.execute(_SET_EMAIL, account_id=account_id, new_email=email)


async def delete_account(connection: Connection, account_id: int) -> None:
    await connection.execute(_DELETE, account_id=account_id)


async def signed_in(connection: Connection, account_id: int, now: datetime.datetime) -> None:
    await connection.execute(_SIGNED_IN, account_id=account_id, now=now)


# Authenticator apps and recovery codes.

_SET_TOTP = Statement(
    sa.update(account)
    .where(account.c.id == _id)
    .values(
        totp_sealed=param("sealed", sa.LargeBinary),
        totp_since=_now,
        totp_step=param("step", sa.BigInteger),
    )
)
_USE_STEP = Statement(
    sa.update(account)
    .where(account.c.id == _id, account.c.totp_step < param("step", sa.BigInteger))
    .values(totp_step=param("step", sa.BigInteger), totp_sealed=param("sealed", sa.LargeBinary))
    .returning(account.c.id)
)
_FORGET_CODES = Statement(sa.delete(recovery_code).where(recovery_code.c.account_id == _id))
_digests = sa.func.unnest(param("digests", ARRAY(sa.LargeBinary))).column_valued("digest")
_NEW_CODES = Statement(
    sa.insert(recovery_code).from_select(["account_id", "digest"], sa.select(_id, _digests), include_defaults=False)
)
_USE_CODE = Statement(
    sa.delete(recovery_code)
    .where(recovery_code.c.account_id == _id, recovery_code.c.digest == _digest)
    .returning(recovery_code.c.account_id)
)
_CODES_LEFT = Statement(sa.select(sa.func.count()).where(recovery_code.c.account_id == _id))


async def set_totp(
    connection: Connection, account_id: int, sealed: bytes | None, step: int, now: datetime.datetime | None
) -> None:
    """sealed and now are None to remove it."""
    await connection.execute(_SET_TOTP, account_id=account_id, sealed=sealed, step=step, now=now)


async def use_step(connection: Connection, account_id: int, step: int, sealed: bytes) -> bool:
    """Whether the step is later than every one used before; if so it counts as used."""
    return await connection.row(_USE_STEP, account_id=account_id, step=step, sealed=sealed) is not None


async def replace_codes(connection: Connection, account_id: int, digests: Sequence[bytes]) -> None:
    await connection.execute(_FORGET_CODES, account_id=account_id)
    if digests:
        await connection.execute(_NEW_CODES, account_id=account_id, digests=list(digests))


async def use_code(connection: Connection, account_id: int, digest: bytes) -> bool:
    """Whether the code was unused; it is used from now on."""
    return await connection.row(_USE_CODE, account_id=account_id, digest=digest) is not None


async def codes_left(on: Connection, account_id: int) -> int:
    count: int = await on.value(_CODES_LEFT, account_id=account_id)
    return count


# Passkeys.

_PASSKEYS = Statement(sa.select(passkey).where(passkey.c.account_id == _id).order_by(passkey.c.id))
_NEW_PASSKEY = Statement(
    sa.insert(passkey)
    .values(
        {
            name: param(name, passkey.c[name].type)
            for name in ("account_id", "credential_id", "public_key", "sign_count", "name", "synced")
        }
    )
    .returning(*passkey.c)
)
_PASSKEY_FOR_UPDATE = Statement(
    sa.select(passkey).where(passkey.c.credential_id == param("credential_id", sa.LargeBinary)).with_for_update()
)
_PASSKEY_USED = Statement(
    sa.update(passkey)
    .where(passkey.c.id == param("passkey_id", sa.BigInteger))
    .values(
        sign_count=param("new_sign_count", sa.BigInteger), synced=param("new_synced", sa.Boolean), last_used_at=_now
    )
)
_REMOVE_PASSKEY = Statement(
    sa.delete(passkey)
    .where(passkey.c.account_id == _id, passkey.c.id == param("passkey_id", sa.BigInteger))
    .returning(passkey.c.name)
)
_REMOVE_PASSKEYS = Statement(sa.delete(passkey).where(passkey.c.account_id == _id))


async def passkeys(on: Connection | Database, account_id: int) -> list[Record]:
    return await on.rows(_PASSKEYS, account_id=account_id)


async def new_passkey(
    connection: Connection,
    account_id: int,
    *,
    credential_id: bytes,
    public_key: bytes,
    sign_count: int,
    name: str,
    synced: bool,
) -> Record:
    """Raises UniqueViolationError `passkey_credential`."""
    row = await connection.row(
        _NEW_PASSKEY,
        account_id=account_id,
        credential_id=credential_id,
        public_key=public_key,
        sign_count=sign_count,
        name=name,
        synced=synced,
    )
    assert row is not None
    return row


async def passkey_for_update(connection: Connection, credential_id: bytes) -> Record | None:
    return await connection.row(_PASSKEY_FOR_UPDATE, credential_id=credential_id)


async def passkey_used(
    connection: Connection, passkey_id: int, sign_count: int, synced: bool, now: datetime.datetime
) -> None:
    await connection.execute(
        _PASSKEY_USED, passkey_id=passkey_id, new_sign_count=sign_count, new_synced=synced, now=now
    )


async def remove_passkey(connection: Connection, account_id: int, passkey_id: int) -> str | None:
    """The name of the passkey that was removed."""
    name: str | None = await connection.value(_REMOVE_PASSKEY, account_id=account_id, passkey_id=passkey_id)
    return name


async def remove_second_factor(connection: Connection, account_id: int) -> None:
    """Removes the authenticator app, the recovery codes and the passkeys."""
    await set_totp(connection, account_id, None, 0, None)
    await replace_codes(connection, account_id, [])
    await connection.execute(_REMOVE_PASSKEYS, account_id=account_id)


# Ceremonies.

_NEW_CEREMONY = Statement(
    sa.insert(ceremony).values(
        {
            name: param(name, ceremony.c[name].type)
            for name in ("digest", "purpose", "account_id", "session_id", "data", "method", "expires_at")
        }
    )
)
_USE_CHALLENGE = Statement(
    upsert(ceremony)
    .values(
        {name: param(name, ceremony.c[name].type) for name in ("digest", "purpose", "expires_at")}
        | {"data": sa.literal(b"", sa.LargeBinary), "method": sa.literal("", sa.Text)}
    )
    .on_conflict_do_nothing()
    .returning(ceremony.c.digest)
)
_CEREMONY = Statement(
    sa.select(ceremony).where(
        ceremony.c.digest == _digest,
        ceremony.c.purpose == sa.func.any(param("purposes", TEXTS)),
        ceremony.c.expires_at > _now,
    )
)
_TAKE_CEREMONY = Statement(
    sa.delete(ceremony)
    .where(
        ceremony.c.digest == _digest,
        ceremony.c.purpose == sa.func.any(param("purposes", TEXTS)),
        ceremony.c.expires_at > _now,
    )
    .returning(*ceremony.c)
)
_NEW_TOTP = Statement(
    sa.select(ceremony).where(
        ceremony.c.account_id == _id, ceremony.c.purpose == "totp_new", ceremony.c.expires_at > _now
    )
)
_END_CEREMONIES = Statement(
    sa.delete(ceremony).where(ceremony.c.account_id == _id, ceremony.c.purpose == sa.func.any(param("purposes", TEXTS)))
)


async def new_ceremony(
    on: Connection | Database,
    digest: bytes,
    purpose: str,
    expires_at: datetime.datetime,
    *,
    account_id: int | None = None,
    session_id: int | None = None,
    data: bytes = b"",
    method: str = "",
) -> None:
    await on.execute(
        _NEW_CEREMONY,
        digest=digest,
        purpose=purpose,
        account_id=account_id,
        session_id=session_id,
        data=data,
        method=method,
        expires_at=expires_at,
    )


async def uses_challenge(connection: Connection, digest: bytes, expires_at: datetime.datetime, session_id: int) -> bool:
    """Whether a passkey's challenge is used for the first time. session_id: the one to confirm; 0: it signs in."""
    purpose = "passkey_step_up" if session_id else "passkey_sign_in"
    values = {"digest": digest, "purpose": purpose, "expires_at": expires_at}
    return await connection.row(_USE_CHALLENGE, **values) is not None


async def ceremony_by_digest(
    on: Connection | Database, digest: bytes, now: datetime.datetime, *purposes: str
) -> Record | None:
    return await on.row(_CEREMONY, digest=digest, purposes=list(purposes), now=now)


async def take_ceremony(
    on: Connection | Database, digest: bytes, now: datetime.datetime, *purposes: str
) -> Record | None:
    """The ceremony, which is over from now on."""
    return await on.row(_TAKE_CEREMONY, digest=digest, purposes=list(purposes), now=now)


async def new_totp(connection: Connection, account_id: int, now: datetime.datetime) -> Record | None:
    """The ceremony of the secret that waits for its first code."""
    return await connection.row(_NEW_TOTP, account_id=account_id, now=now)


async def end_ceremonies(connection: Connection, account_id: int, *purposes: str) -> None:
    await connection.execute(_END_CEREMONIES, account_id=account_id, purposes=list(purposes))


# Links.

_NEW_LINK_VALUES = {name: param(name, link.c[name].type) for name in ("digest", "purpose", "remove_second_factor")}
_new_link = upsert(link).values(_NEW_LINK_VALUES | {"account_id": _id, "expires_at": param("expires_at", TIME)})
_NEW_LINK = Statement(
    _new_link.on_conflict_do_update(
        constraint="link_of_account",
        set_={
            name: _new_link.excluded[name]
            for name in ("digest", "purpose", "remove_second_factor", "created_at", "expires_at")
        },
    )
)
_LINK = Statement(sa.select(link).where(link.c.digest == _digest, link.c.expires_at > _now))
_TAKE_LINK = Statement(sa.delete(link).where(link.c.digest == _digest, link.c.expires_at > _now).returning(*link.c))
_END_LINKS = Statement(sa.delete(link).where(link.c.account_id == _id))


async def replace_link(
    connection: Connection,
    account_id: int,
    digest: bytes,
    purpose: str,
    remove_second_factor: bool,
    expires_at: datetime.datetime,
) -> None:
    """Makes the account's link; the one before opens nothing from now on."""
    await connection.execute(
        _NEW_LINK,
        account_id=account_id,
        digest=digest,
        purpose=purpose,
        remove_second_factor=remove_second_factor,
        expires_at=expires_at,
    )


async def link_by_digest(on: Connection | Database, digest: bytes, now: datetime.datetime) -> Record | None:
    return await on.row(_LINK, digest=digest, now=now)


async def take_link(connection: Connection, digest: bytes, now: datetime.datetime) -> Record | None:
    """The link, which opens nothing from now on."""
    return await connection.row(_TAKE_LINK, digest=digest, now=now)


async def end_links(connection: Connection, account_id: int) -> None:
    await connection.execute(_END_LINKS, account_id=account_id)
