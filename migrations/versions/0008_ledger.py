"""The ledger: priced lines by accounting day, what they were priced with, closed months and their corrections, owners."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

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
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("host", sa.Column("cluster", sa.Text(), nullable=True))
    op.add_column("host", sa.Column("instance_type", sa.Text(), nullable=True))
    op.add_column("host", sa.Column("region", sa.Text(), nullable=True))
    op.add_column("host", sa.Column("labels", sa.Text(), nullable=False, server_default="{}"))
    op.create_table(
        "owner",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("cost_centre", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_owner")),
        sa.UniqueConstraint("team", "project", "cost_centre", name=op.f("uq_owner_team_project_cost_centre")),
    )
    op.create_table(
        "ledger_rate",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("usd_per_gpu_hour", sa.BigInteger(), nullable=False),
        sa.Column("list_usd_per_gpu_hour", sa.BigInteger(), nullable=True),
        sa.Column("billing", sa.Text(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("as_of", sa.Text(), nullable=False),
        sa.Column("from_user", sa.Boolean(), nullable=False),
        sa.Column("gpus_per_unit", sa.Integer(), nullable=False),
        sa.Column("price_id", sa.Integer(), nullable=True),
        sa.Column("commitment", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "billing IN ('on_demand', 'reserved', 'spot', 'committed', 'owned')",
            name=op.f("ck_ledger_rate_billing"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_rate")),
        sa.UniqueConstraint("digest", name=op.f("uq_ledger_rate_digest")),
    )
    op.create_table(
        "ledger_place",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("tariff", sa.Text(), nullable=True),
        sa.Column("usd_per_kwh", sa.BigInteger(), nullable=True),
        sa.Column("pue", sa.Double(), nullable=False),
        sa.Column("host_share_ratio", sa.Double(), nullable=False),
        sa.Column("host_share_method", sa.Text(), nullable=False),
        sa.Column("carbon_g_per_kwh", sa.Double(), nullable=True),
        sa.Column("carbon_code", sa.Text(), nullable=True),
        sa.Column("carbon_year", sa.Integer(), nullable=True),
        sa.Column("carbon_method", sa.Text(), nullable=True),
        sa.Column("pays_for_power", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_place")),
        sa.UniqueConstraint("digest", name=op.f("uq_ledger_place_digest")),
    )
    op.create_table(
        "ledger_month",
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("to_ms", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_by", sa.Text(), nullable=True),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("month", name=op.f("pk_ledger_month")),
    )
    op.create_table(
        "ledger_booking",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("booked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["month"], ["ledger_month.month"], name=op.f("fk_ledger_booking_month_ledger_month")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_booking")),
    )
    op.create_index(op.f("ix_ledger_booking_month"), "ledger_booking", ["month"])
    op.create_table(
        "ledger_day",
        sa.Column("id", BIG, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("to_ms", sa.BigInteger(), nullable=False),
        sa.Column("gpu_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("workload_id", sa.Integer(), nullable=True),
        sa.Column("owner_id", sa.Integer(), nullable=True),
        sa.Column("rate_id", sa.Integer(), nullable=True),
        sa.Column("place_id", sa.Integer(), nullable=False),
        sa.Column("booking_id", sa.Integer(), nullable=True),
        sa.Column("share_method", sa.Text(), nullable=False),
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
        sa.Column("memory_byte_s", sa.Double(), nullable=True),
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
            "kind IN ('workload', 'unattributed', 'idle', 'gap')", name=op.f("ck_ledger_day_kind")
        ),
        sa.CheckConstraint(
            "share_method IN ('whole', 'memory_time', 'even')", name=op.f("ck_ledger_day_share_method")
        ),
        sa.CheckConstraint(
            "energy_method IN ('counter', 'integrated', 'mixed')", name=op.f("ck_ledger_day_energy_method")
        ),
        sa.CheckConstraint("to_ms > from_ms", name=op.f("ck_ledger_day_to_ms")),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_ledger_day_gpu_id_gpu")),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workload.id"], name=op.f("fk_ledger_day_workload_id_workload")
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["owner.id"], name=op.f("fk_ledger_day_owner_id_owner")),
        sa.ForeignKeyConstraint(
            ["rate_id"], ["ledger_rate.id"], name=op.f("fk_ledger_day_rate_id_ledger_rate")
        ),
        sa.ForeignKeyConstraint(
            ["place_id"], ["ledger_place.id"], name=op.f("fk_ledger_day_place_id_ledger_place")
        ),
        sa.ForeignKeyConstraint(
            ["booking_id"], ["ledger_booking.id"], name=op.f("fk_ledger_day_booking_id_ledger_booking")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_day")),
    )
    op.create_index(op.f("ix_ledger_day_gpu_id_day_ms"), "ledger_day", ["gpu_id", "day_ms"])
    op.create_index(op.f("ix_ledger_day_day_ms_owner_id"), "ledger_day", ["day_ms", "owner_id"])
    op.create_table(
        "ledger_pending",
        sa.Column("gpu_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("gpu_id", "day_ms", name=op.f("pk_ledger_pending")),
        sqlite_with_rowid=False,
    )
    # Whatever was ever measured is to be priced.
    op.execute("INSERT INTO ledger_pending (gpu_id, day_ms, mark) SELECT gpu_id, day_ms, 0 FROM gpu_day")


def downgrade() -> None:
    for table in (
        "ledger_pending",
        "ledger_day",
        "ledger_booking",
        "ledger_month",
        "ledger_place",
        "ledger_rate",
        "owner",
    ):
        op.drop_table(table)
    for column in ("labels", "region", "instance_type", "cluster"):
        op.drop_column("host", column)
