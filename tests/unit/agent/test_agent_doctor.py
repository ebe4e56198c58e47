"""The doctor's looks at a host, on made-up file trees and answers."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent.doctor import gpus, host, kernel, reach
from agent.doctor.checks import BAD, NOTE, OK, Check, look
from agent.doctor.text import render
from core.errors import GpuwiseError
from core.settings import Settings

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Tue Mar  4 21:44:02 UTC 2026\nGCC version: gcc 12.2.0\n"
OPEN_VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root)\n"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def a_card(root: Path, bdf: str = "0000:1a:00.0", *, kind: str = "0x030200", status: str = "active") -> None:
    folder = root / "sys/bus/pci/devices" / bdf
    put(folder / "vendor", "0x10de\n")
    put(folder / "class", f"{kind}\n")
    put(folder / "power/runtime_status", f"{status}\n")


@contextmanager
def a_server(status: int, body: bytes, ahead_s: float = 0.0) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(time.time() + ahead_s, usegmt=True)  # noqa: TID251 - the server's clock

        def log_message(self, *_words: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_look_that_hangs_or_fails_is_a_finding_and_hides_no_other() -> None:
    forever = threading.Event()
    hung = look("host", "mount", lambda: (OK, str(forever.wait(30))), limit_s=0.05)
    forever.set()
    assert (hung.state, "hangs" in hung.finding) == (BAD, True)
    assert look("host", "x", lambda: (OK, str(1 // 0))).state == BAD

    def refuse() -> tuple[str, str]:
        raise GpuwiseError("a sentence")

    assert look("host", "x", refuse) == Check("x", BAD, "a sentence", "host")


def test_a_machine_without_cards_is_noted_and_one_without_a_module_for_its_cards_is_bad(
    tmp_path: Path,
) -> None:
    assert kernel.cards(tmp_path)[0] == NOTE
    assert kernel.module(tmp_path)[0] == NOTE
    a_card(tmp_path, status="suspended")
    a_card(tmp_path, "0000:1b:00.0", kind="0x040300")  # its audio function
    assert kernel.card_count(tmp_path) == 1
    assert "suspended" in kernel.cards(tmp_path)[1]
    state, finding = kernel.module(tmp_path)
    assert (state, "modprobe nvidia" in finding) == (BAD, True)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (VERSION.format("570.148.08"), "570.148.08"),
        (VERSION.format("470.82"), "470.82"),
        (OPEN_VERSION, "580.95.05"),
    ],
)
def test_the_version_of_the_loaded_module(tmp_path: Path, text: str, version: str) -> None:
    put(tmp_path / "proc/driver/nvidia/version", text)
    assert kernel.module_version(tmp_path) == version


def test_missing_device_files_name_the_container_flags(tmp_path: Path) -> None:
    put(tmp_path / "proc/driver/nvidia/version", OPEN_VERSION)
    state, finding = kernel.device_files(tmp_path)
    assert state == BAD
    assert "--gpus all" in finding
    put(tmp_path / "dev/nvidiactl", "")
    put(tmp_path / "dev/nvidia0", "")
    assert kernel.device_files(tmp_path)[0] == OK


def test_device_files_that_this_user_may_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "proc/driver/nvidia/version", OPEN_VERSION)
    for name in ("nvidiactl", "nvidia0", "nvidia1"):
        put(tmp_path / "dev" / name, "")
    monkeypatch.setattr(os, "access", lambda path, _mode: not str(path).endswith("nvidia1"))
    state, finding = kernel.device_files(tmp_path)
    assert (state, "may not open nvidia1" in finding) == (BAD, True)
    monkeypatch.setattr(os, "access", lambda _path, _mode: True)

    def refuse(*_words: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "open", refuse)
    state, finding = kernel.device_files(tmp_path)
    assert (state, "device rules are lost" in finding) == (BAD, True)


def test_counters_kept_for_administrators(tmp_path: Path) -> None:
    assert kernel.counters(tmp_path)[0] == NOTE
    put(tmp_path / "proc/driver/nvidia/params", "EnableMSI: 1\nRmProfilingAdminOnly: 1\n")
    put(tmp_path / "proc/self/status", "CapEff:\t0000000000000000\n")
    state, finding = kernel.counters(tmp_path)
    assert (state, "NVreg_RestrictProfilingToAdminUsers=0" in finding) == (NOTE, True)
    put(tmp_path / "proc/self/status", "CapEff:\t000001ffffffffff\n")
    assert kernel.counters(tmp_path)[0] == OK
    put(tmp_path / "proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n")
    assert kernel.counters(tmp_path)[0] == OK


def test_pid_namespaces_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert host.pid_namespace(tmp_path)[0] == OK
    (tmp_path / "proc/self/ns/pid").unlink()
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532281]")
    state, finding = host.pid_namespace(tmp_path)
    assert (state, "hostPID" in finding) == (NOTE, True)


@pytest.mark.parametrize(
    ("options", "state"),
    [("rw,hidepid=2,gid=26", NOTE), ("rw,hidepid=invisible", NOTE), ("rw,hidepid=0", OK), ("rw", OK)],
)
def test_hidden_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, state: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    put(tmp_path / "proc/self/mounts", f"sysfs /sys sysfs rw 0 0\nproc /proc proc {options} 0 0\n")
    assert host.hidepid(tmp_path)[0] == state


def test_cgroups_pods_and_processor_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert host.cgroups(tmp_path)[0] == NOTE
    put(tmp_path / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    put(tmp_path / "proc/self/cgroup", "0::/user.slice\n")
    assert "version 2" in host.cgroups(tmp_path)[1]
    assert host.pod_names(tmp_path) == (OK, "no Kubernetes here")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    assert host.pod_names(tmp_path)[0] == NOTE
    (tmp_path / "var/log/pods/ml_train-0_1234").mkdir(parents=True)
    assert host.pod_names(tmp_path) == (OK, "/var/log/pods names 1 pods")
    assert host.host_power(tmp_path)[0] == NOTE
    put(tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj", "1\n")
    assert host.host_power(tmp_path)[0] == OK


def test_an_engine_is_found_by_its_command_line_and_nothing_of_that_line_is_printed(tmp_path: Path) -> None:
    put(tmp_path / "proc/stat", "btime 1763700000\n")
    folder = tmp_path / "proc/4101"
    put(folder / "stat", "4101 (python) S 1 " + " ".join(["1"] * 48) + "\n")
    put(folder / "status", "Name:\tpython\nUid:\t0\t0\t0\t0\nNSpid:\t4101\n")
    put(folder / "cgroup", "0::/\n")
    put(folder / "cmdline", "vllm\0serve\0m\0--port\x008003\0--api-key\0hush\0")
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    state, finding = host.engines(tmp_path)
    assert (state, finding) == (OK, "vllm (port 8003)")


def test_the_spool_needs_a_folder_and_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(spool_path=str(tmp_path / "deep/er/spool.db"))
    assert reach.spool(settings)[0] == OK
    assert not (tmp_path / "deep").exists(), "a look makes nothing"
    monkeypatch.setattr(reach.shutil, "disk_usage", lambda _path: (0, 0, 10 << 20))
    state, finding = reach.spool(replace(settings, spool_max_mb=11))
    assert (state, "lower spool_max_mb" in finding) == (NOTE, True)
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert reach.spool(settings)[0] == BAD


def test_the_database_of_the_sink(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    assert reach.database(f"sqlite:///{path}")[0] == OK
    assert not path.exists()
    path.write_bytes(b"this is no database, and long enough to be read as one" * 100)
    assert reach.database(f"sqlite:///{path}")[0] == BAD
    state, finding = reach.database("postgresql://someone:secret@127.0.0.1:1/gpuwise")
    assert state == BAD
    assert "secret" not in finding


@pytest.mark.parametrize(
    ("status", "ahead_s", "state", "said"),
    [
        (200, 0, OK, "clocks agree"),
        (200, 60, NOTE, "behind the server's"),
        (200, -600, BAD, "ahead of the server's"),
        (404, 0, BAD, "not as gpuwise"),
        (503, 0, BAD, "status 503"),
        (302, 0, BAD, "status 302"),
    ],
)
def test_the_server_and_its_clock(status: int, ahead_s: float, state: str, said: str) -> None:
    with a_server(status, b"{}", ahead_s) as url:
        found = reach.server(Settings(sink="server", server_url=url))
    assert found[0] == state
    assert said in found[1]


def test_a_server_that_is_not_there() -> None:
    found = look(
        "delivery", "server", lambda: reach.server(Settings(sink="server", server_url="http://127.0.0.1:1"))
    )
    assert (found.state, "nothing answers at http://127.0.0.1:1" in found.finding) == (BAD, True)


def test_the_token_is_looked_at_and_never_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    assert reach.token(Settings())[0] == BAD
    file = tmp_path / "gpuwise-token"
    file.write_text("gw_secret\n")
    settings = Settings(server_token_file=str(file))
    file.chmod(0o644)
    assert reach.token(settings)[0] == NOTE
    file.chmod(0o600)
    state, finding = reach.token(settings)
    assert (state, "gw_secret" in finding) == (OK, False)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert reach.token(Settings(server_token_file="gpuwise-token"))[0] == OK
    assert reach.token(Settings(server_token_file="%d/gpuwise-token"))[0] == OK
    file.write_text("")
    assert reach.token(settings)[0] == BAD


def test_engine_addresses_and_the_dcgm_exporter() -> None:
    with a_server(200, b"# HELP x y\nvllm:num_requests_running 1\n") as url:
        assert reach.engine(url)[0] == OK
        assert reach.dcgm(f"{url}/metrics")[0] == NOTE
    with a_server(200, b'DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.5\n') as url:
        assert reach.dcgm(f"{url}/metrics")[0] == OK
    with a_server(404, b"") as url:
        assert reach.engine(url)[0] == BAD
    assert reach.dcgm("")[0] == OK


A_GPU = {
    "index": 0,
    "identity": {"model": "NVIDIA H100", "memory_total_bytes": 80 << 30, "compute_capability": "9.0", "power_averaging_s": 1.0},
    "instances": 0,
    "values": ["busy_ratio", "memory_used_bytes", "memory_reserved_bytes", "power_w", "energy_j", "sm_clock_hz", "memory_clock_hz",
               "temperature_c", "event_reasons_flags", "slowed_power_cap_s", "encoder_busy_ratio"],
    "gpm": {"offered": True, "names": ["sm_active_ratio", "pcie_rx_bytes_per_s", "nvlink_rx_bytes_per_s"], "code": None},
    "processes": {"count": 1, "busy": True},
    "facts": {"ecc_mode": "enabled", "row_remap_pending": 0.0, "persistence_mode": "enabled", "mig_mode": "disabled"},
    "events": 0x8,
    "virtualization": 0,
    "absent": {},
}  # fmt: skip


def states(**changes: object) -> dict[str, tuple[str, str]]:
    return {check.name: (check.state, check.finding) for check in gpus.checks({**A_GPU, **changes})}


def test_a_card_that_tells_everything_has_nothing_to_note() -> None:
    assert {state for state, _finding in states().values()} == {OK}


@pytest.mark.parametrize(
    ("name", "changes", "state", "said"),
    [
        ("utilization", {"values": [], "absent": {"nvmlDeviceGetUtilizationRates": 3}}, NOTE, "does not support it"),
        ("utilization", {"values": [], "instances": 2}, NOTE, "MIG on"),
        ("memory", {"values": [], "absent": {"nvmlDeviceGetMemoryInfo(2)": 4}}, NOTE, "no permission"),
        ("energy counter", {"facts": {"persistence_mode": "disabled"}}, NOTE, "persistence mode"),
        ("energy counter", {"values": []}, NOTE, "integrated from power"),
        ("SM counters", {"gpm": {"offered": True, "names": None, "code": 4}}, NOTE, "NVreg_Restrict"),
        ("SM counters", {"gpm": {"offered": True, "names": None, "code": 999}, "virtualization": 2}, NOTE, "vGPU"),
        ("SM counters", {"gpm": {"offered": True, "names": None, "code": 999}}, NOTE, "NVML says 999"),
        ("SM counters", {"gpm": {"offered": False, "names": None, "code": None}, "identity": {"compute_capability": "8.0"}}, NOTE, "Hopper"),
        ("processes", {"processes": None}, NOTE, "from its memory only"),
        ("process shares", {"instances": 1}, NOTE, "not attributable"),
        ("ECC", {"facts": {"ecc_mode": "disabled"}}, NOTE, "off"),
        ("row remapping", {"facts": {"row_remap_pending": 1.0}}, BAD, "reset"),
        ("row remapping", {"facts": {"row_remap_failed": 1.0}}, BAD, "replaced"),
        ("recovery", {"facts": {"recovery_action": "drain_and_reset"}}, BAD, "drain and reset"),
        ("events", {"events": None, "absent": {"nvmlDeviceGetSupportedEventTypes": 3}}, NOTE, "dmesg"),
        ("MIG", {"facts": {"mig_mode": "enabled"}}, NOTE, "no instance"),
        ("persistence", {"facts": {"persistence_mode": "disabled"}}, NOTE, "nvidia-persistenced"),
    ],
)  # fmt: skip
def test_what_a_card_does_not_tell_has_its_reason(
    name: str, changes: dict[str, object], state: str, said: str
) -> None:
    found = states(**changes)[name]
    assert found[0] == state
    assert said in found[1]


def test_a_lost_card_is_one_bad_line() -> None:
    (check,) = gpus.checks({"index": 3, "lost": 15})
    assert (check.part, check.state) == ("gpu 3", BAD)


def test_alike_cards_share_a_table_and_lines_keep_to_the_width() -> None:
    checks = [Check("nvml", OK, "answers " * 30, "driver")]
    for index in (0, 1, 2, 5):
        checks += gpus.checks({**A_GPU, "index": index})
    checks += gpus.checks({"index": 3, "lost": 15})
    checks.append(
        Check("engine http://127.0.0.1:8000/a/very/long/address", BAD, "answers with status 404", "delivery")
    )
    text = render(checks, 72)
    assert "GPU 0–2, 5" in text
    assert text.count("\nGPU ") == 2
    assert max(len(line) for line in text.splitlines()) <= 72
    assert "2 things do not work." in text
    assert max(len(line) for line in render(checks, 300).splitlines()) <= 100
