"""What a delivery's body may say: types, ranges and names, and a sentence with the path where it says something else."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.resources import ingest_body
from api.resources.ingest_body import bounds_of, range_of
from api.resources.ingest_bytes import MOST_BYTES, inflate, parse
from api.resources.ingest_checks import Keeping, check_hosts, check_parts, check_times, round_shares
from api.resources.ingest_refusals import RefusedError
from core.activity import Activity
from core.delivery import Delivery, encode, from_object
from core.metrics import BY_NAME, GPU_METRICS, PLAUSIBLE
from core.plausible import MOST_ROUNDED
from core.readings import EngineIdentity, GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import EnergyMethod, EngineSample, GpuEvent, GpuSample, HostSample, ProcessSample
from core.units import DAY_MS, Unit

T0 = 1_791_158_400_000


def good() -> dict[str, Any]:
    """A body as ``json`` reads it."""
    sample = GpuSample("GPU-a", T0, 10_000, 10_000, {"power_w": 300.0}, EnergyMethod.COUNTER, Activity.BUSY)
    workload = WorkloadKey("pod", "k", "n", host="h1", attributes=(("namespace", "ml"),))
    made = Delivery(
        host=HostIdentity("h1"),
        gpus=[GpuIdentity("GPU-a", "h1")],
        engines=[EngineIdentity("h1:8000/0", "h1", "vllm")],
        gpu_samples=[sample],
        process_samples=[ProcessSample("GPU-a", T0, 10_000, workload, None, 0.5, 1)],
        engine_samples=[EngineSample("h1:8000/0", T0, 10_000, 10_000, 0, None, {})],
        host_samples=[HostSample("h1", T0, 10_000, {"cpu_busy_ratio": 0.1})],
        events=[GpuEvent("GPU-a", T0, "xid", "fell off", 79)],
        health=[GpuHealth("GPU-a", T0, {"ecc_mode": "on"})],
    )
    found: dict[str, Any] = json.loads(encode(made, agent_id="a", sequence=1))
    return found


def refusal(body: object) -> str:
    """The sentence that refuses ``body``."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(RefusedError) as caught:
        check_parts(parse(raw))
    assert caught.value.status == 422
    return str(caught.value)


def test_what_an_agent_encodes_is_taken_as_it_is() -> None:
    body = good()
    parsed = parse(json.dumps(body).encode())
    assert parsed == body | {
        "process_samples": [
            body["process_samples"][0]
            | {"workload": body["process_samples"][0]["workload"] | {"attributes": [("namespace", "ml")]}}
        ]
    }


SPOILT: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("range", lambda b: b["gpu_samples"][0]["values"].update(power_w=90000),
     "gpu_samples[0].values.power_w is 90000: a board draws between 0 and 5,000 W"),
    ("negative", lambda b: b["gpu_samples"][0]["values"].update(energy_j=-1.5),
     "gpu_samples[0].values.energy_j is -1.5: an amount of one interval is between 0 and 10^15"),
    ("huge", lambda b: b["gpu_samples"][0]["values"].update(energy_j=1e300), "gpu_samples[0].values.energy_j is 1e+300: "),
    ("bool", lambda b: b["gpu_samples"][0]["values"].update(power_w=False), "gpu_samples[0].values.power_w is false: "),
    ("null", lambda b: b["gpu_samples"][0]["values"].update(power_w=None), "gpu_samples[0].values.power_w is null: "),
    ("text", lambda b: b["gpu_samples"][0]["values"].update(power_w="1"), 'gpu_samples[0].values.power_w is "1": '),
    ("nan", lambda b: b["gpu_samples"][0]["values"].update(power_w=float("nan")), "gpu_samples[0].values.power_w is NaN: "),
    ("inf", lambda b: b["gpu_samples"][0]["values"].update(power_w=float("inf")), "gpu_samples[0].values.power_w is Infinity: "),
    ("metric", lambda b: b["gpu_samples"][0]["values"].update(watts=1), "gpu_samples[0].values.watts is no metric "),
    ("engine's metric", lambda b: b["gpu_samples"][0]["values"].update(generated_tokens=1),
     "gpu_samples[0].values.generated_tokens is no metric "),
    ("field", lambda b: b["gpus"][0].update(colour="red"), "gpus[0].colour is no field "),
    ("top", lambda b: b.update(more=1), "more is no field "),
    ("int as text", lambda b: b["gpu_samples"][0].update(span_ms="10000"), 'gpu_samples[0].span_ms is "10000": '),
    ("float for int", lambda b: b["gpu_samples"][0].update(ts_ms=1.0), "gpu_samples[0].ts_ms is 1.0: "),
    ("true for int", lambda b: b["events"][0].update(code=True), "events[0].code is true: "),
    ("no span", lambda b: b["gpu_samples"][0].update(span_ms=0), "gpu_samples[0].span_ms is 0: "),
    ("long span", lambda b: b["host_samples"][0].update(span_ms=3_600_001), "host_samples[0].span_ms is 3600001: "),
    ("covered", lambda b: b["gpu_samples"][0].update(covered_ms=10_001),
     "gpu_samples[0].covered_ms is 10001: span_ms is only 10000"),
    ("busy", lambda b: b["engine_samples"][0].update(busy_ms=10_001), "engine_samples[0].busy_ms is 10001: "),
    ("covered below", lambda b: b["gpu_samples"][0].update(covered_ms=-1), "gpu_samples[0].covered_ms is -1: "),
    ("activity", lambda b: b["gpu_samples"][0].update(activity="bored"), 'gpu_samples[0].activity is "bored": '),
    ("method", lambda b: b["gpu_samples"][0].update(energy_method="guess"), 'gpu_samples[0].energy_method is "guess": '),
    ("missing", lambda b: b["gpu_samples"][0].pop("covered_ms"), "gpu_samples[0].covered_ms is missing"),
    ("no agent", lambda b: b.pop("agent_id"), "agent_id is missing: it belongs in every delivery"),
    ("version", lambda b: b.update(version=2), "version is 2: "),
    ("version true", lambda b: b.update(version=True), "version is true: "),
    ("sequence", lambda b: b.update(sequence=2**63), "sequence is 9223372036854775808: "),
    ("agent", lambda b: b.update(agent_id="x" * 65), 'agent_id is "xxx'),
    ("control", lambda b: b["host"].update(name="a\nb"), 'host.name is "a\\nb": '),
    ("nul", lambda b: b["events"][0].update(message="a\0b"), 'events[0].message is "a\\u0000b": '),
    ("separator", lambda b: b["process_samples"][0]["workload"].update(key="a\x1fb"), "process_samples[0].workload.key is "),
    ("direction", lambda b: b["gpus"][0].update(model="a\u202eb"), "gpus[0].model is "),
    ("empty uuid", lambda b: b["gpus"][0].update(gpu_uuid=""), 'gpus[0].gpu_uuid is "": '),
    ("long uuid", lambda b: b["gpus"][0].update(gpu_uuid="G" * 97), "gpus[0].gpu_uuid is "),
    ("uuid", lambda b: b["gpus"][0].update(gpu_uuid="GPU a"), 'gpus[0].gpu_uuid is "GPU a": '),
    ("long name", lambda b: b["host"].update(name="h" * 256), "host.name is "),
    ("no list", lambda b: b.update(gpu_samples={}), "gpu_samples is an object: "),
    ("no object", lambda b: b.update(gpu_samples=[[]]), "gpu_samples[0] is a list: "),
    ("pair", lambda b: b["process_samples"][0]["workload"].update(attributes=[["a"]]),
     "process_samples[0].workload.attributes[0][1] is missing"),
    ("fact", lambda b: b["health"][0]["facts"].update(ecc_mode=[1]), "health[0].facts.ecc_mode is a list: a fact is a number or a word"),
    ("fact nan", lambda b: b["health"][0]["facts"].update(x=float("nan")), "health[0].facts.x is NaN: "),
    ("setting", lambda b: b["engines"][0]["settings"].update(dtype=1), "engines[0].settings.dtype is 1: "),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "sentence"), [row[1:] for row in SPOILT], ids=[row[0] for row in SPOILT])
def test_a_bad_field_is_named_by_its_path(spoil: Callable[[dict[str, Any]], object], sentence: str) -> None:
    body = good()
    body["engines"][0].setdefault("settings", {})
    spoil(body)
    assert refusal(body).startswith(sentence)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"1", b"null", b"\xff\xfe", b'"\\ud800"', b"[" * 100_000])
def test_what_is_no_delivery_is_refused_in_a_sentence(raw: bytes) -> None:
    assert refusal(raw).startswith("the body is ")


def test_a_sentence_repeats_little_of_what_was_sent() -> None:
    body = good()
    body["gpu_samples"][0]["values"]["x\n" * 10_000] = 1
    assert len(refusal(body)) < 300
    assert "\n" not in refusal(body)
    body = good()
    body["host"]["name"] = "\x1b" * 100_000
    assert len(refusal(body)) < 300


def test_every_metric_is_taken_up_to_the_ends_of_its_range_and_not_beyond() -> None:
    for metric in GPU_METRICS:
        least, most = bounds_of(range_of(metric))
        for value in (least, most):
            body = good()
            body["gpu_samples"][0]["values"] = {metric.name: value}
            assert parse(json.dumps(body).encode())["gpu_samples"][0]["values"] == {metric.name: value}
        body["gpu_samples"][0]["values"] = {metric.name: most * 1.0001 + 1e-6}
        assert refusal(body).startswith(f"gpu_samples[0].values.{metric.name} is ")


def test_a_share_that_was_rounded_up_is_the_whole() -> None:
    body = good()
    body["gpu_samples"][0]["values"] = {"busy_ratio": 1.004, "power_w": 1.004}
    body["process_samples"][0]["busy_ratio"] = 1.004
    parsed = parse(json.dumps(body).encode())
    round_shares(parsed)
    assert parsed["gpu_samples"][0]["values"] == {"busy_ratio": 1.0, "power_w": 1.004}
    assert parsed["process_samples"][0]["busy_ratio"] == 1.0
    assert MOST_ROUNDED < 1.01


def test_cores_are_counted_not_shared() -> None:
    assert range_of(BY_NAME["agent_cpu_ratio"]).most > 1
    assert range_of(BY_NAME["busy_ratio"]) is PLAUSIBLE[Unit.RATIO]


SHAPES = [
    (ingest_body.IngestHost, HostIdentity, set()),
    (ingest_body.IngestGpu, GpuIdentity, set()),
    (ingest_body.IngestEngine, EngineIdentity, {"host"}),
    (ingest_body.IngestWorkload, WorkloadKey, set()),
    (ingest_body.IngestGpuSample, GpuSample, {"energy_method"}),
    (ingest_body.IngestProcessSample, ProcessSample, {"memory_used_bytes", "busy_ratio"}),
    (ingest_body.IngestEngineSample, EngineSample, {"busy_running_requests"}),
    (ingest_body.IngestHostSample, HostSample, set()),
    (ingest_body.IngestEvent, GpuEvent, set()),
    (ingest_body.IngestHealth, GpuHealth, set()),
]


@pytest.mark.parametrize(("shape", "made", "may_lack"), SHAPES)
def test_fields_are_those_of_what_is_made_of_them(shape: Any, made: Any, may_lack: set[str]) -> None:
    known = fields(made)
    assert set(shape.__annotations__) == {field.name for field in known}
    needed = {f.name for f in known if f.default is MISSING and f.default_factory is MISSING}
    assert shape.__required_keys__ == needed - may_lack


def test_lists_are_those_of_a_delivery() -> None:
    head = {"version", "agent_id", "sequence"}
    assert set(ingest_body.IngestBody.__annotations__) - head == {f.name for f in fields(Delivery)}


def test_the_least_that_is_taken_makes_a_delivery() -> None:
    """Each row with nothing but what it must have."""
    raw = json.dumps({
        "version": 1, "agent_id": "a", "sequence": 0, "host": {"name": "h"}, "gpus": [{"gpu_uuid": "g"}],
        "engines": [{"engine": "e", "kind": "vllm"}],
        "gpu_samples": [{"gpu_uuid": "g", "ts_ms": 0, "span_ms": 1, "covered_ms": 0, "activity": "unknown", "values": {}}],
        "process_samples": [{"gpu_uuid": "g", "ts_ms": 0, "span_ms": 1, "process_count": 0, "workload": {"kind": "pod", "key": "k", "name": "n"}}],
        "engine_samples": [{"engine": "e", "ts_ms": 0, "span_ms": 1, "covered_ms": 0, "busy_ms": 0, "values": {}}],
        "host_samples": [{"host": "h", "ts_ms": 0, "span_ms": 1, "values": {}}],
        "events": [{"gpu_uuid": "g", "ts_ms": 0, "kind": "xid", "message": "m"}],
        "health": [{"gpu_uuid": "g", "ts_ms": 0, "facts": {}}],
    }).encode()  # fmt: skip
    assert from_object(parse(raw)).row_count == 5


@given(st.binary(max_size=3_000), st.integers(1, 9))
def test_any_bytes_come_out_of_gzip_as_they_went_in(raw: bytes, level: int) -> None:
    assert inflate(gzip.compress(raw, level), "gzip") == raw
    assert inflate(gzip.compress(raw) + gzip.compress(raw), "gzip") == raw + raw
    assert inflate(raw, "") == inflate(raw, "identity") == raw


def test_a_bomb_costs_no_more_than_a_delivery_may_have() -> None:
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(1 << 20)
    bomb = b"".join(packer.compress(zeros) for _ in range(1_024)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(RefusedError) as caught:
            inflate(bomb, "gzip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.status == 413
    assert peak < 2.5 * MOST_BYTES


def test_more_values_than_anyone_has_are_not_parsed() -> None:
    with pytest.raises(RefusedError) as caught:
        parse(b'{"gpus":[' + b"1," * 1_000_001 + b"1]}")
    assert caught.value.status == 413


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"plain", id="plain"),
        pytest.param(gzip.compress(b"{}" * 999)[:-9], id="cut"),
        pytest.param(gzip.compress(b"{}") + b"rest", id="with a rest"),
    ],
)
def test_broken_gzip_is_refused(sent: bytes) -> None:
    with pytest.raises(RefusedError) as caught:
        inflate(sent, "gzip")
    assert caught.value.status == 422


def test_another_encoding_is_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        inflate(b"", "br")
    assert caught.value.status == 415


def check_at(now_ms: int, *, raw_days: int = 14) -> None:
    body = parse(json.dumps(good()).encode())
    check_times(body, now_ms=now_ms, keeping=Keeping(raw_days, 1_000), clock_skew_s=None)


def test_a_sample_may_be_five_minutes_ahead_and_as_old_as_samples_are_kept() -> None:
    check_at(T0 - 300_000)
    check_at(T0 + 14 * DAY_MS)
    with pytest.raises(RefusedError) as early:
        check_at(T0 - 300_001)
    assert (early.value.status, early.value.retry_s) == (425, 1)
    with pytest.raises(RefusedError) as late:
        check_at(T0 + 15 * DAY_MS)
    assert late.value.status == 422
    assert "gpu_samples[0].ts_ms is 2026-10-05T00:00:00.000Z: this server keeps them for 14 days" in str(
        late.value
    )


def test_a_time_beyond_the_calendar_is_told_as_a_number() -> None:
    body = good()
    body["events"][0]["ts_ms"] = 2**53
    with pytest.raises(RefusedError, match=r"events\[0\].ts_ms is 9007199254740992, "):
        check_times(parse(json.dumps(body).encode()), now_ms=T0, keeping=Keeping(14, 1_000), clock_skew_s=3.0)


@pytest.mark.parametrize(
    ("path", "spoil"),
    [
        ("host.name", lambda b: b["host"].update(name="h2")),
        ("gpus[0].host", lambda b: b["gpus"][0].update(host="h2")),
        ("engines[0].host", lambda b: b["engines"][0].update(host="h2")),
        ("host_samples[0].host", lambda b: b["host_samples"][0].update(host="h2")),
        ("process_samples[0].workload.host", lambda b: b["process_samples"][0]["workload"].update(host="h2")),
    ],
)
def test_a_token_speaks_for_its_host_only(path: str, spoil: Callable[[dict[str, Any]], object]) -> None:
    body = good()
    check_hosts(parse(json.dumps(body).encode()), "h1")
    spoil(body)
    check_hosts(parse(json.dumps(body).encode()), None)
    with pytest.raises(RefusedError) as caught:
        check_hosts(parse(json.dumps(body).encode()), "h1")
    assert caught.value.status == 403
    assert str(caught.value).startswith(f'{path} is "h2", and this token is for "h1"')
