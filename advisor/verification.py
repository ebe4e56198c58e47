"""Whether a saving came true: measured against what the same load would have cost before (advisor-rules 7.4).

The logic of IPMVP: saving = adjusted baseline - actual, adjusted to the load of the time after. In this order, and the
first that fails is the verdict:

1. two full weeks before and after on the same cards, hours with gaps left out; a new driver, card, model or MIG layout
   restarts either side;
2. the baseline describes its own time: CV(RMSE) of an hour ≤ 30 %, error of days it has not seen ≤ 5 %;
3. the load is of a kind the baseline has seen, and a fallen load did not merely leave the machine emptier;
4. untreated peers did not change alike (difference in differences: their relative change is taken off);
5. the saving is two standard errors from none;
6. its change falls within a day of the action, by changepoint;
7. a date on which nothing was done shows none.

A verdict without a figure is a refusal with its reason, never "no saving".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, hypot
from typing import Final

from advisor.claims import amount_words
from advisor.estimators.changepoint import changes
from advisor.verify.baseline import Adjusted, Baseline, blocks, cross_bias
from advisor.verify.series import Case, LatencyHour, LoadHour
from advisor.verify.trace import trace
from core.clock import from_ms
from core.finding import Range
from core.percent import percent
from core.units import DAY_MS, HOURS_PER_MONTH
from core.verification import Verdict, Verification

SIDE_MS: Final = 14 * DAY_MS
"""Full weeks on either side (ours, after IPMVP's whole cycles of operation)."""
LONGEST_MS: Final = 56 * DAY_MS
"""Older hours describe another service."""
EDGE_MS: Final = DAY_MS
"""People say *done* around the time they did it: this much on either side is in neither."""
MIN_COVERED_RATIO: Final = 0.8
MAX_CV_RMSE: Final = 0.30
MAX_BIAS: Final = 0.05
MAX_OUTSIDE_RATIO: Final = 0.10
"""Share of hours after whose load the baseline has never seen."""
RANGE_MARGIN: Final = 0.10
FALLEN_RATIO: Final = 0.8
MIX_FACTOR: Final = 1.5
SLO_FACTOR: Final = 1.1
BLOCK_H: Final = 6
T80: Final = 1.345
"""p10 and p90 of Student's t with 14 degrees of freedom: days, not hours, are independent."""
MIN_PEER_HOURS: Final = 14 * 24 * 0.8


@dataclass(frozen=True, slots=True)
class _Sides:
    before: list[LoadHour]
    after: list[LoadHour]
    from_ms: int
    until_ms: int


class _Refusal(Exception):  # noqa: N818 - a verdict, not an error
    def __init__(self, verdict: Verdict, sentence: str) -> None:
        super().__init__(sentence)
        self.verdict, self.sentence = verdict, sentence


def verify(case: Case) -> Verification:
    """What became of the saving; see the module for the order of the tests."""
    days = trace(case, reach_ms=LONGEST_MS, edge_ms=EDGE_MS, max_scatter=MAX_CV_RMSE)
    return replace(_verdict(case), days=days)


def _verdict(case: Case) -> Verification:
    facts: dict[str, float | str | None] = {"action_at": from_ms(case.action_ms).isoformat()}
    slo: tuple[str, ...] = ()
    try:
        sides = _sides(case, facts)
        slo = _slo_regressions(case, sides)
        model = _baseline(sides.before, facts)
        _comparable(case, sides, facts)
        found = _of_fallen_load(case, sides, _adjusted(case, sides, model, facts), facts)
        verdict, sentence = _judged(case, sides, model, found, facts)
    except _Refusal as refusal:
        return Verification(
            refusal.verdict, refusal.sentence, case.ledger, None, case.predicted_p50, facts, slo
        )
    return Verification(verdict, sentence, case.ledger, _per_month(found), case.predicted_p50, facts, slo)


def _sides(case: Case, facts: dict[str, float | str | None]) -> _Sides:
    if case.moved is not None:
        raise _Refusal(Verdict.CONFOUNDED, case.moved)
    start, end = case.action_ms - LONGEST_MS, min(case.until_ms, case.action_ms + LONGEST_MS)
    for one in case.happenings:
        if abs(one.at_ms - case.action_ms) <= EDGE_MS:
            raise _Refusal(
                Verdict.CONFOUNDED,
                f"{one.sentence} That was within a day of the action: what did it cannot be told apart.",
            )
        if one.at_ms < case.action_ms:
            start = max(start, one.at_ms)
        else:
            end = min(end, one.at_ms)
    cut = next((one for one in case.happenings if one.at_ms in {start, end}), None)
    if cut is not None:
        facts["baseline_reset_by"] = cut.sentence
    after_d = (end - case.action_ms) / DAY_MS
    facts |= {"days_after": round(after_d, 2)}
    why = "" if cut is None else f" {cut.sentence} Nothing across that can be compared."
    if end - case.action_ms < SIDE_MS:
        if end == case.until_ms:
            raise _Refusal(
                Verdict.TOO_EARLY,
                f"Too early: {max(0.0, after_d):.0f} of 14 days since the action have been measured.{why}",
            )
        raise _Refusal(Verdict.TOO_LITTLE, f"Only {after_d:.0f} of 14 days after the action count.{why}")
    edge = (case.action_ms - EDGE_MS, case.action_ms + EDGE_MS)
    before = [hour for hour in case.hours if start <= hour.hour_ms < edge[0]]
    after = [hour for hour in case.hours if edge[1] <= hour.hour_ms < end]
    facts |= {"hours_before": len(before), "hours_after": len(after)}
    least = MIN_COVERED_RATIO * SIDE_MS / DAY_MS * 24
    for name, hours in (("before", before), ("after", after)):
        if len(hours) < least:
            raise _Refusal(
                Verdict.TOO_LITTLE,
                f"{len(hours)} hours {name} the action were measured; two weeks need {least:.0f}. A gap proves nothing.{why}",
            )
    return _Sides(before, after, start, end)


def _baseline(hours: Sequence[LoadHour], facts: dict[str, float | str | None]) -> Baseline:
    model, bias = Baseline(hours), cross_bias(hours)
    facts |= {"baseline_cv_rmse_ratio": model.cv_rmse, "baseline_bias_ratio": bias}
    if model.cv_rmse is None or bias is None:
        raise _Refusal(Verdict.NO_BASELINE, "There was nothing to save in the weeks before the action.")
    if model.cv_rmse > MAX_CV_RMSE:
        raise _Refusal(
            Verdict.NO_BASELINE,
            f"An hour before the action scatters by {percent(model.cv_rmse)} around what load and time of the week say"
            f" (30 % is the most): there is no baseline to compare with.",
        )
    if abs(bias) > MAX_BIAS:
        raise _Refusal(
            Verdict.NO_BASELINE,
            f"The baseline misses days it has not seen by {percent(bias, signed=True)} (5 % is the most).",
        )
    return model


def _comparable(case: Case, sides: _Sides, facts: dict[str, float | str | None]) -> None:
    """Refuse a load that the baseline has not seen, or that merely fell."""
    for place, name in enumerate(case.load_names):
        seen = [hour.loads[place] for hour in sides.before]
        low, high = min(seen), max(seen)
        margin = RANGE_MARGIN * max(high - low, abs(high))
        outside = sum(not low - margin <= hour.loads[place] <= high + margin for hour in sides.after)
        facts[f"{name}_before_per_hour"] = fsum(seen) / len(seen)
        facts[f"{name}_after_per_hour"] = fsum(h.loads[place] for h in sides.after) / len(sides.after)
        facts[f"{name}_outside_ratio"] = outside / len(sides.after)
        if outside > MAX_OUTSIDE_RATIO * len(sides.after):
            raise _Refusal(
                Verdict.TRAFFIC_CHANGED,
                f"In {percent(outside / len(sides.after))} of the hours after the action {name} are outside of what the"
                f" weeks before have seen: what they would have cost then is not known.",
            )
    if len(case.load_names) > 1:
        mixes = [_mix(hours) for hours in (sides.before, sides.after)]
        if None not in mixes and not 1 / MIX_FACTOR <= (mixes[1] or 0) / (mixes[0] or 1) <= MIX_FACTOR:
            raise _Refusal(
                Verdict.TRAFFIC_CHANGED,
                f"The mix of the traffic changed: {case.load_names[-2]} per {case.load_names[-1]} went from"
                f" {mixes[0]:.3g} to {mixes[1]:.3g}.",
            )


def _mix(hours: Sequence[LoadHour]) -> float | None:
    one, other = (fsum(hour.loads[place] for hour in hours) for place in (-2, -1))
    return one / other if one > 0 and other > 0 else None


def _of_fallen_load(
    case: Case, sides: _Sides, found: Adjusted, facts: dict[str, float | str | None]
) -> Adjusted:
    """Of a load that fell, no more than what a unit of it costs less: emptier machines are not better ones.

    A service that is always on has no slope that could tell what the fallen load would have cost.
    """
    if not case.load_names or found.saving <= 0:
        return found
    loads = [fsum(hour.loads[-1] for hour in hours) for hours in (sides.before, sides.after)]
    per_hour = [load / len(hours) for load, hours in zip(loads, (sides.before, sides.after), strict=True)]
    if per_hour[0] <= 0 or per_hour[1] > FALLEN_RATIO * per_hour[0]:
        return found
    before = fsum(hour.outcome for hour in sides.before) / loads[0]
    after = fsum(hour.outcome for hour in sides.after) / len(sides.after)
    per_unit = before * per_hour[1] - after
    facts["saving_by_unit_per_hour"] = per_unit
    if per_unit <= 0:
        raise _Refusal(
            Verdict.TRAFFIC_CHANGED,
            f"{case.load_names[-1].capitalize()} fell by {percent(1 - per_hour[1] / per_hour[0])} after the action, and a"
            " unit costs no less than before: there is no saving at equal load.",
        )
    return replace(found, saving=min(found.saving, per_unit))


def _adjusted(case: Case, sides: _Sides, model: Baseline, facts: dict[str, float | str | None]) -> Adjusted:
    """The saving, less what untreated peers changed by in the same time."""
    raw = model.against(sides.after)
    share = _peer_change(case, sides)
    facts |= {
        "saving_unadjusted_per_hour": raw.saving,
        "peers_change_ratio": None if share is None else share.saving,
        "peers_load": None if share is None else ", ".join(case.peer_load_names) or None,
    }
    if share is None:
        return raw
    return Adjusted(
        raw.saving - share.saving * raw.expected,
        hypot(raw.standard_error, share.standard_error * raw.expected),
        raw.expected,
        raw.hours,
    )


def _peer_change(case: Case, sides: _Sides) -> Adjusted | None:
    """What peers saved as a share of their baseline; None without peers that can be described."""
    edge = (case.action_ms - EDGE_MS, case.action_ms + EDGE_MS)
    before = [hour for hour in case.peers if sides.from_ms <= hour.hour_ms < edge[0]]
    after = [hour for hour in case.peers if edge[1] <= hour.hour_ms < sides.until_ms]
    if min(len(before), len(after)) < MIN_PEER_HOURS:
        return None
    model = Baseline(before)
    if model.cv_rmse is None or model.cv_rmse > MAX_CV_RMSE:
        return None
    found = model.against(after)
    if found.expected <= 0:
        return None
    return Adjusted(found.saving / found.expected, found.standard_error / found.expected, 1.0, found.hours)


def _judged(
    case: Case,
    sides: _Sides,
    model: Baseline,
    found: Adjusted,
    facts: dict[str, float | str | None],
) -> tuple[Verdict, str]:
    month = _per_month(found)
    said = partial(amount_words, case.ledger)
    error = found.standard_error * HOURS_PER_MONTH
    facts |= {"saving_month": month.p50, "standard_error_month": error}
    control = (
        "No untreated peers could be compared."
        if facts["peers_change_ratio"] is None
        else f"Untreated peers changed by {percent(-float(facts['peers_change_ratio']), 1, signed=True)} in the same time, which is taken off."
    )
    if found.is_noise:
        return Verdict.NOISE, (
            f"Not distinguishable from noise: {said(month.p50)} a month at equal load, with a standard error of"
            f" {said(error)}. {control}"
        )
    if found.saving < 0:
        return Verdict.NO_SAVING, (
            f"It costs {said(-month.p50)} a month more than before at equal load. {control}"
        )
    _within_a_day(case, sides, model, facts)
    _no_placebo(sides, found, facts)
    return Verdict.SAVED, (
        f"Saves {said(month.p50)} a month at equal load ({said(month.p10)} to {said(month.p90)}), from within a day of"
        f" the action. {control}"
    )


def _within_a_day(case: Case, sides: _Sides, model: Baseline, facts: dict[str, float | str | None]) -> None:
    """Refuse a change that began on another day."""
    hours = [hour for hour in case.hours if sides.from_ms <= hour.hour_ms < sides.until_ms]
    series = blocks(hours, model, case.action_ms, BLOCK_H)
    values = [value for _, value in series]
    calm = [value for start, value in series if start < case.action_ms - EDGE_MS]
    middle = fsum(calm) / len(calm)
    floor = (0.01 * fsum(hour.outcome for hour in sides.before) / len(sides.before)) ** 2
    variance = max(fsum((value - middle) ** 2 for value in calm) / max(1, len(calm) - 1), floor)
    falls = [change for change in changes(values, variance) if change.step < 0]
    edge = (case.action_ms - EDGE_MS, case.action_ms + EDGE_MS)
    if not falls:
        where = "no lasting change is seen"
    else:
        biggest = min(falls, key=lambda change: change.step)
        facts["changepoint_at"] = from_ms(series[biggest.at][0]).isoformat()
        if series[biggest.first][0] <= edge[1] and edge[0] <= series[biggest.last][0]:
            return
        where = f"the change began around {from_ms(series[biggest.at][0]):%Y-%m-%d %H:%M} UTC"
    raise _Refusal(
        Verdict.NOT_ATTRIBUTABLE, f"It costs less, but not since the action: {where}. Not attributable."
    )


def _no_placebo(sides: _Sides, found: Adjusted, facts: dict[str, float | str | None]) -> None:
    """Refuse when the same comparison finds as much at a date on which nothing was done."""
    middle = (sides.before[0].hour_ms + sides.before[-1].hour_ms) // 2
    first = [hour for hour in sides.before if hour.hour_ms < middle]
    second = [hour for hour in sides.before if hour.hour_ms >= middle]
    placebo = Baseline(first).against(second)
    facts["placebo_saving_month"] = placebo.saving * HOURS_PER_MONTH
    if not placebo.is_noise and abs(placebo.saving) > 0.25 * found.saving:
        raise _Refusal(
            Verdict.PLACEBO,
            f"At {from_ms(middle):%Y-%m-%d}, when nothing was done, the same comparison finds"
            f" {percent(placebo.saving / found.saving)} of the saving: the baseline was moving already.",
        )


def _slo_regressions(case: Case, sides: _Sides) -> tuple[str, ...]:
    """Latencies whose mean got worse by a tenth; hours hold sums, so the mean stands for the p95."""
    edge = (case.action_ms - EDGE_MS, case.action_ms + EDGE_MS)
    said = []
    for name, hours in case.latencies.items():
        before = _mean_s([hour for hour in hours if sides.from_ms <= hour.hour_ms < edge[0]])
        after = _mean_s([hour for hour in hours if edge[1] <= hour.hour_ms < sides.until_ms])
        if before is not None and after is not None and after > SLO_FACTOR * before:
            said.append(f"Mean {name} rose from {before * 1000:.3g} to {after * 1000:.3g} ms.")
    return tuple(said)


def _mean_s(hours: Sequence[LatencyHour]) -> float | None:
    count = fsum(hour.count for hour in hours)
    return fsum(hour.sum_s for hour in hours) / count if count > 0 else None


def _per_month(found: Adjusted) -> Range:
    half = T80 * found.standard_error * HOURS_PER_MONTH
    middle = found.saving * HOURS_PER_MONTH
    return Range(middle - half, middle, middle + half)
