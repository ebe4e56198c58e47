"""How right the size calculator is: rate, latency and joules a token beside public measurements.

Each measured run is sized as it ran: model, GPU, split, requests at once, tokens in and out. Chat runs are the ML.ENERGY
leaderboard's (v3, H100 of 80 GB), vLLM runs the BSC's (H100 of 64 GB); of the latter the fit of the power has seen
llama-2-7b and opt-2.7b, never opt-1.3b and llama-2-13b. The chat runs publish the *median* time between tokens.
"""

import csv
import gzip
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from advisor.estimators import decode_step
from advisor.estimators.sizing import speed_as
from advisor.estimators.sizing_hardware import form_of
from advisor.estimators.sizing_load import Load
from bench.advice_cases import Case
from bench.advice_rows import CHAT_PROMPT_TOKENS, FOLDER_SETTING, MIN_LOAD_S, Series, data_folder, of_bsc
from bench.measure import Figure
from catalog import gpu_specs, llm_models
from catalog.gpu_specs import GpuSpec
from catalog.llm_models import LlmSpec
from core.percent import percent

DENSE: Final = "dense on Hopper"
OTHER: Final = "mixtures, 8 bits, windows"


@dataclass(frozen=True, slots=True)
class Run:
    """What one engine was seen to do; None: not measured.

    Attributes:
        source, name: where it is from, and what it was. ranks: GPUs that share the weights.
        batch, prompt_tokens, output_tokens: requests at once and their length, means.
        tokens_per_s: generated. itl_median_s: between tokens. power_w: of one GPU.
    """

    source: str
    llm: LlmSpec
    spec: GpuSpec
    ranks: int
    form: str
    batch: float
    prompt_tokens: float
    output_tokens: float
    tokens_per_s: float
    itl_median_s: float | None
    power_w: float | None

    @property
    def name(self) -> str:
        """For people."""
        return (
            f"{self.llm.model_key} {self.form} on {self.ranks}× {self.spec.gpu_key}, batch {self.batch:.0f}"
        )


def chat_runs(folder: Path) -> Iterator[Run]:
    """Chat runs on H100 of models that the catalogue knows."""
    spec = gpu_specs.by_key("H100-SXM5-80GB")
    assert spec is not None
    for line in _lines(folder / "mlenergy" / "v3_lm_arena_chat_h100.csv.gz"):
        llm = llm_models.resolve(line["model_id"])
        if llm is not None:
            ranks = int(line["num_gpus"])
            yield Run(
                source="mlenergy",
                llm=llm,
                spec=spec,
                ranks=ranks,
                form="fp8" if line["weight_precision"] == "fp8" else "bf16",
                batch=float(line["avg_batch_size"]),
                prompt_tokens=CHAT_PROMPT_TOKENS,
                output_tokens=float(line["avg_output_len"]),
                tokens_per_s=float(line["output_throughput_tokens_per_sec"]),
                itl_median_s=float(line["median_itl_ms"]) / 1000,
                power_w=float(line["avg_power_watts"]) / ranks,
            )


def vllm_runs(folder: Path) -> Iterator[Run]:
    """Captures of one server on one GPU, under full load, with the power of that time."""
    series, _ = of_bsc(folder)
    watts = dict(_watts(folder))
    for each in series:
        for row in each.rows:
            output = row.context_tokens / (row.prompt_per_generated + 0.5)
            yield Run(
                source="bsc",
                llm=each.llm,
                spec=each.spec,
                ranks=each.ranks,
                form="bf16",
                batch=row.batch,
                prompt_tokens=output * row.prompt_per_generated,
                output_tokens=output,
                tokens_per_s=row.batch / row.step_s,
                itl_median_s=None,
                power_w=_nearest(watts, each, row.batch),
            )


def _watts(folder: Path) -> Iterator[tuple[tuple[str, float], float]]:
    """Mean board power while requests waited, by model and the mean batch of that time."""
    for path in sorted((folder / "bsc_h100_vllm").glob("*/*/*/metrics_engine_server_0.csv.gz")):
        lines = [line for line in _lines(path) if float(line["num_requests_running"] or 0) >= 1]
        loaded = [line for line in lines if float(line["num_requests_waiting"] or 0) >= 1]
        if not loaded:
            continue
        start, end = (float(loaded[at]["time [s]"]) for at in (0, -1))
        power = [
            float(line["pwr"])
            for line in _lines(path.parent / "metrics_gpu_device_nvidia_smi_dom_0_server_0.csv.gz")
            if line["time"] != "s" and start <= float(line["time"]) <= end
        ]
        if power and end - start >= MIN_LOAD_S:
            yield (
                (path.parts[-3], fmean(float(line["num_requests_running"]) for line in loaded)),
                fmean(power),
            )


def _nearest(watts: dict[tuple[str, float], float], series: Series, batch: float) -> float | None:
    """Power of the run of that model whose mean batch is this one, within 5 %."""
    own = {found: power for (model, found), power in watts.items() if llm_models.resolve(model) == series.llm}
    best = min(own, key=lambda found: abs(found - batch), default=None)
    return None if best is None or abs(best / batch - 1) > 0.05 else own[best]


def _lines(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def cases(runs: Sequence[Run]) -> Iterator[Case]:
    """Each run sized as it ran, beside what it did."""
    for run in runs:
        form = form_of(run.form)
        assert form is not None
        output = max(1, round(run.output_tokens))
        load = Load(
            run.llm, form, 2.0, output + max(1, round(run.prompt_tokens)), output, max(1, round(run.batch))
        )
        speed = speed_as(load, run.spec, run.ranks)
        if speed is None:
            continue
        kind = DENSE if speed.uncertainty_ratio <= decode_step.HALF_WIDTH_DENSE_HOPPER else OTHER
        found = [
            ("tokens/s", speed.tokens_per_s, run.tokens_per_s),
            ("median ITL", speed.itl_median_s, run.itl_median_s),
        ]
        if run.power_w is not None:
            found.append(("power", speed.power_w, run.power_w))
            found.append(("J/token", speed.j_per_token, run.power_w * run.ranks / run.tokens_per_s))
        for what, predicted, measured in found:
            if measured is not None:
                yield Case(f"{what}, {kind}", run.source, run.llm.model_key, run.name, predicted, measured)


def all_runs(folder: Path) -> list[Run]:
    """Every public run at hand."""
    return [*chat_runs(folder), *vllm_runs(folder)]


def scored(found: Sequence[Case]) -> dict[str, tuple[int, float, float]]:
    """Cases, mean error and share within the interval, by group and by group and source."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        groups.setdefault(case.group, []).append(case)
        groups.setdefault(f"{case.group}: {case.part}", []).append(case)
    return {
        group: (len(own), fmean(case.error for case in own), fmean(case.is_covered for case in own))
        for group, own in sorted(groups.items())
    }


def run() -> Iterator[Figure]:
    """Error and coverage as figures of the benchmark; ``runs`` is how many cases are behind each."""
    folder = data_folder()
    if folder is None:
        print(f"sizing: no public measurements at hand: {FOLDER_SETTING} names their folder", file=sys.stderr)
        return
    for group, (count, error, covered) in scored(list(cases(all_runs(folder)))).items():
        yield Figure("sizing", f"{group}: mean error", error * 100, "%", count)
        yield Figure("sizing", f"{group}: in the 80 % interval", covered * 100, "%", count)


def main() -> int:
    """Print the table and the worst cases."""
    folder = data_folder()
    if folder is None:
        print(f"no public measurements at hand: {FOLDER_SETTING} names their folder")
        return 1
    found = list(cases(all_runs(folder)))
    print("| estimate | cases | mean error | in the 80 % interval |\n|---|---:|---:|---:|")
    for group, (count, error, covered) in scored(found).items():
        print(f"| {group} | {count} | {percent(error, 1)} | {percent(covered)} |")
    print("\nLargest errors:")
    for case in sorted(found, key=lambda case: -case.error)[:12]:
        print(
            f"{percent(case.error):>6}  {case.group}: {case.name}: {case.predicted.p50:.3g}, measured {case.measured:.3g}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
