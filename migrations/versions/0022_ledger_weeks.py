"""Weeks of the ledger added up by GPU and holder, so that a page over months of a thousand GPUs need not read every day."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
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
KNOWN = (
    *("known_ms", "covered_ms", "allocated_ms", "active_ms", "effective_ms", "effective_unknown_ms"),
    "energy_covered_ms",
    *(f"{activity}_ms" for activity in ACTIVITIES),
)
PERHAPS = (
    *("energy_mj", "site_energy_mj", "cost_usd", "idle_cost_usd", "energy_usd", "billed_energy_usd"),
    "carbon_ug",
    *(f"{activity}_usd" for activity in ACTIVITIES),
)
REFERENCES = {
    "gpu_id": "gpu.id",
    "workload_id": "workload.id",
    "owner_id": "owner.id",
    "rate_id": "ledger_rate.id",
    "place_id": "ledger_place.id",
}


def upgrade() -> None:
    op.create_table(
        "ledger_week_span",
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("to_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day_ms", name=op.f("pk_ledger_week_span")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "ledger_week",
        sa.Column("id", BIG, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), nullable=False),
        sa.Column("gpu_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=name != "place_id")
            for name in REFERENCES
            if name != "gpu_id"
        ),
        sa.Column("is_correction", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in KNOWN),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in PERHAPS),
        sa.Column("energy_method", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('workload', 'unattributed', 'idle', 'gap')", name=op.f("ck_ledger_week_kind")
        ),
        *(
            sa.ForeignKeyConstraint(
                [name], [of], name=op.f(f"fk_ledger_week_{name}_{of.removesuffix('.id')}")
            )
            for name, of in REFERENCES.items()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_week")),
    )
    op.create_index(op.f("ix_ledger_week_day_ms_gpu_id"), "ledger_week", ["day_ms", "gpu_id"])
    # Nothing is filled here: the next run of the ledger job adds up every week that is over.


def downgrade() -> None:
    op.drop_table("ledger_week")
    op.drop_table("ledger_week_span")
