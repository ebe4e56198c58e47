"""Days of GPUs, engines, hosts and usage, and the marks of days whose hours changed."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

DAY_MS = 86_400_000
GPU_REQUIRED = (
    "covered_s",
    "energy_covered_s",
    "allocated_s",
    "active_s",
    "effective_s",
    "effective_unknown_s",
    "empty_s",
    "parked_s",
    "starved_s",
    "spinning_s",
    "memory_bound_s",
    "compute_bound_s",
    "mixed_s",
    "busy_s",
    "unknown_s",
)
GPU_OPTIONAL = (
    "energy_j",
    "empty_j",
    "parked_j",
    "starved_j",
    "spinning_j",
    "memory_bound_j",
    "compute_bound_j",
    "mixed_j",
    "busy_j",
    "unknown_j",
    "busy_ratio",
    "memory_busy_ratio",
    "sm_active_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "fp32_active_ratio",
    "memory_used_bytes",
    "memory_used_max_bytes",
    "power_w",
    "power_max_w",
    "power_limit_w",
    "empty_power_w",
    "parked_power_w",
    "sm_clock_hz",
    "throttled_s",
    "temperature_max_c",
    "pcie_bytes_per_s",
    "nvlink_bytes_per_s",
    "tensor_hmma_active_ratio",
    "tensor_imma_active_ratio",
    "tensor_dfma_active_ratio",
    "fp64_active_ratio",
    "fp16_active_ratio",
    "slowed_power_s",
    "slowed_thermal_s",
    "temperature_margin_min_c",
)
ENGINE_TEXTS = (
    "running",
    "waiting",
    "kv_used",
    "profile",
)
ENGINE_OPTIONAL = (
    "generated_tokens",
    "busy_generated_tokens",
    "prompt_tokens",
    "cached_prompt_tokens",
    "preemption_count",
    "finished_requests",
    "ttft_sum_s",
    "ttft_count",
    "itl_sum_s",
    "itl_count",
    "busy_energy_j",
)
HOST_OPTIONAL = (
    "cpu_busy_ratio",
    "cpu_busiest_ratio",
    "iowait_ratio",
    "host_memory_used_bytes",
    "host_power_w",
)


def upgrade() -> None:
    op.create_table(
        "day_pending",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.CheckConstraint("kind IN ('gpu', 'engine', 'host')", name=op.f("ck_day_pending_kind")),
        sa.PrimaryKeyConstraint("kind", "entity_id", "day_ms", name=op.f("pk_day_pending")),
        sqlite_with_rowid=False,
    )
    _day_table(
        "gpu",
        sa.Column("hourly", sa.LargeBinary(), nullable=False),
        sa.Column("bare_idle_w", sa.Double(), nullable=True),
        sa.Column("energy_method", sa.Text(), nullable=True),
        *(sa.Column(name, sa.Double(), nullable=False) for name in GPU_REQUIRED),
        *(sa.Column(name, sa.Double(), nullable=True) for name in GPU_OPTIONAL),
        sa.CheckConstraint(
            "energy_method IN ('counter', 'integrated', 'mixed')", name=op.f("ck_gpu_day_energy_method")
        ),
    )
    op.create_index(op.f("ix_gpu_day_gpu_id_bare_idle_w"), "gpu_day", ["gpu_id", "bare_idle_w"])
    _day_table(
        "engine",
        sa.Column("hourly", sa.LargeBinary(), nullable=False),
        sa.Column("covered_s", sa.Double(), nullable=False),
        sa.Column("busy_s", sa.Double(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ENGINE_TEXTS),
        *(sa.Column(name, sa.Double(), nullable=True) for name in ENGINE_OPTIONAL),
    )
    _day_table(
        "host",
        sa.Column("covered_s", sa.Double(), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=True) for name in HOST_OPTIONAL),
    )
    op.create_table(
        "usage_day",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("gpu_id", sa.Integer(), nullable=False),
        sa.Column("day_ms", sa.BigInteger(), nullable=False),
        sa.Column("workload_id", sa.Integer(), nullable=True),
        sa.Column("first_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("allocated_s", sa.Double(), nullable=False),
        sa.Column("active_s", sa.Double(), nullable=False),
        sa.Column("effective_s", sa.Double(), nullable=False),
        sa.Column("memory_byte_s", sa.Double(), nullable=True),
        sa.Column("energy_j", sa.Double(), nullable=True),
        sa.Column("share_method", sa.Text(), nullable=False),
        sa.Column("cpu_ratio", sa.Double(), nullable=True),
        sa.Column("cpu_thread_ratio", sa.Double(), nullable=True),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "share_method IN ('whole', 'memory_time', 'even')", name=op.f("ck_usage_day_share_method")
        ),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_usage_day_gpu_id_gpu")),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workload.id"], name=op.f("fk_usage_day_workload_id_workload")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_usage_day")),
        sa.UniqueConstraint(
            "gpu_id", "day_ms", "workload_id", name=op.f("uq_usage_day_gpu_id_day_ms_workload_id")
        ),
    )
    op.create_index(op.f("ix_usage_day_day_ms"), "usage_day", ["day_ms"])
    op.create_index(op.f("ix_usage_day_workload_id"), "usage_day", ["workload_id"])
    # Hours that are there already: the next roll-up folds their days.
    for kind in ("gpu", "engine", "host"):
        op.execute(
            "INSERT INTO day_pending (kind, entity_id, day_ms) "
            f"SELECT DISTINCT '{kind}', {kind}_id, hour_ms - hour_ms % {DAY_MS} FROM {kind}_hour"
        )


def downgrade() -> None:
    for table in ("usage_day", "host_day", "engine_day", "gpu_day", "day_pending"):
        op.drop_table(table)


def _day_table(kind: str, *columns: sa.schema.SchemaItem) -> None:
    key, table = f"{kind}_id", f"{kind}_day"
    op.create_table(
        table,
        sa.Column(key, sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seen", sa.Integer(), nullable=False),
        *columns,
        sa.ForeignKeyConstraint([key], [f"{kind}.id"], name=op.f(f"fk_{table}_{key}_{kind}")),
        sa.PrimaryKeyConstraint(key, "day_ms", name=op.f(f"pk_{table}")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f(f"ix_{table}_day_ms"), table, ["day_ms"])
