"""Predictions as the advisor would make them, each beside its public measurement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.estimators import decode_step, quantization
from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.power_cap import power_cap
from advisor.serving import half_width, weights_of
from bench.advice_rows import (
    FOLDER_SETTING,
    CapRow,
    Row,
    Series,
    of_bsc,
    of_mlenergy,
    of_the_rules,
    of_zeus,
)
from catalog.llm_models import kv_bytes_per_sequence
from core.finding import Range
from core.hours import BatchPoint

DENSE: Final = "dense on Hopper"
ELSEWHERE: Final = "elsewhere (mixtures, 8 bits, windows)"
CAP_RATIOS: Final = (0.75, 1.1)
FIT_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Case:
    """A prediction and its measurement.

    Attributes:
        group: what is predicted, and where. part: which measurements of it: their source, or the kind of model.
        subject: the model or card that was measured: rows of one are alike, so it is subjects that are many or few.
        neutral: value without effect; None where there is no sign. is_share: errors are points, not ratios.
    """

    group: str
    part: str
    subject: str
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
    """Whether it is what the rules calibrated the formula for."""
    width = half_width(series.llm, series.spec, series.precision)
    return DENSE if width <= decode_step.HALF_WIDTH_DENSE_HOPPER else ELSEWHERE


def part_of(series: Series) -> str:
    """Source of dense models, kind of the others."""
    if where(series) == DENSE:
        return series.source
    if series.llm.is_moe:
        return "mixtures"
    return "sliding windows" if series.precision.is_16_bit else "dense, 8 bits"


def measured_gain(first: Row, row: Row) -> float:
    """Throughput over that of the first."""
    return (row.batch / row.step_s) / (first.batch / first.step_s)


def step_cases(series: Series) -> Iterator[Case]:
    """Step time by the formula."""
    for row in series.rows:
        law = law_of(series, row)
        predicted = Range.around(law.step_s(row.batch), law.width_at(row.batch))
        name = f"{series.name}, batch {row.batch:.0f}"
        yield Case(
            f"step time, {where(series)}",
            part_of(series),
            series.llm.model_key,
            name,
            predicted,
            row.step_s,
        )


def gain_cases(series: Series) -> Iterator[Case]:
    """Throughput over that of the smallest batch, by the formula."""
    first = series.rows[0]
    for row in series.rows[1:]:
        yield Case(
            f"gain, {where(series)}",
            part_of(series),
            series.llm.model_key,
            f"{series.name}, batch {first.batch:.0f} → {row.batch:.0f}",
            law_of(series, row).gain(first.batch, row.batch),
            measured_gain(first, row),
            neutral=1.0,
        )


def fit_cases(series: Series) -> Iterator[Case]:
    """Step time and gain at a batch that the fit on the others has not seen, within its reach."""
    first = series.rows[0]
    for left_out in series.rows:
        profile = {
            row.batch: BatchPoint(FIT_SECONDS, FIT_SECONDS * row.batch / row.step_s, 0.0)
            for row in series.rows
            if row is not left_out
        }
        fitted = decode_step.fit(profile, law_of(series, left_out))
        if fitted is None or (fitted.reach is not None and left_out.batch > fitted.reach):
            continue
        name = f"{series.name}, batch {left_out.batch:.0f} left out"
        predicted = Range.around(fitted.step_s(left_out.batch), fitted.width_at(left_out.batch))
        of = series.source, series.llm.model_key, name
        yield Case("step time, fitted on site", *of, predicted, left_out.step_s)
        if left_out is not first:
            gain, measured = fitted.gain(first.batch, left_out.batch), measured_gain(first, left_out)
            yield Case("gain, fitted on site", *of, gain, measured, neutral=1.0)


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
                yield Case(
                    "speed-up by 8-bit weights",
                    whole.source,
                    whole.llm.model_key,
                    f"{whole.name}, batch {row.batch:.0f}",
                    predicted,
                    row.step_s / twin.step_s * twin.batch / row.batch,
                    neutral=1.0,
                )


def scored_caps(folder: Path) -> list[CapRow]:
    """Rows with a cap from 0.75 to 1.1 of the uncapped mean power (section 8)."""
    return [row for row in of_zeus(folder) if CAP_RATIOS[0] <= row.cap_w / row.uncapped_w <= CAP_RATIOS[1]]


def cap_cases(rows: Sequence[CapRow]) -> Iterator[Case]:
    """Added time and energy of power caps."""
    for row in rows:
        effect = power_cap(cap_w=row.cap_w, uncapped_mean_w=row.uncapped_w)
        assert effect is not None
        name = f"{row.board} at {row.cap_w / row.uncapped_w:.2f}"
        for group, predicted, measured in (
            ("power cap, added time", effect.time_ratio, row.time_ratio),
            ("power cap, energy", effect.energy_ratio, row.energy_ratio),
        ):
            yield Case(group, row.board, row.board, name, predicted, measured, neutral=0.0, is_share=True)


@dataclass(frozen=True, slots=True)
class Measurements:
    """All that is at hand, and a sentence on each thing that is refused or absent."""

    series: tuple[Series, ...]
    caps: tuple[CapRow, ...]
    notes: tuple[str, ...]


def measurements(folder: Path | None) -> Measurements:
    """The rows of the rules, and the captures of a folder."""
    every, notes = list(of_the_rules()), []
    if folder is None:
        note = f"Only the rows of the rules: no folder of captures beside the checkout; name one in {FOLDER_SETTING}."
        return Measurements(tuple(every), (), (note,))
    for read, why in (
        (of_mlenergy, "no such model in the catalogue"),
        (of_bsc, "several servers share the GPU, so the step time of none is its own"),
    ):
        series, refused = read(folder)
        every += series
        notes += [f"Refused: {name}: {why}." for name in refused]
    return Measurements(tuple(every), tuple(scored_caps(folder)), tuple(notes))


def cases(found: Measurements) -> list[Case]:
    """Every prediction that these measurements can judge."""
    return [
        *(
            case
            for series in found.series
            for make in (step_cases, gain_cases, fit_cases)
            for case in make(series)
        ),
        *fp8_cases(found.series),
        *cap_cases(found.caps),
    ]
