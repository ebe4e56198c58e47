"""Public measurements that estimators are scored on: the rows of the advisor rules, and captures beside the checkout.

Each reader gives *series*: what one engine did at several batch sizes. Prompts of the chat runs are not published; 250
tokens are taken, as in the rules. A capture counts its time under full load (requests waiting), so that start and end
of a run weigh nothing.
"""

import csv
import gzip
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from advisor.estimators.precision import Precision
from catalog import gpu_specs, llm_models
from catalog.gpu_specs import GpuSpec
from catalog.llm_models import LlmSpec

FOLDER_SETTING: Final = "GPUWISE_BENCH_DATA"
CHAT_PROMPT_TOKENS: Final = 250.0
SIXTEEN: Final = Precision(16, 2.0, "published")
EIGHT: Final = Precision(8, 1.0, "published")
MIN_LOAD_S: Final = 20.0

RULES_ROWS: Final[tuple[tuple[str, str, int, float, float, Mapping[int, float]], ...]] = (
    ("llama-2-7b", "H100-SXM5-64GB", 1, 250, 260, {1: 92, 8: 652, 32: 1887, 64: 2810, 127: 3696, 209: 4073}),
    ("opt-2.7b", "H100-SXM5-64GB", 1, 250, 260, {1: 165, 16: 1947, 64: 4472, 127: 5403, 249: 6075}),
    ("llama-3.1-8b", "H100-SXM5-80GB", 1, 250, 396, {8: 1070, 32: 3391, 64: 5147, 128: 7037, 255: 9010, 511: 9806}),
    ("llama-3.3-70b", "H100-SXM5-80GB", 4, 250, 396, {8: 465, 64: 2564, 128: 3895, 255: 5130, 511: 5858}),
)  # fmt: skip
"""Rows 2.4 of the advisor rules: model, GPU, ranks, tokens in and out, batch → tokens/s."""


@dataclass(frozen=True, slots=True)
class Row:
    """One batch size: measured seconds a step, mean context, prompt tokens per generated token."""

    batch: float
    step_s: float
    context_tokens: float
    prompt_per_generated: float


@dataclass(frozen=True, slots=True)
class Series:
    """What one model on one set of GPUs did.

    Attributes:
        source: where it is from. name: for people. ranks: GPUs that share the weights. rows: by batch.
    """

    source: str
    name: str
    llm: LlmSpec
    spec: GpuSpec
    ranks: int
    precision: Precision
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class CapRow:
    """One power limit of one training configuration, against the same without a limit: shares."""

    board: str
    cap_w: float
    uncapped_w: float
    time_ratio: float
    energy_ratio: float


def data_folder() -> Path | None:
    """The folder that the environment names, else the one beside the checkout; None where neither is."""
    named = os.environ.get(FOLDER_SETTING)
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


def of_the_rules() -> Iterator[Series]:
    """Rows 2.4, which need no folder."""
    for model, gpu_key, ranks, prompt, output, rates in RULES_ROWS:
        rows = tuple(Row(b, b / rate, prompt + output / 2, prompt / output) for b, rate in rates.items())
        yield _series("rules 2.4", model, (ranks, gpu_key), SIXTEEN, rows)


def of_mlenergy(folder: Path) -> tuple[list[Series], list[str]]:
    """Chat runs on H100, and the models that the catalogue does not know."""
    path = folder / "mlenergy" / "v3_lm_arena_chat_h100.csv.gz"
    found: dict[tuple[str, int, bool], dict[float, Row]] = defaultdict(dict)
    unknown: set[str] = set()
    for line in _lines(path):
        if llm_models.resolve(line["model_id"]) is None:
            unknown.add(line["model_id"])
            continue
        batch, output = float(line["avg_batch_size"]), float(line["avg_output_len"])
        key = line["model_id"], int(line["num_gpus"]), line["weight_precision"] == "fp8"
        found[key][batch] = Row(
            batch,
            batch / float(line["output_throughput_tokens_per_sec"]),
            CHAT_PROMPT_TOKENS + output / 2,
            CHAT_PROMPT_TOKENS / output,
        )
    series = [
        _series(
            "mlenergy",
            model,
            (ranks, "H100-SXM5-80GB"),
            EIGHT if fp8 else SIXTEEN,
            tuple(rows[batch] for batch in sorted(rows)),
        )
        for (model, ranks, fp8), rows in found.items()
    ]
    return series, sorted(unknown)


def of_bsc(folder: Path) -> tuple[list[Series], list[str]]:
    """VLLM runs on the 64 GB H100, and those with several servers on one GPU, whose step time is not their own."""
    found: dict[tuple[str, str], dict[float, Row]] = defaultdict(dict)
    shared: list[str] = []
    for path in sorted((folder / "bsc_h100_vllm").glob("*/*/*/metrics_engine_server_0.csv.gz")):
        servers = path.parent.name.strip("_").split("__")
        if len(servers) > 1 and servers[1] != "1":
            shared.append(f"{path.parts[-3]} {path.parts[-2]}")
            continue
        row = _capture(path)
        if row is not None:
            found[path.parts[-4], path.parts[-3]][row.batch] = row
    series = []
    for (kind, model), by_batch in found.items():
        rows = tuple(by_batch[batch] for batch in sorted(by_batch))
        own = _series("bsc", model, (1, "H100-SXM5-64GB"), SIXTEEN, rows)
        series.append(replace(own, name=f"{own.name} ({kind})"))
    return series, shared


def of_zeus(folder: Path) -> Iterator[CapRow]:
    """Every limit of every configuration, against its own highest limit."""
    for path in sorted((folder / "zeus_nsdi23").glob("summary_power_*.csv.gz")):
        runs: dict[tuple[str, ...], list[tuple[float, float, float]]] = defaultdict(list)
        for line in _lines(path):
            key = tuple(line[name] for name in ("dataset", "network", "batch_size", "optimizer"))
            limit, seconds, watts = (
                float(line[name]) for name in ("power_limit", "time_per_epoch", "average_power")
            )
            runs[key].append((limit, seconds, watts))
        board = path.name.split("_")[2].split(".")[0]
        for points in runs.values():
            _, free_s, free_w = max(points)
            for limit, seconds, watts in points:
                if limit < max(points)[0]:
                    time = seconds / free_s
                    yield CapRow(board, limit, free_w, time - 1, watts / free_w * time - 1)


def _capture(path: Path) -> Row | None:
    """Means under full load of one run; None when there is next to none."""
    lines = [{name: float(text or 0) for name, text in line.items()} for line in _lines(path)]
    blocks = re.search(r'num_gpu_blocks="(\d+)"', (path.parent / "cache_config_server_0.txt").read_text())
    assert blocks is not None
    pool = 16 * int(blocks[1])
    load_s = area = held = 0.0
    generated = prompt = 0.0
    for before, after in pairwise(lines):
        if before["num_requests_running"] < 1 or after["num_requests_waiting"] < 1:
            continue
        span = after["time [s]"] - before["time [s]"]
        load_s += span
        area += span * (before["num_requests_running"] + after["num_requests_running"]) / 2
        held += span * pool * (before["gpu_cache_usage_perc"] + after["gpu_cache_usage_perc"]) / 2
        generated += after["generation_tokens_total"] - before["generation_tokens_total"]
        prompt += after["prompt_tokens_total"] - before["prompt_tokens_total"]
    if load_s < MIN_LOAD_S or generated <= 0:
        return None
    return Row(area / load_s, area / generated, held / area, prompt / generated)


def _series(
    source: str, model: str, on: tuple[int, str], precision: Precision, rows: tuple[Row, ...]
) -> Series:
    ranks, gpu_key = on
    llm, spec = llm_models.resolve(model), gpu_specs.by_key(gpu_key)
    assert llm is not None
    assert spec is not None
    name = f"{llm.model_key} {precision.bits} bits on {ranks}× {gpu_key}"
    return Series(source, name, llm, spec, ranks, precision, rows)


def _lines(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as text:
        return list(csv.DictReader(text))
