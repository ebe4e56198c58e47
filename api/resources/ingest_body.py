"""The body of ``POST /api/v1/ingest``: the JSON of ``core.delivery``, each field held to its type and range.

Plain dictionaries, not models: they go straight to ``core.delivery.from_object``, and one made in Rust costs a tenth.
A contract test holds the fields to those of the dataclasses. ``values`` are the metrics of the catalogue, each within
what a reading can be at all; an amount is also held below what sums of millions of rows can still carry.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import (
    ConfigDict,
    FailFast,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    TypeAdapter,
    with_config,
)
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from core.activity import Activity
from core.delivery import VERSION
from core.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS, PLAUSIBLE, Metric, Range
from core.plausible import MOST_ROUNDED, RANGES
from core.samples import EnergyMethod
from core.units import HOUR_MS, Unit

STRICT: Final = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

MOST_AMOUNT: Final = 1e15
CORES: Final = Range(0.0, 10_000.0, "a host has between 0 and 10,000 cores")
THREAD: Final = Range(0.0, 2.0, "a thread uses at most one core, and clock ticks at most double that")
_AMOUNT: Final = Range(0.0, MOST_AMOUNT, "an amount of one interval is between 0 and 10^15")
_SHARE: Final = PLAUSIBLE[Unit.RATIO]
_OF_CORES: Final = frozenset({"agent_cpu_ratio", "cpu_ratio"})
"""Named a ratio, and 1 is one core: several threads use more."""


def range_of(metric: Metric) -> Range:
    """What a stored value of ``metric`` can be."""
    if metric.name in _OF_CORES:
        return CORES
    return metric.plausible if metric.plausible.most <= MOST_AMOUNT or metric.unit is Unit.FLAGS else _AMOUNT


def bounds_of(allowed: Range) -> tuple[float, float]:
    """Least and most that is taken; a share that was rounded or averaged ends a little above the whole."""
    return allowed.least, MOST_ROUNDED if allowed is _SHARE else allowed.most


class MetricsOf:
    """Makes a type of ``dict[str, float]``: only these names, each within its range."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = metrics

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Everything is checked in Rust."""
        return core_schema.typed_dict_schema(
            {metric.name: self._field(metric) for metric in self.metrics},
            extra_behavior="forbid",
            strict=True,
            total=False,
        )

    @staticmethod
    def _field(metric: Metric) -> core_schema.TypedDictField:
        least, most = bounds_of(range_of(metric))
        return core_schema.typed_dict_field(
            core_schema.float_schema(ge=least, le=most, strict=True, allow_inf_nan=False),
            required=False,
            metadata={"pydantic_js_updates": {"description": metric.help}},
        )


def _fact(value: object) -> object:
    """A state of a GPU: a figure or a word."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a fact is a number or a word")  # noqa: TRY004 - pydantic's way to refuse
    if isinstance(value, str):
        if len(value) > MOST_WORD or not value.isprintable():
            raise ValueError(f"a word has at most {MOST_WORD} printable characters")
    elif not -_FACT <= value <= _FACT:
        raise ValueError("a figure is finite and below 10^15")
    return value


MOST_WORD: Final = 64
_FACT: Final = MOST_AMOUNT
PRINTED: Final = r"^[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$"
"""No control characters, no line ends, nothing that turns the direction of text: it goes into pages and logs."""

HostName = Annotated[str, Field(min_length=1, max_length=255, pattern=PRINTED)]
EngineName = Annotated[str, Field(min_length=1, max_length=300, pattern=PRINTED)]
Uuid = Annotated[str, Field(pattern=r"^[!-~]{1,96}$")]
Label = Annotated[str, Field(min_length=1, max_length=255, pattern=PRINTED)]
Sentence = Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTED)]
Value = Annotated[str, Field(max_length=2_000, pattern=PRINTED)]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
SettingName = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]
Sequence64 = Annotated[int, Field(ge=0, le=2**63 - 1)]
Index = Annotated[int, Field(ge=0, le=65_535)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Instant = Annotated[int, Field(ge=0, le=2**53, description="Epoch milliseconds, UTC.")]
Span = Annotated[int, Field(gt=0, le=HOUR_MS, description="Length of the interval, at most an hour.")]
Part = Annotated[int, Field(ge=0, le=HOUR_MS)]
Share = Annotated[float, Field(ge=0, le=MOST_ROUNDED)]
HostBytes = Annotated[int, Field(ge=0, le=10**15)]
Bytes = Annotated[float, Field(ge=0, le=RANGES["process_memory_bytes"].most)]
Fact = Annotated[object, PlainValidator(_fact, json_schema_input_type=float | str)]

UUID_TEXT: Final = "The GPU, as its driver names it."
COVERED_TEXT: Final = "Time for which readings vouch, at most the span."


@with_config(STRICT)
class IngestHost(TypedDict):
    """The machine that delivers."""

    name: Annotated[HostName, Field(description="Name of the host in the store.")]
    cpu_count: NotRequired[Annotated[int, Field(ge=1, le=65_536, description="Logical processors.")]]
    memory_total_bytes: NotRequired[Annotated[HostBytes, Field(description="Memory of the host.")]]
    agent_version: NotRequired[Annotated[Label, Field(description="Version of the agent there.")]]


@with_config(STRICT)
class IngestGpu(TypedDict):
    """A GPU; one not seen before is registered, an absent field erases nothing."""

    gpu_uuid: Annotated[Uuid, Field(description=UUID_TEXT)]
    host: NotRequired[Annotated[HostName, Field(description="Host it sits in.")]]
    index: NotRequired[Annotated[Index, Field(description="NVML index: a label, never a key.")]]
    model: NotRequired[Annotated[Label, Field(description="NVML product name.")]]
    memory_total_bytes: NotRequired[
        Annotated[
            int, Field(ge=0, le=RANGES["memory_total_bytes"].most, description="Memory with the reserve.")
        ]
    ]
    pci_bus_id: NotRequired[Annotated[Label, Field(description="As NVML prints it.")]]
    driver_version: NotRequired[Annotated[Label, Field(description="Kernel driver.")]]
    max_sm_clock_hz: NotRequired[
        Annotated[float, Field(ge=0, le=RANGES["max_sm_clock_hz"].most, description="Highest SM clock.")]
    ]
    power_limit_default_w: NotRequired[
        Annotated[float, Field(ge=0, le=RANGES["power_limit_default_w"].most, description="The card's own.")]
    ]
    compute_capability: NotRequired[Annotated[Label, Field(description="For example 9.0.")]]
    power_averaging_s: NotRequired[
        Annotated[float, Field(ge=0, le=3_600, description="Time that power_w averages over.")]
    ]


@with_config(STRICT)
class IngestEngine(TypedDict):
    """An LLM engine; one not seen before is registered."""

    engine: Annotated[EngineName, Field(description="instance/engine, unique in the fleet.")]
    kind: Annotated[Word, Field(description="vllm, sglang, tgi, trtllm, llamacpp.")]
    host: NotRequired[Annotated[HostName, Field(description="Host it runs on.")]]
    model: NotRequired[Annotated[Label, Field(description="Model it serves.")]]
    settings: NotRequired[
        Annotated[dict[SettingName, Value], Field(max_length=512, description="Flags and limits, as text.")]
    ]
    gpu_uuids: NotRequired[
        Annotated[list[Uuid], FailFast(), Field(max_length=4_096, description="GPUs its processes hold.")]
    ]


@with_config(STRICT)
class IngestGpuSample(TypedDict):
    """One GPU over one interval."""

    gpu_uuid: Annotated[Uuid, Field(description=UUID_TEXT)]
    ts_ms: Annotated[Instant, Field(description="Start of the interval, epoch milliseconds.")]
    span_ms: Span
    covered_ms: Annotated[Part, Field(description=COVERED_TEXT)]
    activity: Annotated[
        Literal[tuple(one.value for one in Activity)],  # type: ignore[valid-type]  # the words are the enumeration's
        Field(description="What the GPU was doing."),
    ]
    values: Annotated[
        dict[str, float], MetricsOf(GPU_METRICS), Field(description="By metric; absent: unknown.")
    ]
    energy_method: NotRequired[
        Annotated[
            Literal[tuple(one.value for one in EnergyMethod)],  # type: ignore[valid-type]
            Field(description="How energy_j was had; absent when it is unknown."),
        ]
    ]


@with_config(STRICT)
class IngestWorkload(TypedDict):
    """What held a GPU."""

    kind: Annotated[Word, Field(description="process, container, pod, slurm_job, systemd_unit, engine.")]
    key: Annotated[Label, Field(description="Unique within host and kind.")]
    name: Annotated[Label, Field(description="For people.")]
    user: NotRequired[Annotated[Label, Field(description="User name or uid.")]]
    host: NotRequired[Annotated[HostName, Field(description="Host it ran on.")]]
    attributes: NotRequired[
        Annotated[
            list[tuple[Word, Value]],
            FailFast(),
            Field(max_length=64, description="What else is known of it, as pairs of name and text."),
        ]
    ]


@with_config(STRICT)
class IngestProcessSample(TypedDict):
    """One workload on one GPU over one interval."""

    gpu_uuid: Annotated[Uuid, Field(description=UUID_TEXT)]
    ts_ms: Annotated[Instant, Field(description="Start of the interval, epoch milliseconds.")]
    span_ms: Span
    workload: IngestWorkload
    process_count: Annotated[Count, Field(description="Its processes on that GPU.")]
    memory_used_bytes: NotRequired[Annotated[Bytes, Field(description="GPU memory it held.")]]
    busy_ratio: NotRequired[Annotated[Share, Field(description="Time with a kernel of its own.")]]
    cpu_ratio: NotRequired[
        Annotated[float, Field(ge=0, le=CORES.most, description="CPU over wall time; 1 is one core.")]
    ]
    cpu_thread_ratio: NotRequired[
        Annotated[float, Field(ge=0, le=THREAD.most, description="The same of its busiest thread.")]
    ]


@with_config(STRICT)
class IngestEngineSample(TypedDict):
    """One engine over one interval."""

    engine: Annotated[EngineName, Field(description="Whose.")]
    ts_ms: Annotated[Instant, Field(description="Start of the interval, epoch milliseconds.")]
    span_ms: Span
    covered_ms: Annotated[Part, Field(description=COVERED_TEXT)]
    busy_ms: Annotated[Part, Field(description="Time with requests running, at most the span.")]
    values: Annotated[
        dict[str, float], MetricsOf(ENGINE_METRICS), Field(description="By metric; absent: unknown.")
    ]
    busy_running_requests: NotRequired[
        Annotated[float, Field(ge=0, le=MOST_AMOUNT, description="Mean of running over the busy time.")]
    ]


@with_config(STRICT)
class IngestHostSample(TypedDict):
    """One host over one interval."""

    host: Annotated[HostName, Field(description="Which.")]
    ts_ms: Annotated[Instant, Field(description="Start of the interval, epoch milliseconds.")]
    span_ms: Span
    values: Annotated[
        dict[str, float], MetricsOf(HOST_METRICS), Field(description="By metric; absent: unknown.")
    ]


@with_config(STRICT)
class IngestEvent(TypedDict):
    """Something that happened to a GPU."""

    gpu_uuid: Annotated[Uuid, Field(description=UUID_TEXT)]
    ts_ms: Instant
    kind: Annotated[Word, Field(description="xid, lost, found, driver, ecc, …")]
    message: Annotated[Sentence, Field(description="One sentence for people; part of the key.")]
    code: NotRequired[Annotated[int, Field(ge=-(2**31), le=2**31 - 1, description="Its number (XID).")]]


@with_config(STRICT)
class IngestHealth(TypedDict):
    """The state of one GPU; the latest one is kept."""

    gpu_uuid: Annotated[Uuid, Field(description=UUID_TEXT)]
    ts_ms: Instant
    facts: Annotated[dict[Word, Fact], Field(max_length=128, description="By name; absent: unknown.")]


@with_config(STRICT)
class IngestBody(TypedDict):
    """Everything an agent has to say about one interval; stored in one transaction, and once however often it comes."""

    version: Annotated[int, Field(ge=VERSION, le=VERSION, description="Of this format.")]
    agent_id: Annotated[
        str, Field(pattern=r"^[0-9A-Za-z._:-]{1,64}$", description="Whose numbering sequence is.")
    ]
    sequence: Annotated[Sequence64, Field(description="Number of the delivery in its spool.")]
    host: NotRequired[IngestHost]
    gpus: NotRequired[
        Annotated[list[IngestGpu], FailFast(), Field(description="GPUs, when they are new or have changed.")]
    ]
    engines: NotRequired[
        Annotated[list[IngestEngine], FailFast(), Field(description="Engines, when new or changed.")]
    ]
    gpu_samples: NotRequired[
        Annotated[list[IngestGpuSample], FailFast(), Field(description="A row per GPU and interval.")]
    ]
    process_samples: NotRequired[
        Annotated[list[IngestProcessSample], FailFast(), Field(description="A row per workload and GPU.")]
    ]
    engine_samples: NotRequired[
        Annotated[list[IngestEngineSample], FailFast(), Field(description="A row per engine.")]
    ]
    host_samples: NotRequired[
        Annotated[list[IngestHostSample], FailFast(), Field(description="A row per interval.")]
    ]
    events: NotRequired[Annotated[list[IngestEvent], FailFast(), Field(description="What happened.")]]
    health: NotRequired[
        Annotated[list[IngestHealth], FailFast(), Field(description="States asked each minute.")]
    ]


BODY: Final[TypeAdapter[IngestBody]] = TypeAdapter(IngestBody)


SHARES: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(metric.name for metric in metrics if range_of(metric) is _SHARE)
    for name, metrics in (
        ("gpu_samples", GPU_METRICS),
        ("engine_samples", ENGINE_METRICS),
        ("host_samples", HOST_METRICS),
    )
}
"""Shares of a whole among the values of each list."""


def schemas() -> dict[str, Any]:
    """The body's schemas for the OpenAPI document, by name."""
    whole = BODY.json_schema(ref_template="#/components/schemas/{model}")
    parts: Mapping[str, Any] = whole.pop("$defs")
    return {**parts, "IngestBody": whole}
