"""Weeks of GPUs by activity, and hours of GPU models, so that months of a fleet are not added up for every page."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
MONDAY_MS = 4 * DAY_MS
"""The first Monday of the epoch."""
ACTIVITIES = (
    "empty",
    "parked",
    "starved",
    "spinning",
    "memory_bound",
    "compute_bound",
    "mixed",
    "busy",
    "unknown",
)
SECONDS = tuple(f"{activity}_s" for activity in ACTIVITIES)
JOULES = tuple(f"{activity}_j" for activity in ACTIVITIES)


def upgrade() -> None:
    op.create_table(
        "gpu_week",
        sa.Column("gpu_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.Double(), nullable=False) for name in SECONDS),
        *(sa.Column(name, sa.Double(), nullable=True) for name in JOULES),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_gpu_week_gpu_id_gpu")),
        sa.PrimaryKeyConstraint("gpu_id", "day_ms", name=op.f("pk_gpu_week")),
        sqlite_with_rowid=False,
    )
    names = ", ".join((*SECONDS, *JOULES))
    sums = ", ".join(f"sum({name})" for name in (*SECONDS, *JOULES))
    op.execute(
        f"INSERT INTO gpu_week (gpu_id, day_ms, {names}) "
        f"SELECT gpu_id, day_ms - (day_ms - {MONDAY_MS}) % {WEEK_MS}, {sums} FROM gpu_day GROUP BY 1, 2"
    )
    op.create_table(
        "demand_day",
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("day_ms", name=op.f("pk_demand_day")),
        sqlite_with_rowid=False,
    )
    # Hours are added up by the next roll-up: they may be many millions.
    op.create_table(
        "demand_hour",
        sa.Column("hour_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.Double(), nullable=False)
            for name in (
                *("known_s", "allocated_s", "active_s", "empty_s", "empty_j"),
                *("parked_s", "parked_j", "working_s", "working_j"),
            )
        ),
        sa.PrimaryKeyConstraint("hour_ms", "model", name=op.f("pk_demand_hour")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("demand_hour")
    op.drop_table("demand_day")
    op.drop_table("gpu_week")
