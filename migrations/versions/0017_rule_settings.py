"""Thresholds of rules and exclusions that people keep without the server's files."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rule_threshold",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rule_id", sa.Text(), nullable=False),
        sa.Column("selectors", sa.Text(), nullable=False),
        sa.Column("threshold_values", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule_threshold")),
    )
    op.create_table(
        "rule_exclusion",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("selectors", sa.Text(), nullable=False),
        sa.Column("rule_id", sa.Text(), nullable=True),
        sa.Column("from_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.CheckConstraint("until_at > from_at", name=op.f("ck_rule_exclusion_until_at")),
        sa.CheckConstraint("reason <> ''", name=op.f("ck_rule_exclusion_reason")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule_exclusion")),
    )


def downgrade() -> None:
    op.drop_table("rule_exclusion")
    op.drop_table("rule_threshold")
