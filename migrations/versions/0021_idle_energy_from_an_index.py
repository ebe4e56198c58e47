"""Joules of empty and parked days in the index of days: a page over a quarter reads a tenth of the bytes."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        op.f("ix_gpu_day_day_ms_empty_j_parked_j_empty_s_parked_s"),
        "gpu_day",
        ["day_ms", "empty_j", "parked_j", "empty_s", "parked_s"],
    )
    op.drop_index(op.f("ix_gpu_day_day_ms"), table_name="gpu_day")


def downgrade() -> None:
    op.create_index(op.f("ix_gpu_day_day_ms"), "gpu_day", ["day_ms"])
    op.drop_index(op.f("ix_gpu_day_day_ms_empty_j_parked_j_empty_s_parked_s"), table_name="gpu_day")
