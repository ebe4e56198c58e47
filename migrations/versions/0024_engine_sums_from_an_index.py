"""Sums of engines' days in an index: the list of engines over a quarter reads a tenth of the bytes."""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_engine_day_sums",
        "engine_day",
        [
            *("engine_id", "day_ms", "busy_s", "generated_tokens", "busy_generated_tokens"),
            *("preemption_count", "busy_energy_j"),
        ],
    )


def downgrade() -> None:
    op.drop_index("ix_engine_day_sums", table_name="engine_day")
