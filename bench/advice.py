"""How right the estimators are: error, interval coverage and sign errors on public measurements (``python -m bench.advice``).

A *case* is a prediction as the advisor would make it (p10, p50, p90) beside what was measured. Scores by group:

- error: mean of |p50 ÷ measured − 1|; of shares (added time, energy) mean of |p50 − measured| in points.
- coverage: share of cases with p10 ≤ measured ≤ p90. An 80 % interval should hold 75 to 90 % of them; more means that it
  is wider than it has to be, fewer that it promises too much.
- wrong signs: the whole range on one side of no effect, the measurement on the other. Counted twice: all of them, and
  those beyond the noise of the measurements. None beyond the noise is allowed.

The noise is that of the power rows: where the cap is out of the work's reach (above 1.3 of its power) energy still
differs by −7 to +5 % between two runs (advisor-rules R22).
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from advisor.estimators import decode_step, quantization
from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.power_cap import power_cap
from advisor.serving import half_width, weights_of
from bench.advice_rows import (
    FOLDER_SETTING,
    Row,
    Series,
    data_folder,
    of_bsc,
    of_mlenergy,
    of_the_rules,
    of_zeus,
)
from bench.measure import Figure, shown
from catalog.llm_models import kv_bytes_per_sequence
from core.finding import Range
from core.hours import BatchPoint

DENSE: Final = "dense on Hopper"
ALL: Final = "all intervals"
ELSEWHERE: Final = "elsewhere (mixtures, 8 bits, windows)"
CAP_RATIOS: Final = (0.75, 1.1)
FIT_SECONDS: Final = 3600.0
NOISE: Final = 0.05
"""A measurement this close to no effect may be none."""
BAND: Final = (0.75, 0.90)
"""Share of cases that an 80 % interval should hold."""


@dataclass(frozen=True, slots=True)
class Case:
    """A prediction and its measurement.

    Attributes:
        group: what is predicted, and where. source: which measurements.
        neutral: value without effect; None where there is no sign. is_share: errors are points, not ratios.
    """

    group: str
    source: str
    name: str
    predicted: Range
    measured: float
    neutral: float | None = None
    is_share: bool = False

    @property
    def error(self) -> float:
        """As a share of the measurement, or in shares."""
        off = self.predicted.p50 - self.measured
        return abs(off) if self.is_share else abs(off / self.measured)

    @property
    def is_covered(self) -> bool:
        """Within the interval."""
        return self.predicted.p10 - 1e-12 <= self.measured <= self.predicted.p90 + 1e-12

    def has_wrong_sign(self, noise: float = 0.0) -> bool:
        """Said with confidence, and the other way round by more than ``noise``."""
        if self.neutral is None:
            return False
        low, high = self.neutral - noise, self.neutral + noise
        return (self.predicted.p10 > self.neutral and self.measured < low) or (
            self.predicted.p90 < self.neutral and self.measured > high
        )


@dataclass(frozen=True, slots=True)
class Score:
    """Of one group of cases."""

    group: str
    count: int
    error: float
    coverage: float
    wrong_signs: int
    beyond_noise: int

    @property
    def verdict(self) -> str:
        """Whether the interval is what it says."""
        low, high = BAND
        return "too narrow" if self.coverage < low else "too wide" if self.coverage > high else "as it says"


def law_of(series: Series, row: Row) -> DecodeStep:
    """The formula, for the context that this row has."""
    llm = series.llm
    return decode_step.formula(
        weights=weights_of(llm, series.precision),
        layers=llm.layers,
        active_parameters=llm.active_parameters,
        kv_bytes_per_token=kv_bytes_per_sequence(llm, row.context_tokens) / row.context_tokens,
        context_tokens=row.context_tokens,
        prompt_per_generated=row.prompt_per_generated,
        tensor_parallel=series.ranks,
        bandwidth_bytes_per_s=series.spec.bandwidth_bytes_per_s,
        flops=series.spec.bf16_flops or 0.0,
        half_width=half_width(llm, series.spec, series.precision),
    )


def where(series: Series) -> str:
    """Whether the formula is calibrated for it."""
    width = half_width(series.llm, series.spec, series.precision)
    return DENSE if width <= decode_step.HALF_WIDTH_DENSE_HOPPER else ELSEWHERE


def step_cases(series: Series) -> Iterator[Case]:
    """Step time by the formula."""
    for row in series.rows:
        law = law_of(series, row)
        predicted = Range.around(law.step_s(row.batch), law.width_at(row.batch))
        name = f"{series.name}, batch {row.batch:.0f}"
        yield Case(f"step time, {where(series)}", series.source, name, predicted, row.step_s)


def gain_cases(series: Series) -> Iterator[Case]:
    """Throughput over that of the smallest batch, by the formula."""
    first = series.rows[0]
    for row in series.rows[1:]:
        gain = law_of(series, row).gain(first.batch, row.batch)
        measured = (row.batch / row.step_s) / (first.batch / first.step_s)
        name = f"{series.name}, batch {first.batch:.0f} → {row.batch:.0f}"
        yield Case(f"gain, {where(series)}", series.source, name, gain, measured, neutral=1.0)


def fit_cases(series: Series) -> Iterator[Case]:
    """Step time at a batch that the fit on the others has not seen, within its reach."""
    for left_out in series.rows:
        profile = {
            row.batch: BatchPoint(FIT_SECONDS, FIT_SECONDS * row.batch / row.step_s, 0.0)
            for row in series.rows
            if row is not left_out
        }
        fitted = decode_step.fit(profile)
        if fitted is None or (fitted.reach is not None and left_out.batch > fitted.reach):
            continue
        predicted = Range.around(fitted.step_s(left_out.batch), fitted.width_at(left_out.batch))
        name = f"{series.name}, batch {left_out.batch:.0f} left out"
        yield Case("step time, fitted on site", series.source, name, predicted, left_out.step_s)


def fp8_cases(every: Sequence[Series]) -> Iterator[Case]:
    """The same model on the same GPUs with 8-bit and with 16-bit weights, at the batches that both ran."""
    for whole in every:
        if not whole.precision.is_16_bit:
            continue
        for half in every:
            same = half.llm is whole.llm and half.ranks == whole.ranks and half.source == whole.source
            if not same or half.precision.is_16_bit:
                continue
            for row in whole.rows:
                twin = next((each for each in half.rows if abs(each.batch / row.batch - 1) < 0.05), None)
                if twin is None:
                    continue
                predicted = quantization.speedup(
                    step=law_of(whole, row),
                    weights=weights_of(whole.llm, whole.precision),
                    scheme=quantization.FP8,
                    batch=row.batch,
                    tensor_parallel=whole.ranks,
                    bandwidth_bytes_per_s=whole.spec.bandwidth_bytes_per_s,
                )
                measured = row.step_s / twin.step_s * twin.batch / row.batch
                name = f"{whole.name}, batch {row.batch:.0f}"
                yield Case("speed-up by 8-bit weights", whole.source, name, predicted, measured, neutral=1.0)


def cap_cases(folder: Path) -> Iterator[Case]:
    """Added time and energy of power caps from 0.75 to 1.1 of the uncapped mean power."""
    for row in of_zeus(folder):
        ratio = row.cap_w / row.uncapped_w
        effect = power_cap(cap_w=row.cap_w, uncapped_mean_w=row.uncapped_w)
        if effect is None or not CAP_RATIOS[0] <= ratio <= CAP_RATIOS[1]:
            continue
        name = f"{row.board} at {ratio:.2f}"
        yield Case(
            "power cap, added time", "zeus", name, effect.time_ratio, row.time_ratio, 0.0, is_share=True
        )
        yield Case(
            "power cap, energy", "zeus", name, effect.energy_ratio, row.energy_ratio, 0.0, is_share=True
        )


def cases(folder: Path | None) -> tuple[list[Case], list[str]]:
    """All cases, and a sentence on each thing that is refused or absent."""
    every, notes = list(of_the_rules()), []
    if folder is None:
        notes.append(
            f"Only the rows of the rules: no folder of captures beside the checkout; name one in {FOLDER_SETTING}."
        )
    else:
        for read, why in (
            (of_mlenergy, "no such model in the catalogue"),
            (of_bsc, "several servers share the GPU, so the step time of none is its own"),
        ):
            series, refused = read(folder)
            every += series
            notes += [f"Refused: {name}: {why}." for name in refused]
    found = [
        case for series in every for make in (step_cases, gain_cases, fit_cases) for case in make(series)
    ]
    found += fp8_cases(every)
    if folder is not None:
        found += cap_cases(folder)
    return found, notes


def score(group: str, found: Sequence[Case]) -> Score:
    """Of cases of one kind."""
    return Score(
        group,
        len(found),
        fmean(case.error for case in found),
        fmean(case.is_covered for case in found),
        sum(case.has_wrong_sign() for case in found),
        sum(case.has_wrong_sign(NOISE) for case in found),
    )


def scores(found: Sequence[Case]) -> dict[str, Score]:
    """By group, and by group and source where a group has several."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        groups.setdefault(case.group, []).append(case)
        groups.setdefault(ALL, []).append(case)
    for group, own in [(group, own) for group, own in groups.items() if group != ALL]:
        sources = sorted({case.source for case in own})
        for source in sources if len(sources) > 1 else ():
            groups[f"{group}: {source}"] = [case for case in own if case.source == source]
    return {group: score(group, own) for group, own in sorted(groups.items())}


def table(found: Sequence[Case]) -> str:
    """The scoreboard as a Markdown table."""
    lines = [
        "| estimate | cases | mean error | in the 80 % interval | wrong signs |",
        "|---|---:|---:|---:|---:|",
    ]
    points = {case.group for case in found if case.is_share}
    for group, own in scores(found).items():
        unit = "points" if group.split(":")[0] in points else "%"
        error = "" if group == ALL else f"{own.error * 100:.1f} {unit}"
        lines.append(
            f"| {group} | {own.count} | {error} | {own.coverage:.0%} | {own.verdict} | {own.wrong_signs} | {own.beyond_noise} |"
        )
    return "\n".join(lines)


def run() -> Iterator[Figure]:
    """The scoreboard as figures of the benchmark; ``runs`` is how many cases are behind each."""
    found, notes = cases(data_folder())
    for note in notes:
        print(f"advice: {note}", file=sys.stderr)
    for group, own in scores(found).items():
        if group != ALL:
            yield Figure("advice", f"{group}: mean error", own.error * 100, "%", own.count)
        yield Figure("advice", f"{group}: in the 80 % interval", own.coverage * 100, "%", own.count)
        yield Figure("advice", f"{group}: wrong signs beyond noise", own.beyond_noise, "cases", own.count)


def main() -> int:
    """Print the scoreboard, what is not in it, and the worst cases."""
    found, notes = cases(data_folder())
    print(table(found))
    print("\n" + "\n".join(notes))
    print("\nLargest errors:")
    for case in sorted(found, key=lambda case: -case.error)[:10]:
        print(
            f"{case.error * 100:5.1f}  {case.group}: {case.name}: {shown(case.predicted.p50)}, measured {shown(case.measured)}"
        )
    for case in found:
        if case.has_wrong_sign():
            print(f"wrong sign  {case.group}: {case.name}: {case.predicted}, measured {case.measured:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
