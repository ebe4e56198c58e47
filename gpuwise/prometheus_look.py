"""What an import from Prometheus would bring, before it brings anything: GPUs, metrics, span, and which rules can then speak."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from advisor.rules import RULES
from agent.engines import engine_series
from agent.sources import dcgm
from agent.sources.prometheus.api import Api, NotUnderstoodError, Series, TooMuchError
from agent.sources.prometheus.catalog import Catalog, Family
from agent.sources.prometheus.selector import selector
from agent.sources.workload_labels import workload_of
from core.evidence import Window
from core.units import HOUR_MS, MINUTE_MS

INSTANTS: Final = (10_000, 500)
"""At how many a span is looked at; fewer where the server finds that too much."""
LEAST_MS: Final = 4 * MINUTE_MS
"""A value lasts for five minutes, so nothing is overlooked between two instants."""
OF_YOURS: Final = frozenset({"price", "tariff_usd_per_kwh", "own_capex_usd", "hourly_usd_per_kwh"})
"""What rules need and no Prometheus has: prices and terms, with defaults from the catalogue where there are any."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """A rule, and what it would lack; empty: it can speak."""

    rule_id: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """What is there.

    Attributes:
        models: GPUs by model, at the last instant with points. hosts: of them. with_workloads: GPUs that carry a pod or job then.
        from_ms, to_ms: about the first and last instant with points; None: the server does not tell.
        readings: metrics of ours that are there. ignored: metrics of these exporters that are not used.
        speakers: every rule.
    """

    models: dict[str, int]
    hosts: int
    with_workloads: int
    from_ms: int | None
    to_ms: int | None
    readings: tuple[str, ...]
    speakers: tuple[Speaker, ...]


def look_around(api: Api, found: Catalog, window: Window) -> Look:
    """Ask for the span and the newest labels. Raises ``PrometheusError``."""
    instants = sorted(
        {at for family in found.families for at in _instants(api, family, found.matchers, window)}
    )
    # Near the end the last values are carried on: labels of series that ended would be missing.
    newest = instants[-2:][0] if instants else window.to_ms
    gpus = {
        one.labels.get("UUID") or one.labels.get("uuid", ""): one
        for family in (found.dcgm, found.smi)
        if family.anchors and family.values
        for one in api.at(selector(family.anchors[0], found.matchers), newest)
    }
    held = [uuid for uuid, one in gpus.items() if workload_of(one.labels, None, relabelled=found.relabelled)]
    readings = _readings(found.names)
    return Look(
        dict(Counter(one.labels.get("modelName", "model unknown") for one in gpus.values()).most_common()),
        len({_host(one) for one in gpus.values()}),
        len(held),
        instants[0] if instants else None,
        instants[-1] if instants else None,
        tuple(sorted(readings)),
        speakers(readings, workloads=bool(held), xids=dcgm.XID in found.names),
    )


def speakers(readings: Collection[str], *, workloads: bool, xids: bool) -> tuple[Speaker, ...]:
    """Which rules can speak with these readings, and what the others lack."""
    known = {*readings, *OF_YOURS}
    if {"pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"} <= known:
        known.add("pcie_bytes_per_s")
    if "power_w" in known:
        known |= {"energy_j", "bare_idle_w"}
    if workloads:
        known |= {"workloads", "workload"}
    if xids:
        known.add("xid")
    return tuple(Speaker(rule.id, tuple(sorted(rule.needs - known))) for rule in RULES)


def _readings(names: Iterable[str]) -> set[str]:
    readings: set[str] = set()
    for name in names:
        gpu, engine = dcgm.NAMES.get(name), engine_series(name, {})
        if gpu is not None and not gpu.reading.startswith("@"):
            readings.add(gpu.reading)
        elif engine is not None:
            readings |= {metric.reading for metric in engine.metrics if not metric.setting}
    return readings


def _instants(api: Api, family: Family, matchers: Sequence[str], window: Window) -> Iterable[int]:
    query = f"count({selector(family.anchors[0], matchers)})"
    for most in INSTANTS:
        step_ms = max((window.to_ms - window.from_ms) // most // MINUTE_MS * MINUTE_MS, LEAST_MS)
        with suppress(TooMuchError, NotUnderstoodError):
            answer = api.range(query, window.from_ms, window.to_ms // step_ms * step_ms, step_ms)
            return [round(at * 1000) for one in answer for at, _count in one.values]
    return []


def _host(one: Series) -> str:
    return one.labels.get("Hostname") or one.labels.get("instance", "")


def estimated_points(found: Catalog, look: Look, window: Window, step_ms: int) -> int:
    """Points that an import would read, were every metric there for everything all the time."""
    from_ms = window.from_ms if look.from_ms is None else max(look.from_ms, window.from_ms)
    to_ms = window.to_ms if look.to_ms is None else min(look.to_ms + HOUR_MS, window.to_ms)
    series = sum(len(family.names) * len(family.values) for family in found.families)
    return max(to_ms - from_ms, 0) // step_ms * series
