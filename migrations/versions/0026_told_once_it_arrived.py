"""What people were told, by who heard it: faults by recipient, a week's actions once a mail with them arrived.

Who got a fault's last message is in the mail log; only they count as told after the upgrade. Actions of weeks whose
mails all failed are forgotten, so that the next report tells them.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"
branch_labels = None
depends_on = None

AT = sa.DateTime(timezone=True)
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ALERT = sa.table(
    "alert",
    *(sa.column(name) for name in ("id", "sent_severity", "sent_figure")),
    sa.column("sent_at", AT),
)
MAIL = sa.table("mail_log", *(sa.column(name) for name in ("id", "kind", "period", "recipient_id", "state")))
TOLD = sa.table(
    "alert_told",
    *(sa.column(name) for name in ("alert_id", "recipient_id", "message_id", "severity", "figure")),
    *(sa.column(name, AT) for name in ("told_at", "refused_at")),
)


def upgrade() -> None:
    told = _told_before()
    for name in ("sent_figure", "sent_severity", "sent_at"):
        op.drop_column("alert", name)
    op.create_table(
        "alert_told",
        sa.Column("alert_id", BIG, autoincrement=False, nullable=False),
        sa.Column("recipient_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("message_id", BIG, nullable=True),
        sa.Column("told_at", AT, nullable=False),
        sa.Column("severity", sa.Integer(), nullable=False),
        sa.Column("figure", sa.Double(), nullable=True),
        sa.Column("refused_at", AT, nullable=True),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alert.id"], name=op.f("fk_alert_told_alert_id_alert"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["recipient_id"], ["recipient.id"], name=op.f("fk_alert_told_recipient_id_recipient")
        ),
        sa.ForeignKeyConstraint(
            ["message_id"], ["mail_log.id"], name=op.f("fk_alert_told_message_id_mail_log")
        ),
        sa.PrimaryKeyConstraint("alert_id", "recipient_id", name=op.f("pk_alert_told")),
    )
    op.create_index(op.f("ix_alert_told_message_id"), "alert_told", ["message_id"])
    if told:
        op.bulk_insert(TOLD, told)
    op.add_column("mail_log", sa.Column("told", sa.Text(), nullable=True))
    op.execute(
        "DELETE FROM report_told WHERE NOT EXISTS (SELECT 1 FROM mail_log WHERE kind = 'weekly-report'"
        " AND mail_log.period = report_told.period AND mail_log.team = report_told.team"
        " AND mail_log.project = report_told.project AND state NOT IN ('refused', 'failed'))"
    )


def _told_before() -> list[dict[str, object]]:
    """Who was sent the last message of each fault: alerts of one moment have it as their period."""
    bind = op.get_bind()
    got: dict[str, list[tuple[int, int]]] = {}
    sent = sa.select(MAIL).where(
        MAIL.c.kind == "alerts",
        MAIL.c.recipient_id.is_not(None),
        MAIL.c.state.not_in(["refused", "failed"]),
    )
    for row in bind.execute(sent):
        got.setdefault(row.period, []).append((row.recipient_id, row.id))
    return [
        {
            "alert_id": alert.id,
            "recipient_id": recipient_id,
            "message_id": message_id,
            "told_at": alert.sent_at,
            "severity": alert.sent_severity,
            "figure": alert.sent_figure,
            "refused_at": None,
        }
        for alert in bind.execute(sa.select(ALERT).where(ALERT.c.sent_at.is_not(None)))
        for recipient_id, message_id in got.get(_period(alert.sent_at), ())
    ]


def _period(at: datetime) -> str:
    # SQLite gives times without their zone, which is UTC.
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return str(round(aware.timestamp() * 1000))


def downgrade() -> None:
    """Of whom was told what, only the last time stays."""
    bind = op.get_bind()
    last = {
        row.alert_id: row
        for row in bind.execute(sa.select(TOLD).where(TOLD.c.refused_at.is_(None)).order_by(TOLD.c.told_at))
    }
    op.drop_column("mail_log", "told")
    op.drop_table("alert_told")
    op.add_column("alert", sa.Column("sent_at", AT, nullable=True))
    op.add_column("alert", sa.Column("sent_severity", sa.Integer(), nullable=True))
    op.add_column("alert", sa.Column("sent_figure", sa.Double(), nullable=True))
    for alert_id, row in last.items():
        bind.execute(
            sa.update(ALERT)
            .where(ALERT.c.id == alert_id)
            .values(sent_at=row.told_at, sent_severity=row.severity, sent_figure=row.figure)
        )
