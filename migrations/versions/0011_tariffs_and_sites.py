"""Tariffs, site profiles, and the measured share of hosts by day."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tariff",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=True),
        sa.Column("usd_per_kwh", sa.BigInteger(), nullable=True),
        sa.Column("periods", sa.Text(), nullable=True),
        sa.Column("valid_from_ms", sa.BigInteger(), nullable=False),
        sa.Column("valid_to_ms", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint("(usd_per_kwh IS NULL) <> (periods IS NULL)", name=op.f("ck_tariff_usd_per_kwh")),
        sa.CheckConstraint("periods IS NULL OR time_zone IS NOT NULL", name=op.f("ck_tariff_time_zone")),
        sa.CheckConstraint(
            "valid_to_ms IS NULL OR valid_to_ms > valid_from_ms", name=op.f("ck_tariff_valid_to_ms")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tariff")),
    )
    op.create_index(op.f("ix_tariff_name"), "tariff", ["name"])
    op.create_table(
        "site",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_value", sa.Text(), nullable=True),
        sa.Column("tariff", sa.Text(), nullable=True),
        sa.Column("pue", sa.Double(), nullable=True),
        sa.Column("host_share_ratio", sa.Double(), nullable=True),
        sa.Column("host_share_measured", sa.Boolean(), nullable=False),
        sa.Column("host_rest_ratio", sa.Double(), nullable=True),
        sa.Column("grid_code", sa.Text(), nullable=True),
        sa.Column("carbon_g_per_kwh", sa.Double(), nullable=True),
        sa.Column("pays_for_power", sa.Boolean(), nullable=True),
        sa.Column("valid_from_ms", sa.BigInteger(), nullable=False),
        sa.Column("valid_to_ms", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint("scope_kind IN ('host', 'cluster', 'all')", name=op.f("ck_site_scope_kind")),
        sa.CheckConstraint("(scope_kind = 'all') = (scope_value IS NULL)", name=op.f("ck_site_scope_value")),
        sa.CheckConstraint("pue >= 1", name=op.f("ck_site_pue")),
        sa.CheckConstraint("host_share_ratio >= 0", name=op.f("ck_site_host_share_ratio")),
        sa.CheckConstraint("host_rest_ratio >= 0", name=op.f("ck_site_host_rest_ratio")),
        sa.CheckConstraint("carbon_g_per_kwh >= 0", name=op.f("ck_site_carbon_g_per_kwh")),
        sa.CheckConstraint(
            "valid_to_ms IS NULL OR valid_to_ms > valid_from_ms", name=op.f("ck_site_valid_to_ms")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site")),
    )
    op.create_table(
        "host_share",
        sa.Column("host_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ratio", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"], name=op.f("fk_host_share_host_id_host")),
        sa.PrimaryKeyConstraint("host_id", "day_ms", name=op.f("pk_host_share")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_host_share_day_ms"), "host_share", ["day_ms"])
    # The next roll-up folds these days again, and tells their shares.
    op.execute(
        "INSERT INTO day_pending (kind, entity_id, day_ms) "
        "SELECT 'host', host_id, day_ms FROM host_day WHERE host_power_w IS NOT NULL AND NOT EXISTS (SELECT 1 FROM day_pending "
        "WHERE kind = 'host' AND entity_id = host_day.host_id AND day_pending.day_ms = host_day.day_ms)"
    )


def downgrade() -> None:
    for table in ("host_share", "site", "tariff"):
        op.drop_table(table)
