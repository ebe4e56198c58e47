"""A delivery survives its JSON unchanged; unknown stays unknown."""

import json

import pytest

from core.activity import Activity
from core.delivery import Delivery, decode, encode
from core.readings import EngineIdentity, GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import EnergyMethod, EngineSample, GpuEvent, GpuSample, HostSample, ProcessSample

WORKLOAD = WorkloadKey("pod", "u-1", "llm-0", "1000", "n1", (("namespace", "ml"), ("pod", "llm-0")))
WHOLE = Delivery(
    HostIdentity("n1", cpu_count=96),
    [GpuIdentity("GPU-a", host="n1", index=0, model="NVIDIA H200", power_averaging_s=1.0)],
    [EngineIdentity("n1:8000/0", "n1", "vllm", "m", {"max_num_seqs": "256"}, ("GPU-a",))],
    [
        GpuSample("GPU-a", 10_000, 10_000, 9_000, {"busy_ratio": 0.5}, EnergyMethod.COUNTER, Activity.BUSY),
        GpuSample("GPU-b", 10_000, 10_000, 9_000, {}, None, Activity.UNKNOWN),
    ],
    [
        ProcessSample("GPU-a", 10_000, 10_000, WORKLOAD, 1e9, None, 2, 0.5, 0.4),
        ProcessSample("GPU-a", 10_000, 10_000, WorkloadKey("process", "1:0", "pid 1"), None, None, 1),
    ],
    [EngineSample("n1:8000/0", 10_000, 10_000, 9_000, 5_000, None, {"running_requests": 3.0})],
    [HostSample("n1", 10_000, 10_000, {"cpu_busy_ratio": 0.1})],
    [GpuEvent("GPU-a", 10_500, "xid", "GPU has fallen off the bus.", 79)],
    [GpuHealth("GPU-a", 10_000, {"ecc_uncorrected_count": 0.0, "compute_mode": "default"})],
)


def test_what_was_encoded_is_decoded() -> None:
    assert decode(encode(WHOLE, agent_id="a", sequence=7)) == WHOLE


def test_unknown_is_absent_in_the_text() -> None:
    body = json.loads(encode(WHOLE, agent_id="a", sequence=7))
    assert "null" not in json.dumps(body)
    assert body["sequence"] == 7
    assert "host" not in json.loads(encode(Delivery(), agent_id="a", sequence=1))


def test_a_delivery_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 2"):
        decode(b'{"version": 2}')


def test_rows_are_counted_without_identities() -> None:
    assert WHOLE.row_count == 7
    assert not Delivery(gpus=WHOLE.gpus).row_count
    assert not Delivery(gpus=WHOLE.gpus).empty
    assert Delivery().empty
