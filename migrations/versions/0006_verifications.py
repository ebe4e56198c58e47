"""Who took a step, the finding as it was when somebody acted, and what became of the saving."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("recommendation", sa.Column("acted_finding", sa.Text(), nullable=True))
    op.add_column("recommendation_event", sa.Column("who", sa.Text(), nullable=True))
    # What was set aside before has no other figures to be compared with than its last ones.
    op.execute(
        "UPDATE recommendation SET acted_finding = finding "
        "WHERE status IN ('claimed', 'done', 'snoozed', 'dismissed')"
    )
    op.create_table(
        "verification",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("recommendation_id", sa.Integer(), nullable=False),
        sa.Column("rule_id", sa.Text(), nullable=False),
        sa.Column("acted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("ledger", sa.Text(), nullable=True),
        sa.Column("saving_p10", sa.Double(), nullable=True),
        sa.Column("saving_p50", sa.Double(), nullable=True),
        sa.Column("saving_p90", sa.Double(), nullable=True),
        sa.Column("predicted_p50", sa.Double(), nullable=True),
        sa.Column("report", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "verdict IN ('saved', 'no_saving', 'noise', 'too_early', 'too_little', 'no_baseline', 'traffic_changed', "
            "'confounded', 'not_attributable', 'placebo', 'not_measurable')",
            name=op.f("ck_verification_verdict"),
        ),
        sa.CheckConstraint("ledger IN ('cash', 'capacity', 'energy')", name=op.f("ck_verification_ledger")),
        sa.ForeignKeyConstraint(
            ["recommendation_id"],
            ["recommendation.id"],
            name=op.f("fk_verification_recommendation_id_recommendation"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verification")),
        sa.UniqueConstraint(
            "recommendation_id", "acted_at", name=op.f("uq_verification_recommendation_id_acted_at")
        ),
    )
    op.create_index(op.f("ix_verification_rule_id"), "verification", ["rule_id"])


def downgrade() -> None:
    op.drop_table("verification")
    op.drop_column("recommendation_event", "who")
    op.drop_column("recommendation", "acted_finding")
