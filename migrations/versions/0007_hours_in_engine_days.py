"""Days of engines hold more of each hour: the next roll-up folds them again."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _fold_again()


def downgrade() -> None:
    _fold_again()


def _fold_again() -> None:
    op.execute(
        "INSERT INTO day_pending (kind, entity_id, day_ms) "
        "SELECT 'engine', engine_id, day_ms FROM engine_day WHERE NOT EXISTS (SELECT 1 FROM day_pending "
        "WHERE kind = 'engine' AND entity_id = engine_day.engine_id AND day_pending.day_ms = engine_day.day_ms)"
    )
