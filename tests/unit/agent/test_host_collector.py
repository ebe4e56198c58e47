"""The host from its own files: means since the last call, and nothing that cannot be read."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.collectors.host import HostCollector, OwnCost, Rapl, cpu_shares, cpu_times
from core.readings import HostIdentity

MEMINFO = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\nBuffers: 1 kB\n"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def stat(*cpus: str) -> str:
    """``/proc/stat`` of processors, their sum in front."""
    rows = [[int(word) for word in cpu.split()] for cpu in cpus]
    total = [sum(column) for column in zip(*rows, strict=True)]
    lines = [f"cpu  {' '.join(map(str, total))}"]
    lines += [f"cpu{n} {cpu}" for n, cpu in enumerate(cpus)]
    return "\n".join([*lines, "intr 12 0 0", "ctxt 5", "btime 1763700000"]) + "\n"


def domain(folder: Path, name: str, energy_uj: int, most_uj: int = 262_143_328_850) -> Path:
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    (folder / "max_energy_range_uj").write_text(f"{most_uj}\n")
    return folder / "energy_uj"


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    proc, sys_ = tmp_path / "proc", tmp_path / "sys"
    proc.mkdir()
    (proc / "meminfo").write_text(MEMINFO)
    (proc / "stat").write_text(stat("0 0 0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 0"))
    return proc, sys_


def test_the_first_call_knows_no_means(roots: tuple[Path, Path]) -> None:
    proc, sys_ = roots
    sample = HostCollector("n1", proc=proc, sys=sys_).sample(10_000, 10_000, {"agent_cpu_ratio": 0.001})
    assert sample is not None
    assert (sample.host, sample.ts_ms, sample.span_ms) == ("n1", 10_000, 10_000)
    assert sample.values == {
        "host_memory_total_bytes": 1_024_000.0,
        "host_memory_used_bytes": 614_400.0,
        "agent_cpu_ratio": 0.001,
    }


def test_shares_are_of_the_time_since_the_last_call(roots: tuple[Path, Path]) -> None:
    proc, sys_ = roots
    host = HostCollector("n1", proc=proc, sys=sys_)
    host.sample(0, 10_000, {})
    (proc / "stat").write_text(stat("500 100 200 100 50 30 20 0 0 0", "0 0 0 1000 0 0 0 0 0 0"))
    sample = host.sample(10_000, 10_000, {})
    assert sample is not None
    assert sample.values["cpu_busy_ratio"] == pytest.approx(850 / 2000)
    assert sample.values["cpu_busiest_ratio"] == pytest.approx(0.85)
    assert sample.values["iowait_ratio"] == pytest.approx(50 / 2000)


def shares(*cpus: str) -> dict[str, float]:
    zero = stat(*("0 0 0 0 0 0 0 0 0 0" for _ in cpus)).encode()
    return cpu_shares(cpu_times(zero), cpu_times(stat(*cpus).encode()))


def test_guests_are_not_counted_twice() -> None:
    assert shares("600 0 0 400 0 0 0 0 600 0")["cpu_busy_ratio"] == pytest.approx(0.6)


def test_stolen_time_is_not_the_hosts() -> None:
    assert shares("500 0 0 0 0 0 0 500 0 0")["cpu_busiest_ratio"] == pytest.approx(1.0)
    assert "cpu_busy_ratio" not in shares("0 0 0 0 0 0 0 1000 0 0")


def test_idle_time_that_steps_back_is_no_time() -> None:
    before = cpu_times(stat("100 0 0 1000 50 0 0 0 0 0").encode())
    now = cpu_times(stat("200 0 0 990 50 0 0 0 0 0").encode())
    assert cpu_shares(before, now)["cpu_busy_ratio"] == 1.0


def test_a_processor_that_comes_or_goes_is_left_out() -> None:
    before = cpu_times(stat("0 0 0 100 0 0 0 0 0 0").encode())
    now = cpu_times(stat("0 0 0 200 0 0 0 0 0 0", "900 0 0 0 0 0 0 0 0 0").encode())
    assert cpu_shares(before, now)["cpu_busiest_ratio"] == 0.0


def test_what_cannot_be_read_is_absent(tmp_path: Path) -> None:
    host = HostCollector("n1", proc=tmp_path, sys=tmp_path)
    assert host.sample(0, 10_000, {}) is None
    assert host.identity() == HostIdentity("n1")


def test_kernels_without_available_memory_leave_use_unknown(roots: tuple[Path, Path]) -> None:
    proc, sys_ = roots
    (proc / "meminfo").write_text("MemTotal:       1000 kB\nMemFree:         100 kB\n")
    sample = HostCollector("n1", proc=proc, sys=sys_).sample(0, 10_000, {})
    assert sample is not None
    assert sample.values == {"host_memory_total_bytes": 1_024_000.0}


def test_identity_counts_processors(roots: tuple[Path, Path]) -> None:
    proc, sys_ = roots
    host = HostCollector("n1", version="1.2", proc=proc, sys=sys_)
    assert host.identity() == HostIdentity("n1", 2, 1_024_000, "1.2")


def test_power_is_that_of_packages_and_memory(tmp_path: Path) -> None:
    clock = Clock()
    counters = {
        domain(tmp_path / "intel-rapl:0", "package-0", 1_000_000): 2_000_000_000,
        domain(tmp_path / "intel-rapl:0:0", "core", 1_000_000): 900_000_000,
        domain(tmp_path / "intel-rapl:0:1", "dram", 1_000_000): 200_000_000,
        domain(tmp_path / "intel-rapl:1", "package-1", 1_000_000): 1_000_000_000,
        domain(tmp_path / "intel-rapl:2", "psys", 1_000_000): 5_000_000_000,
        domain(tmp_path / "intel-rapl-mmio:0", "package-0", 1_000_000): 2_000_000_000,
    }
    rapl = Rapl(tmp_path, monotonic=clock)
    assert rapl.power_w() is None
    clock.now_s += 10
    for path, used in counters.items():
        path.write_text(str(1_000_000 + used))
    assert rapl.power_w() == pytest.approx(320.0)
    clock.now_s += 10
    assert rapl.power_w() == 0.0


def test_a_counter_that_goes_round_is_followed(tmp_path: Path) -> None:
    clock = Clock()
    path = domain(tmp_path / "intel-rapl:0", "package-0", 65_532_000_000, 65_532_610_987)
    rapl = Rapl(tmp_path, monotonic=clock)
    rapl.power_w()
    clock.now_s += 10
    path.write_text("999389012")
    assert rapl.power_w() == pytest.approx(100.0)


def test_a_counter_that_may_have_gone_round_twice_says_nothing(tmp_path: Path) -> None:
    clock = Clock()
    path = domain(tmp_path / "intel-rapl:0", "package-0", 1_000, 65_532_610_987)
    rapl = Rapl(tmp_path, monotonic=clock)
    rapl.power_w()
    clock.now_s += 3600
    path.write_text("2000")
    assert rapl.power_w() is None


def test_power_is_unknown_where_one_counter_cannot_be_read(tmp_path: Path) -> None:
    clock = Clock()
    domain(tmp_path / "intel-rapl:0", "package-0", 1_000)
    path = domain(tmp_path / "intel-rapl:1", "package-1", 1_000)
    rapl = Rapl(tmp_path, monotonic=clock)
    rapl.power_w()
    path.unlink()
    clock.now_s += 10
    assert rapl.power_w() is None
    path.write_text("5000")
    assert rapl.power_w() is None  # since when is not known
    clock.now_s += 10
    path.write_text("20005000")
    assert rapl.power_w() == pytest.approx(2.0)


def test_the_real_host_is_read() -> None:
    host = HostCollector("here")
    identity = host.identity()
    assert identity.cpu_count
    assert identity.memory_total_bytes
    host.sample(0, 10_000, {})
    sum(range(1_000_000))
    sample = host.sample(10_000, 10_000, {})
    assert sample is not None
    assert 0 < sample.values["host_memory_used_bytes"] < identity.memory_total_bytes
    assert all(0 <= sample.values[name] <= 1 for name in sample.values if name.endswith("_ratio"))


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process that uses CPU and then waits."""
    code = "import sys\nsum(range(3_000_000))\nprint('done', flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_own_cost_is_that_of_all_processes(child: "subprocess.Popen[str]") -> None:
    clock = Clock()
    cost = OwnCost(monotonic=clock)
    first = cost.values()
    assert set(first) == {"agent_memory_bytes"}
    clock.now_s += 10
    both = cost.values([child.pid])
    assert both["agent_memory_bytes"] > first["agent_memory_bytes"] + 5_000_000
    assert both["agent_cpu_ratio"] > 0.002  # 20 ms in the child at least
    clock.now_s += 10
    assert cost.values([child.pid])["agent_cpu_ratio"] < both["agent_cpu_ratio"]


def test_a_child_that_has_ended_is_left_out() -> None:
    clock = Clock()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    cost = OwnCost(monotonic=clock)
    cost.values([process.pid])
    clock.now_s += 10
    values = cost.values([process.pid])
    assert values["agent_cpu_ratio"] >= 0
    assert values["agent_memory_bytes"] == pytest.approx(
        int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"), rel=0.2
    )


def test_memory_is_unknown_where_a_process_hides_it(tmp_path: Path) -> None:
    assert OwnCost(proc=tmp_path).values() == {}
