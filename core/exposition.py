"""Prometheus text: names from the metric catalogue (base unit in the plural, ``_total`` on counters) and escaping."""

from collections.abc import Iterable, Mapping
from typing import Final

from core.metrics import Kind, Metric
from core.readings import EngineIdentity, GpuIdentity
from core.units import Unit

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
GPU_PREFIX: Final = "gpuwise_gpu"
ENGINE_PREFIX: Final = "gpuwise_engine"
COUNTED: Final = {
    "agent_skipped": "agent_skipped_rounds",
    "agent_dropped": "agent_dropped_rows",
    "agent_waiting": "agent_waiting_deliveries",
}
"""What is counted, where the metric's name is no noun."""
PLURAL: Final = {
    Unit.RATIO: "ratio",
    Unit.WATT: "watts",
    Unit.JOULE: "joules",
    Unit.BYTE: "bytes",
    Unit.BYTE_PER_SECOND: "bytes_per_second",
    Unit.HERTZ: "hertz",
    Unit.CELSIUS: "celsius",
    Unit.SECOND: "seconds",
    Unit.TOKEN: "tokens",
    Unit.REQUEST: "requests",
    Unit.FLAGS: "flags",
    Unit.INDEX: "index",
}


def exported_name(metric: Metric, prefix: str) -> str:
    """Name in Prometheus: ``power_w`` → ``gpuwise_gpu_power_watts``; a count takes its noun in the plural."""
    stem = metric.name.removesuffix(f"_{metric.unit.value}")
    if metric.unit is Unit.COUNT:
        name = COUNTED.get(stem) or f"{stem}{'es' if stem.endswith('s') else 's'}"
    else:
        name = f"{stem}_{PLURAL[metric.unit]}"
    return f"{prefix}_{name}_total" if metric.kind is Kind.COUNTER else f"{prefix}_{name}"


def host_metric_name(metric: Metric) -> str:
    """Name in Prometheus of a host's metric; some say in their own name whose they are."""
    own = metric.name.startswith(("host_", "agent_"))
    return exported_name(metric, "gpuwise" if own else "gpuwise_host")


def gpu_labels(identity: GpuIdentity) -> dict[str, str]:
    """Labels of a GPU's series; an unknown one is left out."""
    return _known(
        gpu_uuid=identity.gpu_uuid,
        host=identity.host,
        gpu=None if identity.index is None else str(identity.index),
        model=identity.model,
    )


def engine_labels(identity: EngineIdentity) -> dict[str, str]:
    """Labels of an engine's series; an unknown one is left out."""
    return _known(
        engine=identity.engine, host=identity.host, kind=identity.kind or None, model=identity.model
    )


def _known(**labels: str | None) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value is not None}


def escaped(value: str) -> str:
    """A label's value."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def family(name: str, kind: str, help_: str, series: Iterable[tuple[Mapping[str, str], float]]) -> list[str]:
    """Lines of one metric family; none at all when it has no series."""
    rows = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in series]
    if not rows:
        return []
    said = help_.replace("\\", "\\\\").replace("\n", "\\n")
    return [f"# HELP {name} {said}", f"# TYPE {name} {kind}", *rows]


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{key}="{escaped(value)}"' for key, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
