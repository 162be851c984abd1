"""How people sign in: accounts, passkeys, recovery codes, links, sessions, failures; who has ended.

Revision ID: 0002_accounts
Revises: 0001_initial
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002_accounts"
down_revision: str | None = "0001_initial"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "company": "ACCESS EXCLUSIVE",
    "administrator": "ACCESS EXCLUSIVE",
    "staff": "ACCESS EXCLUSIVE",
}


def upgrade() -> None:
    op.create_table(
        "sign_in_delay",
        sa.Column("email_digest", sa.LargeBinary(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("email_digest"),
    )
    op.create_index("sign_in_delay_last", "sign_in_delay", ["last_at"])
    op.create_table(
        "sign_in_failure",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("network", sa.Text(), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("sign_in_failure_at", "sign_in_failure", ["failed_at"])
    op.create_index("sign_in_failure_of_network", "sign_in_failure", ["network", "failed_at"])
    op.create_table(
        "account",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("administrator_id", sa.BigInteger(), nullable=True),
        sa.Column("staff_id", sa.BigInteger(), nullable=True),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("handle", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column("password_stands_alone", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("password_changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("totp_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("totp_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("totp_step", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("last_sign_in_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(administrator_id IS NULL) <> (staff_id IS NULL)", name="account_of_one_person"),
        sa.CheckConstraint("(totp_sealed IS NULL) = (totp_since IS NULL)", name="account_totp"),
        sa.CheckConstraint("email = lower(email)", name="account_email_lower_case"),
        sa.ForeignKeyConstraint(
            ["company_id", "administrator_id"],
            ["administrator.company_id", "administrator.id"],
            name="account_administrator_of_the_same_company",
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "staff_id"], ["staff.company_id", "staff.id"], name="account_staff_of_the_same_company"
        ),
        sa.ForeignKeyConstraint(
            ["company_id"],
            ["company.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("administrator_id", name="account_of_administrator"),
        sa.UniqueConstraint("company_id", "staff_id", name="account_of_staff"),
        sa.UniqueConstraint("email", name="account_email"),
        sa.UniqueConstraint("handle", name="account_handle"),
    )
    op.create_table(
        "link",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("remove_second_factor", sa.Boolean(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("purpose IN ('invitation', 'reset')", name="link_purpose"),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest"),
        sa.UniqueConstraint("account_id", name="link_of_account"),
    )
    op.create_table(
        "passkey",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("synced", sa.Boolean(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("credential_id", name="passkey_credential"),
    )
    op.create_index("passkey_of_account", "passkey", ["account_id", "id"])
    op.create_table(
        "recovery_code",
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("account_id", "digest"),
    )
    op.create_table(
        "session",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column(
            "started_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "last_seen_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "stepped_up_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("user_agent", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "method IN ('password', 'password and code', 'passkey', 'link', 'link and code')", name="session_method"
        ),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest", name="session_digest"),
    )
    op.create_index("session_ends", "session", ["ends_at"])
    op.create_index("session_of_account", "session", ["account_id", "id"])
    op.create_table(
        "ceremony",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("session_id", sa.BigInteger(), nullable=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "purpose IN ('second_factor', 'passkey_sign_in', 'passkey_step_up', 'passkey_new', 'totp_new')",
            name="ceremony_purpose",
        ),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ceremony_expires", "ceremony", ["expires_at"])
    op.create_index("ceremony_of_account", "ceremony", ["account_id"])
    op.create_index("ceremony_of_session", "ceremony", ["session_id"])
    op.add_column("administrator", sa.Column("active", sa.Boolean(), server_default=sa.text("true"), nullable=False))
    op.add_column(
        "company", sa.Column("second_factor_required", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.add_column("staff", sa.Column("active", sa.Boolean(), server_default=sa.text("true"), nullable=False))
