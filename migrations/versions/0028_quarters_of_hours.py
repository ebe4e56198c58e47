"""Hours keep their quarters: strips of a host over two days are finer than hours and still read no samples.

Hours from before have none; they are shown whole.
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("gpu_hour", "host_hour"):
        op.add_column(table, sa.Column("quarters", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    for table in ("host_hour", "gpu_hour"):
        op.drop_column(table, "quarters")
