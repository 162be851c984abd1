"""Subscriptions have filters.

Revision ID: 0009_subscriptions_have_filters
Revises: 0008_companies_are_sandboxes
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0009_subscriptions_have_filters"
down_revision: str | None = "0008_companies_are_sandboxes"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for name, kind in (("property_ids", sa.BigInteger()), ("categories", sa.Text()), ("priorities", sa.Text())):
        column = sa.Column(name, postgresql.ARRAY(kind), server_default=sa.text("NULL"), nullable=True)
        op.add_column("subscription", column)
    op.create_check_constraint("subscription_property_ids", "subscription", "cardinality(property_ids) > 0")
    op.create_check_constraint(
        "subscription_categories",
        "subscription",
        "cardinality(categories) > 0 AND categories <@ ARRAY['HVAC', 'Plumbing', 'Electrical', 'Mechanical',"
        " 'Life Safety', 'Elevator', 'Appliance', 'Doors/Windows', 'Flooring', 'Painting', 'Roofing', 'Leak',"
        " 'Pest Control', 'Structural', 'Grounds', 'Parking Garage', 'Pool', 'Security', 'Common Area', 'General',"
        " 'Other']",
    )
    op.create_check_constraint(
        "subscription_priorities",
        "subscription",
        "cardinality(priorities) > 0 AND priorities <@ ARRAY['Low', 'Medium', 'High', 'Emergency']",
    )
