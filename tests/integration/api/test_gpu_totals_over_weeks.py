"""Sums by GPU of a ledger whose weeks and days are added up, or not any more, are those of its lines."""

from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from store import ledger_totals
from store.engine import begin_write
from store.models.ledger_day import LedgerDayRow
from store.queries.gpu_totals import AMOUNTS, gpu_parts
from tests.integration.api.test_ledger_weeks import DAYS, ledger, micro  # noqa: F401 - the fixture

Sums = dict[tuple[int, int], dict[str, int]]


def by_lines(session: Session, span: tuple[int, int], without: set[tuple[int, int]]) -> Sums:
    """The same, line by line; what is unknown in all of them is not there."""
    row = LedgerDayRow
    found: Sums = defaultdict(dict)
    for line in session.execute(select(row).where(row.day_ms >= span[0], row.day_ms < span[1])).scalars():
        if (line.gpu_id, line.day_ms) not in without:
            paid = None if line.rate_id is None else line.billed_energy_usd
            values = {name: paid if name == "paid_usd" else getattr(line, name) for name in AMOUNTS}
            add(found[line.gpu_id, line.owner_id or 0], values)
    return dict(found)


def add(known: dict[str, int], values: dict[str, Any]) -> None:
    for name, value in values.items():
        if value is not None:
            known[name] = known.get(name, 0) + micro(value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.integers(0, len(DAYS) - 1),
    length=st.integers(1, len(DAYS)),
    without=st.sets(st.tuples(st.integers(1, 4), st.sampled_from(DAYS)), max_size=3),
    forgotten=st.sets(st.sampled_from(DAYS), max_size=4),
    gpu_ids=st.none() | st.frozensets(st.integers(1, 4)),
)
def test_gpus_have_the_sums_of_their_lines_wherever_those_are_added_up(  # noqa: PLR0917
    ledger: Engine,  # noqa: F811
    first: int,
    length: int,
    without: set[tuple[int, int]],
    forgotten: set[int],
    gpu_ids: frozenset[int] | None,
) -> None:
    span = (DAYS[first], [*DAYS, DAYS[-1] + 1][min(first + length, len(DAYS))])
    with Session(ledger) as session:  # what is forgotten comes back: nothing is committed
        begin_write(session.connection())
        ledger_totals.forget(session.connection(), forgotten)
        found: Sums = defaultdict(dict)
        for part in gpu_parts(session, span, without, gpu_ids):
            add(found[part.gpu_id, part.owner_id], dict(zip(AMOUNTS, part[2:], strict=True)))
        wanted = by_lines(session, span, without)
        assert found == {key: of for key, of in wanted.items() if gpu_ids is None or key[0] in gpu_ids}
