"""Days of the ledger added up, so that a report by owner and day does not grow with the fleet."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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


def upgrade() -> None:
    op.create_table(
        "ledger_total_day",
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("day_ms", name=op.f("pk_ledger_total_day")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "ledger_total",
        sa.Column("id", BIG, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("rate_id", sa.Integer(), nullable=True),
        sa.Column("place_id", sa.Integer(), nullable=False),
        sa.Column("is_correction", sa.Integer(), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in (
                "known_ms",
                "covered_ms",
                "allocated_ms",
                "active_ms",
                "effective_ms",
                "effective_unknown_ms",
            )
        ),
        sa.Column("energy_mj", sa.BigInteger(), nullable=True),
        sa.Column("energy_covered_ms", sa.BigInteger(), nullable=False),
        sa.Column("energy_method", sa.Text(), nullable=True),
        *(
            sa.Column(name, sa.BigInteger(), nullable=True)
            for name in (
                "site_energy_mj",
                "cost_usd",
                "idle_cost_usd",
                "energy_usd",
                "billed_energy_usd",
                "carbon_ug",
            )
        ),
        *(sa.Column(f"{activity}_ms", sa.BigInteger(), nullable=False) for activity in ACTIVITIES),
        *(sa.Column(f"{activity}_usd", sa.BigInteger(), nullable=True) for activity in ACTIVITIES),
        sa.CheckConstraint(
            "kind IN ('workload', 'unattributed', 'idle', 'gap')", name=op.f("ck_ledger_total_kind")
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["owner.id"], name=op.f("fk_ledger_total_owner_id_owner")),
        sa.ForeignKeyConstraint(
            ["rate_id"], ["ledger_rate.id"], name=op.f("fk_ledger_total_rate_id_ledger_rate")
        ),
        sa.ForeignKeyConstraint(
            ["place_id"], ["ledger_place.id"], name=op.f("fk_ledger_total_place_id_ledger_place")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_total")),
    )
    op.create_index(op.f("ix_ledger_total_day_ms"), "ledger_total", ["day_ms"])


def downgrade() -> None:
    op.drop_table("ledger_total")
    op.drop_table("ledger_total_day")
