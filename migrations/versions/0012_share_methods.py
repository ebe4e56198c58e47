"""GPUs may be shared out by SM time and by MIG slice too."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TABLES = ("usage_hour", "usage_day", "ledger_day")
BEFORE = "share_method IN ('whole', 'memory_time', 'even')"
AFTER = "share_method IN ('whole', 'mig_slice', 'sm_time', 'memory_time', 'even')"


def upgrade() -> None:
    for table in TABLES:
        _allow(table, AFTER)


def downgrade() -> None:
    """What the older tables cannot say becomes the weakest method they know."""
    for table in TABLES:
        op.execute(f"UPDATE {table} SET share_method = 'even' WHERE share_method IN ('mig_slice', 'sm_time')")
        _allow(table, BEFORE)


def _allow(table: str, check: str) -> None:
    name = op.f(f"ck_{table}_share_method")
    with op.batch_alter_table(table) as batch:
        batch.drop_constraint(name, type_="check")
    with op.batch_alter_table(table) as batch:
        batch.create_check_constraint(name, check)
