"""Budgets: how much a part of the fleet may cost a month."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "budget",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_value", sa.Text(), nullable=True),
        sa.Column("amount_usd", sa.BigInteger(), nullable=False),
        sa.Column("from_month", sa.Text(), nullable=False),
        sa.Column("to_month", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "scope_kind IN ('all', 'team', 'project', 'cost_centre', 'label', 'cluster', 'host')",
            name=op.f("ck_budget_scope_kind"),
        ),
        sa.CheckConstraint(
            "(scope_kind = 'all') = (scope_value IS NULL)", name=op.f("ck_budget_scope_value")
        ),
        sa.CheckConstraint("amount_usd >= 0", name=op.f("ck_budget_amount_usd")),
        sa.CheckConstraint("to_month IS NULL OR to_month >= from_month", name=op.f("ck_budget_to_month")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget")),
    )


def downgrade() -> None:
    op.drop_table("budget")
