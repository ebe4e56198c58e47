"""What the whole agent reads: more columns of samples and hours, samples and hours of hosts, tokens of the API.

Every new column may be NULL, or has a default: rows that are there keep saying what they said.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

GPU_SAMPLE = (
    "tensor_hmma_active_ratio",
    "tensor_imma_active_ratio",
    "tensor_dfma_active_ratio",
    "fp64_active_ratio",
    "fp16_active_ratio",
    "nvlink_rx_bytes_per_s",
    "nvlink_tx_bytes_per_s",
    "encoder_busy_ratio",
    "decoder_busy_ratio",
    "jpeg_busy_ratio",
    "ofa_busy_ratio",
    "temperature_margin_c",
    "performance_state_index",
    "slowed_power_cap_s",
    "slowed_sync_boost_s",
    "slowed_board_limit_s",
    "slowed_low_utilization_s",
    "slowed_reliability_s",
    "slowed_sw_thermal_s",
    "slowed_hw_thermal_s",
    "slowed_power_brake_s",
)
HOST_SAMPLE = (
    "cpu_busy_ratio",
    "cpu_busiest_ratio",
    "iowait_ratio",
    "host_memory_used_bytes",
    "host_memory_total_bytes",
    "host_power_w",
    "agent_cpu_ratio",
    "agent_memory_bytes",
    "agent_tick_s",
    "agent_tick_max_s",
    "agent_written_bytes",
    "agent_skipped_count",
    "agent_dropped_count",
    "agent_waiting_count",
)
GPU_HOUR = (
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
HOST_HOUR = (
    "cpu_busy_ratio",
    "cpu_busiest_ratio",
    "iowait_ratio",
    "host_memory_used_bytes",
    "host_power_w",
)
CPU = ("cpu_ratio", "cpu_thread_ratio")
ADDED = {
    "gpu_sample": tuple((name, sa.Double()) for name in GPU_SAMPLE),
    "process_sample": tuple((name, sa.Double()) for name in CPU),
    "gpu": (
        ("compute_capability", sa.Text()),
        ("power_averaging_s", sa.Double()),
        ("health", sa.Text()),
        ("health_ms", sa.BigInteger()),
    ),
    "host": (
        ("cpu_count", sa.Integer()),
        ("memory_total_bytes", sa.BigInteger()),
        ("agent_version", sa.Text()),
        ("agent_id", sa.Text()),
        ("agent_sequence", sa.BigInteger()),
        ("agent_seen_ms", sa.BigInteger()),
        ("first_sample_ms", sa.BigInteger()),
        ("last_sample_ms", sa.BigInteger()),
        ("seen_until_ms", sa.BigInteger()),
    ),
    "gpu_hour": tuple((name, sa.Double()) for name in GPU_HOUR),
    "usage_hour": tuple((name, sa.Double()) for name in CPU),
}


def upgrade() -> None:
    for table, columns in ADDED.items():
        for name, kind in columns:
            op.add_column(table, sa.Column(name, kind, nullable=True))
    op.add_column("workload", sa.Column("attributes", sa.Text(), server_default="{}", nullable=False))
    op.create_table(
        "host_sample",
        sa.Column("host_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ts_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("span_ms", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=True) for name in HOST_SAMPLE),
        sa.PrimaryKeyConstraint("host_id", "ts_ms", name=op.f("pk_host_sample")),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (ts_ms)",
    )
    op.create_table(
        "host_hour",
        sa.Column("host_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hour_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("covered_s", sa.Double(), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=True) for name in HOST_HOUR),
        sa.Column("sampled_from_ms", sa.BigInteger(), nullable=True),
        sa.Column("sampled_to_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"], name=op.f("fk_host_hour_host_id_host")),
        sa.PrimaryKeyConstraint("host_id", "hour_ms", name=op.f("pk_host_hour")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_host_hour_hour_ms"), "host_hour", ["hour_ms"])
    op.create_table(
        "api_token",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host_name", sa.Text(), nullable=True),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_used_ms", sa.BigInteger(), nullable=True),
        sa.Column("revoked_ms", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("scope IN ('ingest')", name=op.f("ck_api_token_scope")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_token_token_hash")),
    )
    _kinds("kind IN ('gpu', 'engine', 'host')")


def downgrade() -> None:
    op.execute("DELETE FROM rollup_pending WHERE kind = 'host'")
    _kinds("kind IN ('gpu', 'engine')")
    op.drop_table("api_token")
    op.drop_table("host_hour")
    op.drop_table("host_sample")
    op.drop_column("workload", "attributes")
    for table, columns in reversed(ADDED.items()):
        for name, _kind in reversed(columns):
            op.drop_column(table, name)


def _kinds(check: str) -> None:
    """What may be marked to be rolled up; SQLite copies the table, which has to stay without row numbers."""
    pending = sa.Table(
        "rollup_pending",
        sa.MetaData(),
        sa.Column("hour_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IS NOT NULL", name=op.f("ck_rollup_pending_kind")),
        sa.PrimaryKeyConstraint("hour_ms", "kind", "entity_id", name=op.f("pk_rollup_pending")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table(
        "rollup_pending", copy_from=pending, table_kwargs={"sqlite_with_rowid": False}
    ) as batch:
        batch.drop_constraint(op.f("ck_rollup_pending_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_rollup_pending_kind"), check)
