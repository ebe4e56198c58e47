"""Actions that weekly reports told, so that the next one does not tell them as new."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "report_told",
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("ledger", sa.Text(), nullable=True),
        sa.Column("figure", sa.Double(), nullable=True),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "ledger IS NULL OR ledger IN ('cash', 'capacity', 'energy')", name=op.f("ck_report_told_ledger")
        ),
        sa.PrimaryKeyConstraint("team", "project", "fingerprint", "period", name=op.f("pk_report_told")),
    )


def downgrade() -> None:
    op.drop_table("report_told")
