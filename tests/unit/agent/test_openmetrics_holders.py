"""Exposition text whose labels say who held a GPU: as an import from Prometheus reads them."""

from pathlib import Path

import pytest

from agent.sources.openmetrics import OpenMetrics
from agent.sources.report import FileReport
from agent.sources.series import Thing
from core.readings import EngineIdentity, ProcessReading
from core.units import HOUR_MS, MIB

T0 = 1_791_187_200_000
WORK = 'pod="vllm-0",namespace="chat",container="server"'
RENAMED = 'exported_pod="vllm-0",exported_namespace="chat",pod="exporter-x",namespace="ops"'
ENGINE = 'instance="10.1.2.3:8000",model_name="llama-2-13b",engine="0"'


def used(gpu: str, labels: str, *instants: int, mib: int = 70_000) -> list[str]:
    named = f'gpu="{gpu[-1]}",UUID="{gpu}",Hostname="node-1"'
    return [f"DCGM_FI_DEV_FB_USED{{{named},{labels}}} {mib} {ts_ms}" for ts_ms in instants]


def busy(gpu: str, *instants: int) -> list[str]:
    return [f'DCGM_FI_DEV_GPU_UTIL{{UUID="{gpu}",Hostname="node-1"}} 50 {ts_ms}' for ts_ms in instants]


def running(labels: str, *instants: int) -> list[str]:
    told = f"{ENGINE},{labels}" if labels else ENGINE
    return [f"vllm:num_requests_running{{{told}}} 3 {ts_ms}" for ts_ms in instants]


def read(tmp_path: Path, lines: list[str]) -> list[Thing]:
    path = tmp_path / "scrape.prom"
    path.write_text("\n".join([*lines, "# EOF", ""]))
    source, report = OpenMetrics(), FileReport(path)
    things = [*source.read(path, report), *source.rest()]
    report.finish()
    assert report.refused == 0
    return things


def held(things: list[Thing]) -> list[ProcessReading]:
    return [one for one in things if isinstance(one, ProcessReading)]


def engine(things: list[Thing]) -> EngineIdentity:
    """What was said last of the only engine."""
    return [one for one in things if isinstance(one, EngineIdentity)][-1]


@pytest.mark.parametrize("labels", [WORK, RENAMED])
@pytest.mark.parametrize("by_time", [True, False])
def test_a_pod_holds_its_gpu_and_an_engine_has_that_of_its_pod(
    tmp_path: Path, labels: str, by_time: bool
) -> None:
    instants = (T0, T0 + 10_000, T0 + 20_000)
    families = [busy("GPU-0", *instants), used("GPU-0", labels, *instants)]
    families.append(running('pod="vllm-0",namespace="chat"', *instants))
    lines = [line for one in (zip(*families, strict=True) if by_time else families) for line in one]
    things = read(tmp_path, lines)
    found = held(things)
    assert [one.ts_ms for one in found] == list(instants)
    assert {(one.gpu_uuid, one.workload.kind, one.workload.key) for one in found} == {
        ("GPU-0", "pod", "chat/vllm-0")
    }
    assert {(one.workload.host, one.memory_used_bytes) for one in found} == {("node-1", 70_000.0 * MIB)}
    told = engine(things)
    assert (told.gpu_uuids, told.host) == (("GPU-0",), "node-1")


def test_the_exporters_own_pod_holds_nothing(tmp_path: Path) -> None:
    things = read(tmp_path, used("GPU-0", 'pod="dcgm-exporter-abc",namespace="ops"', T0))
    assert held(things) == []


def test_a_plain_pod_is_the_exporters_once_labels_are_seen_to_be_renamed(tmp_path: Path) -> None:
    things = read(
        tmp_path, [*used("GPU-0", RENAMED, T0), *used("GPU-1", 'pod="exporter-x",namespace="ops"', T0)]
    )
    assert {one.gpu_uuid for one in held(things)} == {"GPU-0"}


def test_nobody_holds_a_gpu_without_labels_and_its_memory_stays_its_own(tmp_path: Path) -> None:
    assert held(read(tmp_path, used("GPU-0", 'modelName="H100"', T0))) == []


def test_a_slurm_job_holds_its_gpu(tmp_path: Path) -> None:
    (one,) = held(read(tmp_path, used("GPU-0", 'hpc_job="4711"', T0)))
    assert (one.workload.kind, one.workload.key) == ("slurm_job", "4711")


def test_an_engine_has_the_cards_that_its_pod_held_last(tmp_path: Path) -> None:
    """A pod of a stateful set comes back under its name on another card."""
    later = T0 + HOUR_MS
    lines = [*used("GPU-0", WORK, T0), *used("GPU-1", WORK, later), *used("GPU-2", WORK, later + 15_000)]
    told = engine(read(tmp_path, [*lines, *running('pod="vllm-0",namespace="chat"', later)]))
    assert told.gpu_uuids == ("GPU-1", "GPU-2")


@pytest.mark.parametrize("labels", ["", 'pod="vllm-0",namespace="other"', 'pod="vllm-1",namespace="chat"'])
def test_an_engine_of_another_pod_or_none_has_no_gpus(tmp_path: Path, labels: str) -> None:
    told = engine(read(tmp_path, [*used("GPU-0", WORK, T0), *running(labels, T0)]))
    assert told.gpu_uuids == ()
    assert told.host == "10.1.2.3"


def test_a_slice_is_held_by_its_pod_and_the_engine_has_no_card_of_its_own(tmp_path: Path) -> None:
    part = f'GPU_I_ID="1",GPU_I_PROFILE="1g.10gb",{WORK}'
    things = read(tmp_path, [*used("GPU-0", part, T0), *running('pod="vllm-0",namespace="chat"', T0)])
    assert [one.gpu_uuid for one in held(things)] == ["MIG-GPU-0/1/0"]
    assert engine(things).gpu_uuids == ()
