"""Days of the ledger added up for each GPU, so that a page of a thousand of them need not read every line."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ledger_gpu_total",
        sa.Column("gpu_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner_id", sa.Integer(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("known_ms", "covered_ms")),
        *(
            sa.Column(name, sa.BigInteger(), nullable=True)
            for name in ("cost_usd", "idle_cost_usd", "paid_usd", "energy_mj")
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("active_ms", "empty_ms", "parked_ms")
        ),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_ledger_gpu_total_gpu_id_gpu")),
        sa.PrimaryKeyConstraint("gpu_id", "day_ms", "owner_id", name=op.f("pk_ledger_gpu_total")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_ledger_gpu_total_day_ms"), "ledger_gpu_total", ["day_ms"])
    # Days that are added up have no rows here: the next run of the ledger job makes them anew.
    op.execute("DELETE FROM ledger_total_day")


def downgrade() -> None:
    op.drop_table("ledger_gpu_total")
