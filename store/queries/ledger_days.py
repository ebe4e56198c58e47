"""Which accounting days have lines of the ledger."""

from sqlalchemy.orm import Session


def days_of_lines(session: Session, span: tuple[int, int]) -> set[int]:
    """Starts of the accounting days in a span that have lines: by hops through the index, a step a day."""
    first, last = int(span[0]), int(span[1])  # our own whole numbers
    sql = (
        f"WITH RECURSIVE day (ms) AS (SELECT min(day_ms) FROM ledger_day WHERE day_ms >= {first} AND day_ms < {last} "
        f"UNION ALL SELECT (SELECT min(day_ms) FROM ledger_day WHERE day_ms > day.ms AND day_ms < {last}) FROM day "
        "WHERE day.ms IS NOT NULL) SELECT ms FROM day WHERE ms IS NOT NULL"
    )
    return set(session.connection().exec_driver_sql(sql).scalars())
