"""Before and after by day: half days are left out, the band is of days before, a baseline that scatters is not drawn."""

from dataclasses import replace

from advisor.verify.series import Case, LoadHour
from advisor.verify.trace import trace
from api.charts_verification import verification_chart
from core.units import DAY_MS, HOUR_MS
from core.verification import Ledger

ACTED_MS = 20_000 * DAY_MS
CASE = Case(
    ledger=Ledger.CAPACITY,
    predicted_p50=700.0,
    action_ms=ACTED_MS,
    until_ms=ACTED_MS + 15 * DAY_MS,
    hours=[LoadHour(ACTED_MS + n * HOUR_MS, 1.0 if n < 0 else 0.25) for n in range(-15 * 24, 14 * 24 + 3)],
)


def traced(case: Case) -> list[tuple[float, float | None]]:
    days = trace(case, reach_ms=56 * DAY_MS, edge_ms=DAY_MS, max_scatter=0.3)
    return [
        (round(day.measured, 6), None if day.expected is None else round(day.expected, 6)) for day in days
    ]


def test_days_show_what_was_and_what_would_have_been() -> None:
    assert traced(CASE) == [(24.0, 24.0)] * 15 + [(6.0, 24.0)] * 14, (
        "the three hours of the last day are no day"
    )


def test_a_baseline_that_scatters_is_not_drawn() -> None:
    wild = [replace(hour, outcome=hour.hour_ms // HOUR_MS * 7 % 11 / 10) for hour in CASE.hours]
    assert {expected for _, expected in traced(replace(CASE, hours=wild))} == {None}


def test_without_hours_there_is_nothing_to_draw() -> None:
    assert traced(replace(CASE, hours=[])) == []
    assert verification_chart((), ACTED_MS, label="nothing") is None
