"""The tables of accounts, of what they sign in with, and of failures."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import UUID

from chassis.db.belonging import to_no_company
from gateway.identity.schema import instant, metadata

TIME = DateTime(timezone=True)

# A person who may sign in: one administrator, or one member of staff.
account = Table(
    "account",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("company_id", BigInteger, ForeignKey("company.id"), nullable=False),
    Column("administrator_id", BigInteger),
    Column("staff_id", BigInteger),
    # An administrator's own email. For staff the email of their record at the invitation, or as a person changed it
    # since: an import does not change who signs in.
    Column("email", Text, nullable=False),
    # Names the account to authenticators; it says nothing about the person.
    Column("handle", UUID(as_uuid=True), nullable=False, server_default=text("gen_random_uuid()")),
    # argon2id, or scrypt until the next sign-in. Null: only a passkey or a link signs in.
    Column("password", Text),
    # Long enough without a second factor. Unknown for a password of release 0.2.0 until the next sign-in.
    Column("password_stands_alone", Boolean, nullable=False, server_default=text("false")),
    Column("password_changed_at", TIME),
    Column("totp_sealed", LargeBinary),
    Column("totp_since", TIME),
    # The last step whose code was used; no code of it or an earlier one is good again.
    Column("totp_step", BigInteger, nullable=False, server_default=text("0")),
    instant("created_at"),
    Column("last_sign_in_at", TIME),
    ForeignKeyConstraint(
        ["company_id", "administrator_id"],
        ["administrator.company_id", "administrator.id"],
        name="account_administrator_of_the_same_company",
    ),
    ForeignKeyConstraint(
        ["company_id", "staff_id"], ["staff.company_id", "staff.id"], name="account_staff_of_the_same_company"
    ),
    UniqueConstraint("email", name="account_email"),
    UniqueConstraint("handle", name="account_handle"),
    UniqueConstraint("administrator_id", name="account_of_administrator"),
    UniqueConstraint("company_id", "staff_id", name="account_of_staff"),
    CheckConstraint("email = lower(email)", name="account_email_lower_case"),
    CheckConstraint("(administrator_id IS NULL) <> (staff_id IS NULL)", name="account_of_one_person"),
    CheckConstraint("(totp_sealed IS NULL) = (totp_since IS NULL)", name="account_totp"),
)


def _account_id() -> Column[object]:
    return Column("account_id", BigInteger, ForeignKey("account.id", ondelete="CASCADE"), nullable=False)


passkey = Table(
    "passkey",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _account_id(),
    Column("credential_id", LargeBinary, nullable=False),
    Column("public_key", LargeBinary, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("synced", Boolean, nullable=False),
    instant("created_at"),
    Column("last_used_at", TIME),
    UniqueConstraint("credential_id", name="passkey_credential"),
)
Index("passkey_of_account", passkey.c.account_id, passkey.c.id)

# Unused codes, as SHA-256.
recovery_code = Table(
    "recovery_code",
    metadata,
    Column("account_id", BigInteger, ForeignKey("account.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
)

# The invitation or reset that a person has now; its text is SHA-256.
link = Table(
    "link",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _account_id(),
    Column("purpose", Text, nullable=False),
    Column("remove_second_factor", Boolean, nullable=False),
    instant("created_at"),
    Column("expires_at", TIME, nullable=False),
    UniqueConstraint("account_id", name="link_of_account"),
    CheckConstraint("purpose IN ('invitation', 'reset')", name="link_purpose"),
)

# A step that waits for the next one: a right password for the second factor, a challenge for a new passkey, a new
# secret of an authenticator app for its first code, a permit for the work that it was made for. And the challenges with
# which a passkey has signed in or confirmed, each until it is over, so that none is used twice.
ceremony = Table(
    "ceremony",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("purpose", Text, nullable=False),
    Column("account_id", BigInteger, ForeignKey("account.id", ondelete="CASCADE")),
    Column("session_id", BigInteger, ForeignKey("session.id", ondelete="CASCADE")),
    # A challenge, or a sealed secret.
    Column("data", LargeBinary, nullable=False),
    # How the sign-in began, for a second factor.
    Column("method", Text, nullable=False),
    Column("expires_at", TIME, nullable=False),
    CheckConstraint(
        "purpose IN ('second_factor', 'passkey_sign_in', 'passkey_step_up', 'passkey_new', 'totp_new', 'permit')",
        name="ceremony_purpose",
    ),
)
Index("ceremony_of_account", ceremony.c.account_id)
Index("ceremony_of_session", ceremony.c.session_id)
Index("ceremony_expires", ceremony.c.expires_at)

# Failures in a row by the SHA-256 of the email, also of emails that nobody has, or of a browser that is known.
sign_in_delay = Table(
    "sign_in_delay",
    metadata,
    Column("email_digest", LargeBinary, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("next_at", TIME, nullable=False),
    Column("last_at", TIME, nullable=False),
    info=to_no_company("digests of e-mails that were tried, whether or not they have an account"),
)
Index("sign_in_delay_last", sign_in_delay.c.last_at)

# The failures of the last minutes by network.
sign_in_failure = Table(
    "sign_in_failure",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("network", Text, nullable=False),
    Column("failed_at", TIME, nullable=False),
    info=to_no_company("networks, without whom they tried"),
)
Index("sign_in_failure_of_network", sign_in_failure.c.network, sign_in_failure.c.failed_at)
Index("sign_in_failure_at", sign_in_failure.c.failed_at)
