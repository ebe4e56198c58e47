"""Mail that went out before the log was by recipient is not sent a second time after the upgrade; on both databases."""

from datetime import UTC, datetime

from sqlalchemy import text

from core.outbox import MessageKind
from store import schema
from store.engine import make_engine, session_scope
from store.queries import mail

AT = datetime(2026, 10, 5, 7, tzinfo=UTC)
OLD = text(
    "INSERT INTO mail_log (sent_at, kind, period, recipients, subject, ok, message)"
    " VALUES (:at, 'weekly-report', :period, :recipients, 's', :ok, :message)"
)


def to(url: str, revision: str) -> None:
    (schema.downgrade if revision == "0017" else schema.upgrade)(url, revision)


def test_rows_become_one_per_address_and_what_was_sent_stays_sent(ready_database: str) -> None:
    to(ready_database, "0017")
    with make_engine(ready_database).begin() as connection:
        for period, recipients, ok in (
            ("p1", "Head@example.org, finance@example.org", False),
            ("p1", "Head@example.org, finance@example.org", True),
            ("p2", "head@example.org", False),
            (None, "head@example.org", True),
        ):
            said = None if ok else "gone"
            connection.execute(
                OLD, {"at": AT, "period": period, "recipients": recipients, "ok": ok, "message": said}
            )
    to(ready_database, "head")
    with session_scope(make_engine(ready_database)) as session:
        assert mail.known(session, MessageKind.WEEKLY, "p1") == {
            (None, "head@example.org"),
            (None, "finance@example.org"),
        }
        states = sorted((one.period, one.shown, one.state.value) for one in mail.newest(session, 10))
    assert states == [
        ("p1", "Head@example.org", "sent"),
        ("p1", "finance@example.org", "sent"),
        ("p2", "head@example.org", "failed"),
    ]
    to(ready_database, "0017")
    with make_engine(ready_database).connect() as connection:
        back = connection.execute(text("SELECT period, recipients, ok FROM mail_log ORDER BY 1, 2")).all()
    assert sorted((period, who, bool(ok)) for period, who, ok in back) == [
        ("p1", "Head@example.org", True),
        ("p1", "finance@example.org", True),
        ("p2", "head@example.org", False),
    ]
