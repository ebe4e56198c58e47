"""First tables: fleet, samples, hours, usage, prices, recommendations, records of work.

Written out in full: a migration never changes with the models.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "host",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_host")),
        sa.UniqueConstraint("name", name=op.f("uq_host_name")),
    )
    op.create_table(
        "gpu",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("gpu_uuid", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Integer(), nullable=True),
        sa.Column("gpu_index", sa.Integer(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("memory_total_bytes", sa.BigInteger(), nullable=True),
        sa.Column("pci_bus_id", sa.Text(), nullable=True),
        sa.Column("driver_version", sa.Text(), nullable=True),
        sa.Column("max_sm_clock_hz", sa.Double(), nullable=True),
        sa.Column("power_limit_default_w", sa.Double(), nullable=True),
        sa.Column("first_sample_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_sample_ms", sa.BigInteger(), nullable=True),
        sa.Column("seen_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_held_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"], name=op.f("fk_gpu_host_id_host")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gpu")),
        sa.UniqueConstraint("gpu_uuid", name=op.f("uq_gpu_gpu_uuid")),
    )
    op.create_index(op.f("ix_gpu_host_id"), "gpu", ["host_id"])
    op.create_table(
        "gpu_sample",
        sa.Column("gpu_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ts_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("span_ms", sa.Integer(), nullable=False),
        sa.Column("covered_ms", sa.Integer(), nullable=False),
        sa.Column("energy_method", sa.Text(), nullable=True),
        sa.Column("activity", sa.Text(), nullable=False),
        sa.Column("busy_ratio", sa.Double(), nullable=True),
        sa.Column("busy_max_ratio", sa.Double(), nullable=True),
        sa.Column("busy_min_ratio", sa.Double(), nullable=True),
        sa.Column("memory_busy_ratio", sa.Double(), nullable=True),
        sa.Column("memory_used_bytes", sa.Double(), nullable=True),
        sa.Column("memory_reserved_bytes", sa.Double(), nullable=True),
        sa.Column("power_w", sa.Double(), nullable=True),
        sa.Column("power_max_w", sa.Double(), nullable=True),
        sa.Column("power_limit_w", sa.Double(), nullable=True),
        sa.Column("energy_j", sa.Double(), nullable=True),
        sa.Column("sm_clock_hz", sa.Double(), nullable=True),
        sa.Column("memory_clock_hz", sa.Double(), nullable=True),
        sa.Column("temperature_c", sa.Double(), nullable=True),
        sa.Column("memory_temperature_c", sa.Double(), nullable=True),
        sa.Column("event_reasons_flags", sa.Double(), nullable=True),
        sa.Column("pcie_rx_bytes_per_s", sa.Double(), nullable=True),
        sa.Column("pcie_tx_bytes_per_s", sa.Double(), nullable=True),
        sa.Column("sm_active_ratio", sa.Double(), nullable=True),
        sa.Column("sm_occupancy_ratio", sa.Double(), nullable=True),
        sa.Column("tensor_active_ratio", sa.Double(), nullable=True),
        sa.Column("dram_active_ratio", sa.Double(), nullable=True),
        sa.Column("fp32_active_ratio", sa.Double(), nullable=True),
        sa.Column("process_count", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("gpu_id", "ts_ms", name=op.f("pk_gpu_sample")),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (ts_ms)",
    )
    op.create_table(
        "workload",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("natural_key", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Integer(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"], name=op.f("fk_workload_host_id_host")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workload")),
        sa.UniqueConstraint("natural_key", name=op.f("uq_workload_natural_key")),
    )
    op.create_index(op.f("ix_workload_host_id"), "workload", ["host_id"])
    op.create_table(
        "process_sample",
        sa.Column("gpu_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ts_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("workload_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("span_ms", sa.Integer(), nullable=False),
        sa.Column("memory_used_bytes", sa.Double(), nullable=True),
        sa.Column("busy_ratio", sa.Double(), nullable=True),
        sa.Column("process_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("gpu_id", "ts_ms", "workload_id", name=op.f("pk_process_sample")),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (ts_ms)",
    )
    op.create_table(
        "engine",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Integer(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("gpu_uuids", sa.Text(), nullable=False),
        sa.Column("first_sample_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_sample_ms", sa.BigInteger(), nullable=True),
        sa.Column("seen_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("joined_gpu_ids", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"], name=op.f("fk_engine_host_id_host")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_engine")),
        sa.UniqueConstraint("engine", name=op.f("uq_engine_engine")),
    )
    op.create_index(op.f("ix_engine_host_id"), "engine", ["host_id"])
    op.create_table(
        "engine_sample",
        sa.Column("engine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ts_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("span_ms", sa.Integer(), nullable=False),
        sa.Column("covered_ms", sa.Integer(), nullable=False),
        sa.Column("busy_ms", sa.Integer(), nullable=False),
        sa.Column("busy_running_requests", sa.Double(), nullable=True),
        sa.Column("running_requests", sa.Double(), nullable=True),
        sa.Column("running_max_requests", sa.Double(), nullable=True),
        sa.Column("waiting_requests", sa.Double(), nullable=True),
        sa.Column("kv_used_ratio", sa.Double(), nullable=True),
        sa.Column("kv_used_max_ratio", sa.Double(), nullable=True),
        sa.Column("generated_tokens", sa.Double(), nullable=True),
        sa.Column("prompt_tokens", sa.Double(), nullable=True),
        sa.Column("cached_prompt_tokens", sa.Double(), nullable=True),
        sa.Column("preemption_count", sa.Double(), nullable=True),
        sa.Column("finished_requests", sa.Double(), nullable=True),
        sa.Column("ttft_sum_s", sa.Double(), nullable=True),
        sa.Column("ttft_count", sa.Double(), nullable=True),
        sa.Column("itl_sum_s", sa.Double(), nullable=True),
        sa.Column("itl_count", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("engine_id", "ts_ms", name=op.f("pk_engine_sample")),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (ts_ms)",
    )
    op.create_table(
        "gpu_event",
        sa.Column("gpu_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ts_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_gpu_event_gpu_id_gpu")),
        sa.PrimaryKeyConstraint("gpu_id", "ts_ms", "kind", "message", name=op.f("pk_gpu_event")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rollup_pending",
        sa.Column("hour_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('gpu', 'engine')", name=op.f("ck_rollup_pending_kind")),
        sa.PrimaryKeyConstraint("hour_ms", "kind", "entity_id", name=op.f("pk_rollup_pending")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "gpu_hour",
        sa.Column("gpu_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hour_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("covered_s", sa.Double(), nullable=False),
        sa.Column("energy_j", sa.Double(), nullable=True),
        sa.Column("energy_method", sa.Text(), nullable=True),
        sa.Column("energy_covered_s", sa.Double(), nullable=False),
        sa.Column("allocated_s", sa.Double(), nullable=False),
        sa.Column("active_s", sa.Double(), nullable=False),
        sa.Column("effective_s", sa.Double(), nullable=False),
        sa.Column("effective_unknown_s", sa.Double(), nullable=False),
        sa.Column("empty_s", sa.Double(), nullable=False),
        sa.Column("parked_s", sa.Double(), nullable=False),
        sa.Column("starved_s", sa.Double(), nullable=False),
        sa.Column("spinning_s", sa.Double(), nullable=False),
        sa.Column("memory_bound_s", sa.Double(), nullable=False),
        sa.Column("compute_bound_s", sa.Double(), nullable=False),
        sa.Column("mixed_s", sa.Double(), nullable=False),
        sa.Column("busy_s", sa.Double(), nullable=False),
        sa.Column("unknown_s", sa.Double(), nullable=False),
        sa.Column("empty_j", sa.Double(), nullable=True),
        sa.Column("parked_j", sa.Double(), nullable=True),
        sa.Column("starved_j", sa.Double(), nullable=True),
        sa.Column("spinning_j", sa.Double(), nullable=True),
        sa.Column("memory_bound_j", sa.Double(), nullable=True),
        sa.Column("compute_bound_j", sa.Double(), nullable=True),
        sa.Column("mixed_j", sa.Double(), nullable=True),
        sa.Column("busy_j", sa.Double(), nullable=True),
        sa.Column("unknown_j", sa.Double(), nullable=True),
        sa.Column("busy_ratio", sa.Double(), nullable=True),
        sa.Column("memory_busy_ratio", sa.Double(), nullable=True),
        sa.Column("sm_active_ratio", sa.Double(), nullable=True),
        sa.Column("sm_occupancy_ratio", sa.Double(), nullable=True),
        sa.Column("tensor_active_ratio", sa.Double(), nullable=True),
        sa.Column("dram_active_ratio", sa.Double(), nullable=True),
        sa.Column("fp32_active_ratio", sa.Double(), nullable=True),
        sa.Column("memory_used_bytes", sa.Double(), nullable=True),
        sa.Column("memory_used_max_bytes", sa.Double(), nullable=True),
        sa.Column("power_w", sa.Double(), nullable=True),
        sa.Column("power_max_w", sa.Double(), nullable=True),
        sa.Column("power_limit_w", sa.Double(), nullable=True),
        sa.Column("empty_power_w", sa.Double(), nullable=True),
        sa.Column("parked_power_w", sa.Double(), nullable=True),
        sa.Column("sm_clock_hz", sa.Double(), nullable=True),
        sa.Column("throttled_s", sa.Double(), nullable=True),
        sa.Column("temperature_max_c", sa.Double(), nullable=True),
        sa.Column("pcie_bytes_per_s", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "energy_method IN ('counter', 'integrated', 'mixed')", name=op.f("ck_gpu_hour_energy_method")
        ),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_gpu_hour_gpu_id_gpu")),
        sa.PrimaryKeyConstraint("gpu_id", "hour_ms", name=op.f("pk_gpu_hour")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_gpu_hour_hour_ms"), "gpu_hour", ["hour_ms"])
    op.create_table(
        "engine_hour",
        sa.Column("engine_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hour_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("covered_s", sa.Double(), nullable=False),
        sa.Column("busy_s", sa.Double(), nullable=False),
        sa.Column("running", sa.Text(), nullable=False),
        sa.Column("waiting", sa.Text(), nullable=False),
        sa.Column("kv_used", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("generated_tokens", sa.Double(), nullable=True),
        sa.Column("busy_generated_tokens", sa.Double(), nullable=True),
        sa.Column("prompt_tokens", sa.Double(), nullable=True),
        sa.Column("cached_prompt_tokens", sa.Double(), nullable=True),
        sa.Column("preemption_count", sa.Double(), nullable=True),
        sa.Column("finished_requests", sa.Double(), nullable=True),
        sa.Column("ttft_sum_s", sa.Double(), nullable=True),
        sa.Column("ttft_count", sa.Double(), nullable=True),
        sa.Column("itl_sum_s", sa.Double(), nullable=True),
        sa.Column("itl_count", sa.Double(), nullable=True),
        sa.Column("busy_energy_j", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["engine_id"], ["engine.id"], name=op.f("fk_engine_hour_engine_id_engine")),
        sa.PrimaryKeyConstraint("engine_id", "hour_ms", name=op.f("pk_engine_hour")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_engine_hour_hour_ms"), "engine_hour", ["hour_ms"])
    op.create_table(
        "usage_hour",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("gpu_id", sa.Integer(), nullable=False),
        sa.Column("hour_ms", sa.BigInteger(), nullable=False),
        sa.Column("workload_id", sa.Integer(), nullable=True),
        sa.Column("allocated_s", sa.Double(), nullable=False),
        sa.Column("active_s", sa.Double(), nullable=False),
        sa.Column("effective_s", sa.Double(), nullable=False),
        sa.Column("memory_byte_s", sa.Double(), nullable=True),
        sa.Column("energy_j", sa.Double(), nullable=True),
        sa.Column("share_method", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "share_method IN ('whole', 'memory_time', 'even')", name=op.f("ck_usage_hour_share_method")
        ),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_usage_hour_gpu_id_gpu")),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workload.id"], name=op.f("fk_usage_hour_workload_id_workload")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_usage_hour")),
        sa.UniqueConstraint(
            "gpu_id", "hour_ms", "workload_id", name=op.f("uq_usage_hour_gpu_id_hour_ms_workload_id")
        ),
    )
    op.create_index(op.f("ix_usage_hour_hour_ms"), "usage_hour", ["hour_ms"])
    op.create_index(op.f("ix_usage_hour_workload_id"), "usage_hour", ["workload_id"])
    op.create_table(
        "price",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_value", sa.Text(), nullable=True),
        sa.Column("usd_per_gpu_hour", sa.BigInteger(), nullable=False),
        sa.Column("billing", sa.Text(), nullable=False),
        sa.Column("gpus_per_unit", sa.Integer(), nullable=False),
        sa.Column("valid_from_ms", sa.BigInteger(), nullable=False),
        sa.Column("valid_to_ms", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint("(scope_kind = 'all') = (scope_value IS NULL)", name=op.f("ck_price_scope_value")),
        sa.CheckConstraint(
            "valid_to_ms IS NULL OR valid_to_ms > valid_from_ms", name=op.f("ck_price_valid_to_ms")
        ),
        sa.CheckConstraint(
            "scope_kind IN ('gpu_uuid', 'host', 'model', 'all')", name=op.f("ck_price_scope_kind")
        ),
        sa.CheckConstraint("usd_per_gpu_hour >= 0", name=op.f("ck_price_usd_per_gpu_hour")),
        sa.CheckConstraint("gpus_per_unit >= 1", name=op.f("ck_price_gpus_per_unit")),
        sa.CheckConstraint(
            "billing IN ('on_demand', 'reserved', 'spot', 'owned')", name=op.f("ck_price_billing")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price")),
    )
    op.create_table(
        "recommendation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("rule_id", sa.Text(), nullable=False),
        sa.Column("subject_kind", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("finding", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("snoozed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "status IN ('open', 'claimed', 'done', 'verified', 'reopened', 'snoozed', 'dismissed', 'gone')",
            name=op.f("ck_recommendation_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recommendation")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_recommendation_fingerprint")),
    )
    op.create_index(op.f("ix_recommendation_status"), "recommendation", ["status"])
    op.create_table(
        "recommendation_event",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("recommendation_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status_from", sa.Text(), nullable=True),
        sa.Column("status_to", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "status_to IN ('open', 'claimed', 'done', 'verified', 'reopened', 'snoozed', 'dismissed', 'gone')",
            name=op.f("ck_recommendation_event_status_to"),
        ),
        sa.CheckConstraint(
            "status_from IN ('open', 'claimed', 'done', 'verified', 'reopened', 'snoozed', 'dismissed', 'gone')",
            name=op.f("ck_recommendation_event_status_from"),
        ),
        sa.ForeignKeyConstraint(
            ["recommendation_id"],
            ["recommendation.id"],
            name=op.f("fk_recommendation_event_recommendation_id_recommendation"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recommendation_event")),
    )
    op.create_index(
        op.f("ix_recommendation_event_recommendation_id"), "recommendation_event", ["recommendation_id"]
    )
    op.create_table(
        "job_run",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ok", sa.Boolean(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_run")),
    )
    op.create_index(op.f("ix_job_run_name_started_at"), "job_run", ["name", "started_at"])
    op.create_table(
        "mail_log",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=True),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mail_log")),
    )
    op.create_index(op.f("ix_mail_log_period"), "mail_log", ["period"])
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )


def downgrade() -> None:
    op.drop_table("meta")
    op.drop_table("mail_log")
    op.drop_table("job_run")
    op.drop_table("recommendation_event")
    op.drop_table("recommendation")
    op.drop_table("price")
    op.drop_table("usage_hour")
    op.drop_table("engine_hour")
    op.drop_table("gpu_hour")
    op.drop_table("rollup_pending")
    op.drop_table("gpu_event")
    op.drop_table("engine_sample")
    op.drop_table("engine")
    op.drop_table("process_sample")
    op.drop_table("workload")
    op.drop_table("gpu_sample")
    op.drop_table("gpu")
    op.drop_table("host")
