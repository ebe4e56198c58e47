"""A price may leave open how many GPUs are released together: NULL is all of a host.

Rows that are there keep their figure: whether it was given or the default of 1 cannot be told.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _alter(nullable=True)


def downgrade() -> None:
    op.execute("UPDATE price SET gpus_per_unit = 1 WHERE gpus_per_unit IS NULL")
    _alter(nullable=False)


def _alter(*, nullable: bool) -> None:
    with op.batch_alter_table("price") as batch:
        batch.alter_column("gpus_per_unit", existing_type=sa.Integer(), nullable=nullable)
