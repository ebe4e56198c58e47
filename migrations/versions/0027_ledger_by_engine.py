"""Lines of the ledger told apart by the engines seen in each hour, so that reports by engine need not price hours."""

import json
from secrets import randbits

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
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
    "engine_set_id": "ledger_engine_set.id",
    "workload_id": "workload.id",
    "owner_id": "owner.id",
    "rate_id": "ledger_rate.id",
    "place_id": "ledger_place.id",
}


def upgrade() -> None:
    op.create_table(
        "ledger_engine_set",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("engine_ids", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_engine_set")),
        sa.UniqueConstraint("engine_ids", name=op.f("uq_ledger_engine_set_engine_ids")),
    )
    _lines("ledger_engine_day")
    _lines("ledger_engine_week", sa.Column("is_correction", sa.Integer(), nullable=False))
    _mark_days_with_engines()


def _lines(table: str, *more: sa.Column) -> None:
    op.create_table(
        table,
        sa.Column("id", BIG, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=name not in {"gpu_id", "place_id"}) for name in REFERENCES),
        *more,
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in KNOWN),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in PERHAPS),
        sa.Column("energy_method", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('workload', 'unattributed', 'idle', 'gap')", name=op.f(f"ck_{table}_kind")
        ),
        *(
            sa.ForeignKeyConstraint([name], [of], name=op.f(f"fk_{table}_{name}_{of.removesuffix('.id')}"))
            for name, of in REFERENCES.items()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )
    op.create_index(op.f(f"ix_{table}_day_ms_gpu_id"), table, ["day_ms", "gpu_id"])


def _mark_days_with_engines() -> None:
    """Days of GPUs that serve are to be priced anew once, by the next run of the ledger job: a third as many as all may be."""
    connection = op.get_bind()
    statement = sa.text(
        "INSERT INTO ledger_pending (gpu_id, day_ms, mark) "
        "SELECT CAST(:gpu_id AS integer), day_ms, CAST(:mark AS bigint) FROM ("
        "SELECT day_ms FROM engine_day WHERE engine_id = :engine_id UNION "
        "SELECT day_ms FROM day_pending WHERE kind = 'engine' AND entity_id = :engine_id"
        ") AS day WHERE 1 = 1 "
        "ON CONFLICT (gpu_id, day_ms) DO UPDATE SET mark = excluded.mark"
    ).bindparams(sa.bindparam("mark", type_=sa.BigInteger))
    engines = connection.execute(
        sa.text("SELECT id, joined_gpu_ids FROM engine WHERE joined_gpu_ids IS NOT NULL")
    )
    for engine_id, gpu_ids in engines.all():
        for gpu_id in json.loads(gpu_ids):
            connection.execute(statement, {"gpu_id": gpu_id, "mark": randbits(62), "engine_id": engine_id})


def downgrade() -> None:
    op.drop_table("ledger_engine_week")
    op.drop_table("ledger_engine_day")
    op.drop_table("ledger_engine_set")
