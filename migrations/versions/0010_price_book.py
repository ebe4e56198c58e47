"""Prices per label, instance type and cluster, in any currency, of commitments and of owned machines; exchange rates.

Rows that are there stay what they were: dollars.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

SCOPES = "scope_kind IN ('gpu_uuid', 'host', 'label', 'instance_type', 'cluster', 'model', 'all')"
SCOPES_BEFORE = "scope_kind IN ('gpu_uuid', 'host', 'model', 'all')"
BILLINGS = "billing IN ('on_demand', 'reserved', 'spot', 'committed', 'owned')"
BILLINGS_BEFORE = "billing IN ('on_demand', 'reserved', 'spot', 'owned')"
CHECKS = {"committed_gpus": "committed_gpus >= 1", "upfront": "upfront >= 0"}


def upgrade() -> None:
    with op.batch_alter_table("price") as batch:
        for name in ("scope_kind", "billing", "usd_per_gpu_hour"):
            batch.drop_constraint(op.f(f"ck_price_{name}"), type_="check")
        batch.alter_column(
            "usd_per_gpu_hour",
            new_column_name="amount_per_gpu_hour",
            existing_type=sa.BigInteger(),
            existing_nullable=False,
        )
        batch.add_column(sa.Column("currency", sa.Text(), nullable=False, server_default="USD"))
        batch.add_column(sa.Column("commitment", sa.Text(), nullable=True))
        batch.add_column(sa.Column("committed_gpus", sa.Integer(), nullable=True))
        batch.add_column(sa.Column("upfront", sa.BigInteger(), nullable=True))
        batch.add_column(sa.Column("inputs", sa.Text(), nullable=True))
    with op.batch_alter_table("price") as batch:
        batch.alter_column("currency", server_default=None, existing_type=sa.Text(), existing_nullable=False)
        batch.create_check_constraint(op.f("ck_price_scope_kind"), SCOPES)
        batch.create_check_constraint(op.f("ck_price_billing"), BILLINGS)
        batch.create_check_constraint(op.f("ck_price_amount_per_gpu_hour"), "amount_per_gpu_hour >= 0")
        for name, check in CHECKS.items():
            batch.create_check_constraint(op.f(f"ck_price_{name}"), check)
    op.create_table(
        "exchange_rate",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("usd_per_unit", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("usd_per_unit > 0", name=op.f("ck_exchange_rate_usd_per_unit")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exchange_rate")),
        sa.UniqueConstraint("currency", "from_ms", name=op.f("uq_exchange_rate_currency_from_ms")),
    )


def downgrade() -> None:
    """What the older tables cannot say goes: a price for the wrong thing or in the wrong money is worse than none."""
    op.drop_table("exchange_rate")
    op.execute(
        "DELETE FROM price WHERE currency <> 'USD' OR scope_kind IN ('label', 'instance_type', 'cluster')"
    )
    op.execute("UPDATE price SET billing = 'reserved' WHERE billing = 'committed'")
    names = ("scope_kind", "billing", "amount_per_gpu_hour", *CHECKS)
    with op.batch_alter_table("price") as batch:
        for name in names:
            batch.drop_constraint(op.f(f"ck_price_{name}"), type_="check")
        batch.alter_column(
            "amount_per_gpu_hour",
            new_column_name="usd_per_gpu_hour",
            existing_type=sa.BigInteger(),
            existing_nullable=False,
        )
        for column in ("currency", "commitment", "committed_gpus", "upfront", "inputs"):
            batch.drop_column(column)
    with op.batch_alter_table("price") as batch:
        batch.create_check_constraint(op.f("ck_price_scope_kind"), SCOPES_BEFORE)
        batch.create_check_constraint(op.f("ck_price_billing"), BILLINGS_BEFORE)
        batch.create_check_constraint(op.f("ck_price_usd_per_gpu_hour"), "usd_per_gpu_hour >= 0")
