"""What the recordings of one card say, as Markdown: ``python -m bench.workloads.report FOLDER``. Pure below ``main``."""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Final

from bench.measure import shown
from bench.workloads import record
from bench.workloads.ab import AGENT, GPM, effect
from bench.workloads.loads import LOADS
from core.percent import percent

SUMMARY: Final = "summary.json"
_COLUMNS: Final = (
    ("busy", "busy_ratio"),
    ("SM", "sm_active_ratio"),
    ("tensor", "tensor_active_ratio"),
    ("DRAM", "dram_active_ratio"),
    ("fp32", "fp32_active_ratio"),
)
Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    words = parser.parse_args()
    summary = json.loads((words.folder / SUMMARY).read_text(encoding="utf-8"))
    recordings = {path.name.partition(".")[0]: record.read(path) for path in words.folder.glob("*.jsonl.gz")}
    print(report(recordings, summary))


def report(recordings: Mapping[str, tuple[dict[str, Any], Rows]], summary: Mapping[str, Any]) -> str:
    """The whole report.

    Args:
        recordings: header and rows by load.
        summary: ``ab`` and what failed, from the run.
    """
    card: Mapping[str, Any] = next((header["card"] for header, _rows in recordings.values()), {})
    lines = [f"# {card.get('model', 'unknown card')}, driver {card.get('driver_version', 'unknown')}", ""]
    lines += [
        *_table(recordings),
        "",
        *_parked(recordings),
        *_energy(recordings),
        *_cost(recordings),
        *_ab(summary),
    ]
    lines += [f"- Failed: {name}: {why}" for name, why in summary.get("failed", {}).items()]
    missing = [load.name for load in LOADS if load.name not in recordings]
    if missing:
        lines.append(f"- Not recorded: {', '.join(missing)}")
    return "\n".join(lines)


def mean_of(rows: Rows, name: str) -> float | None:
    """Mean of a value over GPU samples, weighted by the time each covers; None when no sample has it."""
    held = [(row[name], row["covered_ms"]) for row in samples(rows) if name in row and row["covered_ms"]]
    weight = sum(ms for _value, ms in held)
    return sum(value * ms for value, ms in held) / weight if weight else None


def samples(rows: Rows) -> list[Mapping[str, Any]]:
    """GPU samples among the rows."""
    return [row for row in rows if row["table"] == "gpu_sample"]


def energy_ratio(rows: Rows) -> float | None:
    """Joules by the counter over joules by power × time, over samples that are covered whole; None without any."""
    whole = [
        row
        for row in samples(rows)
        if row.get("energy_method") == "counter"
        and "energy_j" in row
        and "power_w" in row
        and row["covered_ms"] == row["span_ms"]
    ]
    integrated = sum(row["power_w"] * row["span_ms"] / 1000 for row in whole)
    return sum(row["energy_j"] for row in whole) / integrated if integrated else None


def parked_w(recordings: Mapping[str, tuple[dict[str, Any], Rows]]) -> float | None:
    """Watts of a parked context over the empty card: the mean of both empty ones, cold and warm, where there are both."""
    empty = [
        mean_of(recordings[name][1], "power_w") for name in ("empty", "empty-again") if name in recordings
    ]
    known = [value for value in empty if value is not None]
    parked = mean_of(recordings["parked"][1], "power_w") if "parked" in recordings else None
    return None if parked is None or not known else parked - mean(known)


def _table(recordings: Mapping[str, tuple[dict[str, Any], Rows]]) -> list[str]:
    lines = [
        "| load | samples | activity stored | as expected | "
        + " | ".join(name for name, _ in _COLUMNS)
        + " | W | W max | per s |",
        "|---|---:|---|---|" + "---:|" * (len(_COLUMNS) + 3),
    ]
    for load in LOADS:
        if load.name not in recordings:
            continue
        header, rows = recordings[load.name]
        kinds = Counter(row["activity"] for row in samples(rows))
        right = sum(count for kind, count in kinds.items() if kind in load.expect)
        activity = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        figures = [_ratio(mean_of(rows, name)) for _, name in _COLUMNS]
        most = max((row["power_max_w"] for row in samples(rows) if "power_max_w" in row), default=None)
        speed = header.get("units_per_s")
        lines.append(
            f"| {load.label} | {len(samples(rows))} | {activity or 'none'} | {right} of {sum(kinds.values())} | "
            + " | ".join([*figures, _figure(mean_of(rows, "power_w")), _figure(most)])
            + f" | {'' if not speed else f'{shown(speed)} {load.unit}'} |"
        )
    return lines


def _parked(recordings: Mapping[str, tuple[dict[str, Any], Rows]]) -> list[str]:
    watts = parked_w(recordings)
    return [] if watts is None else [f"- A parked context draws {watts:+.1f} W over the empty card."]


def _energy(recordings: Mapping[str, tuple[dict[str, Any], Rows]]) -> list[str]:
    ratios = {
        name: ratio for name, (_h, rows) in recordings.items() if (ratio := energy_ratio(rows)) is not None
    }
    if not ratios:
        return ["- Energy: no sample has both a counter and power."]
    low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    said = (
        f"- Energy counter over integrated power: {mean(ratios.values()):.4f} on the mean of {len(ratios)} loads, "
        f"from {ratios[low]:.4f} ({low}) to {ratios[high]:.4f} ({high})."
    )
    return [said]


def _cost(recordings: Mapping[str, tuple[dict[str, Any], Rows]]) -> list[str]:
    headers = [header for header, _rows in recordings.values() if "agent_cpu_ratio" in header]
    if not headers:
        return []
    cpu = [header["agent_cpu_ratio"] for header in headers]
    memory = [header["agent_memory_bytes"] for header in headers]
    said = (
        f"- The agent (whole process tree, 1 s, GPM): {percent(mean(cpu), 3)} of a core on the mean, {percent(max(cpu), 3)} at most over one load; "
        f"{max(memory) / (1 << 20):.1f} MiB resident at most."
    )
    return [said]


def _ab(summary: Mapping[str, Any]) -> list[str]:
    ab = summary.get("ab")
    if not ab:
        return ["- A/B: not run."]
    lines = []
    for kind, what in ((AGENT, "with the agent"), (GPM, "with a GPM pair each second")):
        found = effect(ab["phases"], kind)
        if found is not None:
            ratio, spread = found
            lines.append(
                f"- Decode speed {what}: {ratio:.4f} of the speed without (quiet phases differ by ±{spread:.4f} among themselves)."
            )
    probes = [probe for probe in ab["probes"] if probe.get("calls")]
    if probes:
        lines.append(
            f"- One GPM pair: {mean(probe['wall_ms'] for probe in probes):.3f} ms, {mean(probe['cpu_ms'] for probe in probes):.3f} ms of CPU "
            f"(medians), {max(probe['wall_max_ms'] for probe in probes):.3f} ms at most."
        )
    return lines + [f"- GPM probe: {probe['why']}" for probe in ab["probes"] if probe.get("why")]


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _figure(value: float | None) -> str:
    return "–" if value is None else shown(value)


if __name__ == "__main__":
    main()
